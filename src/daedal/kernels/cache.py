"""Files of compiled code that may be damaged: each carries a digest, and what does not fit it is compiled anew."""

import hashlib
import pickle
import sys
from functools import cache

from numba.core.caching import IndexDataCacheFile

_DIGEST = hashlib.sha256().digest_size


class CheckedCacheFile(IndexDataCacheFile):
    """Numba's index and data files, with a digest before each content.

    Numba takes what it finds at its word: a file that was cut short by a full disk or a killed copy ends in an
    exception of `pickle`, and one with wrong bytes in machine code that is run. Here such a file counts as absent.
    """

    def __init__(self, cache_path, filename_base, source_stamp):
        super().__init__(cache_path, filename_base, source_stamp)
        self._version = f"{self._version} with digests"  # files without are those of another version, not damaged

    def save(self, key, data):
        """Save an entry; where that is impossible, compiled code lives as long as the process."""
        try:
            super().save(key, data)
        except OSError as error:
            say_once(f"compiled code cannot be saved ({error}): it will be compiled anew in every process")

    def _load_index(self):
        try:
            with open(self._index_path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return {}
        except OSError as error:
            say_once(f"the cache of compiled code cannot be read ({error}); it is compiled anew")
            return {}
        head = pickle.dumps(self._version, protocol=-1)
        if not content.startswith(head):  # of another version of Numba, or damaged
            return {}
        loaded = self._checked(content[len(head) :], self._index_path)
        stamp, overloads = loaded if loaded is not None else (None, {})
        return overloads if stamp == self._source_stamp else {}

    def _load_data(self, name):
        path = self._data_path(name)
        with open(path, "rb") as file:
            loaded = self._checked(file.read(), path)
        if loaded is None:
            raise OSError(f"{path} is damaged")  # counts as absent
        return loaded

    def _dump(self, obj):
        content = super()._dump(obj)
        return hashlib.sha256(content).digest() + content

    def _checked(self, content: bytes, path: str):
        """What was saved, or None if the bytes are not those that were written."""
        digest, content = content[:_DIGEST], content[_DIGEST:]
        if hashlib.sha256(content).digest() != digest:
            say_once(f"the cache of compiled code was damaged ({path}); what it held is compiled anew")
            return None
        return pickle.loads(content)


@cache
def say_once(message: str):
    """Say something on stderr, once in a process."""
    print(f"daedal: {message}", file=sys.stderr, flush=True)
