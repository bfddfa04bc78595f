"""Object code on disk, in a folder that all processes of a user share: kernels, and functions that were traced.

An entry is a file under a name that says what it is made from, so that entries are never changed. It begins with a
digest of its content; one that does not fit its digest counts as absent. Files are written beside their place and moved
there, so that a reader never sees half of one, whoever writes at the same time, also on file systems of a network.
Where no file can be written or read, code is generated in each process.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sys
import time
from functools import cache
from itertools import count
from pathlib import Path

LARGEST = 512
"""Megabytes up to which the folder grows, unless ``DAEDAL_CACHE_SIZE`` is set; the least recently used entries are
removed first."""
_MAGIC = b"daedal object code 1\n"
_IMPOSSIBLE = (OSError, RuntimeError, ValueError)  # also: no home folder, a name that is none
_DAY = 86_400.0
_EVERY = 50  # entries that a process writes between two looks at the size of the folder
_written = count()


def folder() -> Path:
    """Where object code is kept: ``DAEDAL_CACHE_DIR``, otherwise the folder for caches of the user."""
    given = os.environ.get("DAEDAL_CACHE_DIR")
    if given:
        return Path(given).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "daedal" / "code"


def load(key: str) -> bytes | None:
    """The content under a key, or None if there is none that is whole."""
    try:
        path = folder() / f"{key}.o"
        content = read(path)
    except _IMPOSSIBLE:
        return None
    if content is not None:
        _note_use(path)
    return content


def _note_use(path: Path):
    """Let the time of a file show, to a day, when it was used last; what cannot be written is as old as it is."""
    try:
        if time.time() - path.stat().st_mtime > _DAY:
            os.utime(path)
    except OSError:
        return


def read(path: Path) -> bytes | None:
    """The content of a file that :func:`sealed` made, or None if there is none or it was damaged."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except _IMPOSSIBLE as error:
        say_once(f"object code cannot be read ({error})")
        return None
    code = content[len(_MAGIC) + 32 :]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) :][:32] != hashlib.sha256(code).digest():
        say_once(f"object code was damaged ({path}), and is made again")
        return None
    return code


def save(key: str, code: bytes):
    """Keep a content under a key, if that is possible."""
    try:
        place = folder()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(place / f"{key}.o", code)
        if next(_written) % _EVERY == 0:
            _prune(place)
    except _IMPOSSIBLE as error:
        say_once(f"object code cannot be kept ({error}): each process makes it again; DAEDAL_CACHE_DIR names a folder")


def write(path: Path, code: bytes):
    """Write a sealed file with the permissions of new files, beside its place first: nobody reads half of it."""
    beside = path.with_name(f"part-{secrets.token_hex(8)}")
    try:
        with open(beside, "xb") as file:
            file.write(sealed(code))
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def sealed(code: bytes) -> bytes:
    """A content with its digest in front."""
    return _MAGIC + hashlib.sha256(code).digest() + code


def _limit() -> float:
    """The size up to which the folder grows, in bytes."""
    given = os.environ.get("DAEDAL_CACHE_SIZE", "")
    try:
        return 1e6 * (float(given) if given else LARGEST)
    except ValueError:
        say_once(f"DAEDAL_CACHE_SIZE={given!r} is not a number of megabytes; the limit is {LARGEST}")
        return 1e6 * LARGEST


def _prune(place: Path):
    """Remove what was not used for longest, down to nine tenths of the limit, and files that nobody finished."""
    limit = _limit()
    files = []
    for file in place.iterdir():
        try:
            found = file.stat()
        except OSError:
            continue  # another process removed it
        if (file.name.startswith("part-") or file.suffix == ".lock") and time.time() - found.st_mtime > _DAY:
            file.unlink(missing_ok=True)
        elif file.suffix == ".o":
            files.append((found.st_mtime, found.st_size, file))
    size = sum(found[1] for found in files)
    if size > limit:
        for _, bytes_of_file, file in sorted(files, key=lambda found: found[0]):
            file.unlink(missing_ok=True)
            size -= bytes_of_file
            if size <= 0.9 * limit:
                break


def say(message: str):
    """Print a message on stderr; one that cannot be printed is dropped, because work does not depend on it."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # full, closed, or None
        sys.stderr.write(f"daedal: {message}\n")
        sys.stderr.flush()


@cache
def say_once(message: str):
    """Print a message on stderr, once in a process."""
    say(message)
