"""Solutions as files: the layout of each class, and how it is restored."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from collections.abc import Mapping
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.lib import format as npy

from daedal.errors import InvalidFileError, InvalidProblemError
from daedal.solution.schema import Arrays, Format, Plain, RecordFormat, expect, is_plain, refuse

FORMAT = "daedal solution"
VERSION = 1
_LAYOUTS = {  # classes that a file may contain, with the module of their layout
    "Solution": "daedal.solution.solution_layout",
    "SecondOrderSolution": "daedal.solution.solution_layout",
    "MechanicalSolution": "daedal.solution.solution_layout",
    "HessenbergSolution": "daedal.solution.solution_layout",
    "RecognisedSolution": "daedal.index.reduction.recognised_solution",
    "HybridSolution": "daedal.hybrid.hybrid_layout",
    "KinematicSolution": "daedal.solution.machine_record",
    "Ensemble": "daedal.ensembles.ensemble",
}
_KEYS = ("format", "version", "daedal", "class", "solution", "params", "attributes")


def layout_of(name: str) -> RecordFormat:
    """The file layout of a class of solutions."""
    return import_module(_LAYOUTS[name]).LAYOUTS[name]


def save(solution: Any, path: str | Path) -> Path:
    """Write a solution to a file; see :meth:`daedal.Solution.save`."""
    target = _checked_path(path)
    name = type(solution).__name__
    if name not in _LAYOUTS:
        raise InvalidProblemError(f"a {name} cannot be saved; {', '.join(_LAYOUTS)} can")
    if not is_plain(solution.attributes):
        raise InvalidProblemError(
            "attributes must hold numbers, texts, arrays, and lists and mappings (with texts as keys) of them"
        )
    arrays = ArraysToWrite()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "daedal": import_module("daedal").__version__,
        "class": name,
        "solution": layout_of(name).encode(solution, "", arrays),
        "params": Plain().encode(solution.params if is_plain(solution.params) else None, "params", arrays),
        "attributes": Plain().encode(solution.attributes, "attributes", arrays),
    }
    write(target, header, arrays.members)
    return target


def load(path: str | Path) -> Any:
    """Read a solution or an ensemble from a file that ``sol.save(path)`` has written.

    The file holds data only; loading it executes no code. The solution has the same values, names, events and
    statistics, and supports the same queries and plots, without the functions of the problem.

    Parameters
    ----------
    path : path

    Returns
    -------
    Solution or Ensemble
        An object of the class that was saved.

    Raises
    ------
    InvalidFileError
        If the file is damaged, of a newer version, or not written by Daedal; the message states the reason.

    Examples
    --------
    >>> import daedal
    >>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], names=["x"])
    >>> again = daedal.load(sol.save("decay.npz"))
    >>> bool(again["x"][-1] == sol["x"][-1] and again(0.5) == sol(0.5))
    True
    """
    source = Path(path)
    try:
        header, members = read(source)
        return _solution(header, members)
    except InvalidFileError as error:
        raise InvalidFileError(f"{source} cannot be read: {error}") from error
    except RecursionError as error:
        raise InvalidFileError(f"{source} cannot be read: its header is nested too deeply") from error


def _solution(header: dict[str, Any], members: dict[str, Any]) -> Any:
    expect(header.get("format") == FORMAT, "", "does not identify a Daedal solution")
    version = header.get("version")
    expect(isinstance(version, int) and not isinstance(version, bool), "", "has no format version")
    if version != VERSION:
        raise InvalidFileError(
            f"it has format version {version}, but this Daedal reads version {VERSION}; "
            "a newer Daedal may read it: pip install --upgrade daedal"
        )
    expect(set(header) == set(_KEYS), "", "does not have the entries of a solution")
    name = header["class"]
    expect(
        isinstance(name, str) and name in _LAYOUTS,
        "",
        f"has the class {str(name)[:40]!r}, which is not a solution class",
    )
    arrays = ArraysRead(members)
    solution = layout_of(name).decode(header["solution"], "", arrays, {})
    solution.params = Plain().decode(header["params"], "params", arrays, {})
    attributes = Plain().decode(header["attributes"], "attributes", arrays, {})
    expect(isinstance(attributes, dict), "attributes", "is not a mapping")
    solution.attributes = attributes
    return solution


def _checked_path(path: str | Path) -> Path:
    target = Path(path)
    if target.suffix == "":
        return target.with_name(f"{target.name}.npz")
    if target.suffix.lower() != ".npz":
        raise InvalidProblemError(
            f"path={str(path)!r} must end in .npz; to export, use sol.to_csv(path), sol.to_dataframe() "
            "or sol.to_xarray()"
        )
    return target


class AnySolution(Format):
    """A solution nested in another one; its class must be one of those given."""

    def __init__(self, *classes: str):
        self._classes = classes

    def encode(self, value, path: str, arrays: Arrays):
        """The class name and the fields of a solution, as plain data."""
        name = type(value).__name__
        return {"class": name, "solution": layout_of(name).encode(value, f"{path}/solution", arrays)}

    def decode(self, data, path, arrays, sizes):
        """Restore the solution."""
        expect(isinstance(data, dict) and set(data) == {"class", "solution"}, path, "is not a solution")
        expect(data["class"] in self._classes, path, f"is not one of {', '.join(self._classes)}")
        return layout_of(data["class"]).decode(data["solution"], f"{path}/solution", arrays, {})


HEADER = "header.json"
_TYPES = ("f8", "i8")
_LONGEST_HEADER = 1000  # maximum number of bytes in the header of one array
_ENTRIES = 100_000  # maximum number of members of an archive
_DAMAGE = (zipfile.BadZipFile, EOFError, OSError, ValueError, KeyError, OverflowError, RuntimeError, struct.error)
"""Exceptions that zipfile and json raise for damaged files.

