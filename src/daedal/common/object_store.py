"""Object code of kernels and traced functions on disk, in a folder shared by all processes of a user.

An entry is a file named by a digest of its inputs, so that entries never change. The file starts with a digest of its
content and counts as absent if this digest is wrong. Files are written under a temporary name and renamed, so that
readers never see partial files, even with concurrent writers and on network file systems. If files cannot be written or
read, each process generates its own code.
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
"""Default limit of the folder size in megabytes, see ``DAEDAL_CACHE_SIZE``; least recently used entries are removed."""
_MAGIC = b"daedal object code 1\n"
# raised by file operations, if the user has no home folder, and for invalid file names
_IMPOSSIBLE = (OSError, RuntimeError, ValueError)
_DAY = 86_400.0
_EVERY = 50  # number of entries that a process writes between checks of the folder size
_written = count()


def folder() -> Path:
    """The folder of object code: ``DAEDAL_CACHE_DIR``, otherwise the user's cache folder."""
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
    """The content stored under a key, or None if there is no valid entry."""
    try:
        path = folder() / f"{key}.o"
        content = read(path)
    except _IMPOSSIBLE:
        return None
    if content is not None:
        _note_use(path)
    return content


def _note_use(path: Path):
    """Record the day of last use in the modification time of a file, if it is writable."""
    try:
        if time.time() - path.stat().st_mtime > _DAY:
            os.utime(path)
    except OSError:
        return


def read(path: Path) -> bytes | None:
    """The content of a file written by :func:`sealed`, or None if it is absent or damaged."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except _IMPOSSIBLE as error:
        say_once(f"object code cannot be read ({error})")
        return None
    code = content[len(_MAGIC) + 32 :]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) :][:32] != hashlib.sha256(code).digest():
        say_once(f"the object code in {path} is damaged and is generated again")
        return None
    return code


def save(key: str, code: bytes):
    """Store content under a key, if possible."""
    try:
        place = folder()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(place / f"{key}.o", code)
        if next(_written) % _EVERY == 0:
            _prune(place)
    except _IMPOSSIBLE as error:
        say_once(
            f"object code cannot be stored ({error}): each process generates it again; set DAEDAL_CACHE_DIR to a "
            "writable folder"
        )


def write(path: Path, code: bytes):
    """Write a sealed file with the permissions of new files, atomically, by renaming a temporary file."""
    beside = path.with_name(f"part-{secrets.token_hex(8)}")
    try:
        with open(beside, "xb") as file:
            file.write(sealed(code))
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def sealed(code: bytes) -> bytes:
    """Contents preceded by their digest."""
    return _MAGIC + hashlib.sha256(code).digest() + code


def _limit() -> float:
    """The largest size of the folder, in bytes."""
    given = os.environ.get("DAEDAL_CACHE_SIZE", "")
    try:
        return 1e6 * (float(given) if given else LARGEST)
    except ValueError:
        say_once(f"DAEDAL_CACHE_SIZE={given!r} is not a number of megabytes; the limit is {LARGEST}")
        return 1e6 * LARGEST


def _prune(place: Path):
    """Remove the least recently used files, down to nine tenths of the limit, and abandoned temporary files."""
    limit = _limit()
    files = []
    for file in place.iterdir():
        try:
            found = file.stat()
        except OSError:
            continue  # removed by another process
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
    """Print a message on stderr; errors in printing are ignored."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be full, closed or None
        sys.stderr.write(f"daedal: {message}\n")
        sys.stderr.flush()


@cache
def say_once(message: str):
    """Print a message on stderr, once per process."""
    say(message)
