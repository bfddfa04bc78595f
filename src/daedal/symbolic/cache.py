"""Object code on disk: under a digest of the program, the version and the processor.

A file is a digest and the code that it is of; one that does not fit its digest counts as absent. Files are written
beside their place and moved there, so that a reader never sees half of one, whoever writes at the same time. Where no
file can be written or read, code is generated anew in each process.
"""

import hashlib
import os
import sys
import tempfile
from pathlib import Path

MOST_FILES = 1000
"""Files kept in the folder; those not used for longest go first."""
_MAGIC = b"daedal object code 1\n"
_IMPOSSIBLE = (OSError, RuntimeError, ValueError)  # also: no home folder, a name that is none


def folder() -> Path:
    """Where object code is kept: ``DAEDAL_CACHE_DIR``, otherwise the folder for caches of the user."""
    given = os.environ.get("DAEDAL_CACHE_DIR")
    if given:
        return Path(given)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "daedal"


def load(key: str) -> bytes | None:
    """The object code under a key, or None if there is none that is whole."""
    try:
        path = folder() / f"{key}.o"
        content = path.read_bytes()
        code = content[len(_MAGIC) + 32 :]
        if content != _sealed(code):
            return None
        os.utime(path)
    except _IMPOSSIBLE:
        return None
    return code


def store(key: str, code: bytes):
    """Keep object code under a key, if that is possible."""
    try:
        place = folder()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=place, prefix="part-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_sealed(code))
            os.replace(part, place / f"{key}.o")
        except BaseException:
            os.unlink(part)
            raise
        _prune(place)
    except _IMPOSSIBLE:
        return


def _sealed(code: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(code).digest() + code


def _prune(place: Path):
    files = list(place.glob("*.o"))
    if len(files) > MOST_FILES:
        files.sort(key=lambda file: file.stat().st_mtime)
        for file in files[: len(files) - MOST_FILES]:
            file.unlink(missing_ok=True)