RecursionError and NotImplementedError are subclasses of RuntimeError.
"""


class ArraysToWrite(Arrays):
    """Arrays collected for a file."""

    def __init__(self) -> None:
        self.own: dict[str, np.ndarray] = {}
        self._parts: dict[str, list[np.ndarray]] = {kind: [] for kind in _TYPES}
        self._lengths = dict.fromkeys(_TYPES, 0)

    def put(self, path, array):
        """Add an array: those of the solution itself become separate members, those of its components are joined."""
        kind = array.dtype.str[1:]
        if "/" not in path:
            self.own[path] = array
            return {"member": path}
        begin = self._lengths[kind]
        self._parts[kind].append(array.ravel())
        self._lengths[kind] += array.size
        return {"part": kind, "begin": begin, "shape": list(array.shape)}

    def get(self, path, data):
        """Raise, since writing does not load arrays."""
        raise NotImplementedError

    @property
    def members(self) -> dict[str, np.ndarray]:
        """All arrays by member name."""
        joined = {f"parts_{kind}": np.concatenate(parts) for kind, parts in self._parts.items() if parts}
        return self.own | joined


class ArraysRead(Arrays):
    """Arrays read from a file."""

    def __init__(self, members: Mapping[str, np.ndarray]):
        self._members = members

    def put(self, path, array):
        """Raise, since reading does not store arrays."""
        raise NotImplementedError

    def get(self, path, data):
        """Read an array: the member with the name `path`, or a slice of the joined arrays."""
        expect(isinstance(data, dict), path, "is not an array")
        if set(data) == {"member"}:
            expect(data["member"] == path and path in self._members, path, "is missing")
            return self._members[path]
        expect(set(data) == {"part", "begin", "shape"} and data["part"] in _TYPES, path, "is not an array")
        whole = self._members.get(f"parts_{data['part']}", np.empty(0, dtype=data["part"]))
        begin, shape = data["begin"], data["shape"]
        right = isinstance(shape, list) and len(shape) <= 4 and all(_is_size(k) for k in (begin, *shape))
        expect(right and begin + prod(shape) <= whole.size, path, "lies outside the arrays of the file")
        return whole[begin : begin + prod(shape)].reshape(shape).copy()


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**48


def write(path: Path, header: Mapping[str, Any], members: Mapping[str, np.ndarray]) -> None:
    """Write the file atomically: an existing file is replaced only when the new one is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with part.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_entry(HEADER), json.dumps(header, allow_nan=False, ensure_ascii=False))
            for member, array in members.items():
                content = io.BytesIO()
                npy.write_array(content, array.astype(array.dtype.newbyteorder("<"), copy=False), allow_pickle=False)
                archive.writestr(_entry(f"{member}.npy"), content.getbuffer())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _entry(name: str) -> zipfile.ZipInfo:
    """Entry of a member in the archive, without a modification time, so that equal solutions give identical files."""
    return zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a file. Devices and pipes are not opened, since reading them could block or never end."""
    if path.exists() and not path.is_file():
        raise InvalidFileError("it is a folder" if path.is_dir() else "it is a device or a pipe, not a file")
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                contents = _contents(archive, os.fstat(file.fileno()).st_size)
            header = _header(contents.pop(HEADER))
            return header, {name.removesuffix(".npy"): _array(name, content) for name, content in contents.items()}
        except InvalidFileError:
            raise
        except _DAMAGE as error:
            raise InvalidFileError(f"it is damaged, or not a Daedal solution ({error})") from error


def _contents(archive: zipfile.ZipFile, size: int) -> dict[str, bytes]:
    """The bytes of all members; zipfile verifies their checksums."""
    entries = archive.infolist()
    listed = [entry.filename for entry in entries]
    expect(HEADER in listed, "", "is missing: Daedal did not write this file")
    expect(len(set(listed)) == len(listed) <= _ENTRIES, "", "has members of the same name, or too many members")
    for entry in entries:
        plain = entry.compress_type == zipfile.ZIP_STORED and entry.compress_size == entry.file_size
        expect(plain and not entry.flag_bits & 1, entry.filename, "is compressed; Daedal files are not")
        right = entry.filename == HEADER or (entry.filename.endswith(".npy") and "/" not in entry.filename)
        expect(right and "\\" not in entry.filename, repr(entry.filename), "is not a valid member name")
    expect(sum(entry.file_size for entry in entries) <= size, "", "declares more data than the file holds")
    return {entry.filename: archive.read(entry) for entry in entries}


def _header(content: bytes) -> dict[str, Any]:
    def constant(word: str):
        refuse("", f"holds {word}")

    header = json.loads(content.decode("utf-8"), parse_constant=constant)
    expect(isinstance(header, dict), "", "is not a mapping")
    return header


def _array(name: str, content: bytes) -> np.ndarray:
    """An array of plain numbers, whose header must match its data."""
    file = io.BytesIO(content)
    expect(npy.read_magic(file) == (1, 0), name, "has an unknown format")
    try:
        shape, is_fortran, dtype = npy.read_array_header_1_0(file, max_header_size=_LONGEST_HEADER)
    except Exception as error:  # exceptions of the tokenizer and the types that NumPy's reader propagates
        raise InvalidFileError(f"{name} is not a NumPy array ({error})") from error
    expect(dtype.str[1:] in _TYPES and dtype.names is None, name, f"holds {dtype}, not plain numbers")
    right = not is_fortran and len(shape) <= 4 and all(_is_size(k) for k in shape)
    expect(right, name, f"has the unsupported shape {shape}")
    rest = content[file.tell() :]
    expect(prod(shape) * dtype.itemsize == len(rest), name, f"does not match its shape {shape}")
    return np.frombuffer(rest, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="))
