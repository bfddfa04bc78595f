"""Checkpoints: parts in files of a folder, from which a killed run resumes.

``request.json`` contains a digest of everything that affects the results; ``part-FIRST-COUNT.npz`` the results of some
members. Each file is written under a temporary name and renamed, so that files are always complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from daedal.common.messages import warn
from daedal.common.tabular import plural
from daedal.ensembles.columns import Chunk, Listed, Members, Named, Streamed
from daedal.ensembles.inputs import EnsembleRequest
from daedal.ensembles.part import NOT_RUN, Part, StateLayout
from daedal.errors import InvalidProblemError

_SECONDS = 1.0  # seconds between two files


class Checkpoint:
    """A folder with the parts of one ensemble."""

    def __init__(self, path: Any, request: EnsembleRequest, members: Members):
        self.path = Path(path)
        self.trouble = ""  # why no more files are written; empty if they are
        self._waiting: list[Part] = []
        self._written = time.monotonic()
        digest = request_digest(request, members)
        about = self.path / "request.json"
        if self.path.exists() and not self.path.is_dir():
            raise InvalidProblemError(f"checkpoint: {self.path} is a file; specify a folder")
        if about.exists():
            known = json.loads(about.read_text(encoding="utf-8"))["digest"]
            if known != digest:
                raise InvalidProblemError(
                    f"checkpoint: {self.path} belongs to a different request (problem, options, starts, "
                    "parameters or output differ). Remedy: use another folder, or remove this one"
                )
        else:
            self.path.mkdir(parents=True, exist_ok=True)
            _write(about, json.dumps({"digest": digest, "members": members.count}).encode())

    def stored(self) -> Iterator[Part]:
        """The stored parts; damaged files are skipped, and their members run again."""
        for file in sorted(self.path.glob("part-*.npz")):
            try:
                yield _read(file)
            except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
                warn(f"checkpoint: {file} cannot be read ({error}); its members are run again")

    def add(self, part: Part) -> None:
        """Store a part. Parts are written together, once per second."""
        self._waiting.append(part)
        if time.monotonic() - self._written > _SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write pending parts. A full disk stops the checkpoints, not the ensemble."""
        for part in self._waiting:
            if self.trouble:
                break
            try:
                _write(self.path / f"part-{part.first:010d}-{part.count}.npz", _packed(part))
            except OSError as error:
                self.trouble = f"No checkpoints after {plural(part.first, 'member')}: {error}."
                warn(f"checkpoint: {error}; the runs continue without checkpoints")
        self._waiting = []
        self._written = time.monotonic()


def _packed(part: Part) -> bytes:
    from io import BytesIO

    layout = None if part.layout is None else [list(part.layout.names), part.layout.n_q]
    about = {
        "number": part.number,
        "first": part.first,
        "count": part.count,
        "messages": part.messages,
        "events": part.events,
        "layout": layout,
        "fell_back": part.fell_back,
    }
    file = BytesIO()
    named: dict[str, Any] = {f"array:{name}": values for name, values in part.arrays.items()}
    np.savez(file, about=np.array(json.dumps(about)), status=part.status, t_final=part.t_final, **named)
    return file.getvalue()


def _read(file: Path) -> Part:
    with np.load(file, allow_pickle=False) as data:
        about = json.loads(str(data["about"]))
        layout = about["layout"]
        return Part(
            about["number"],
            about["first"],
            about["count"],
            data["status"],
            data["t_final"],
            {name.removeprefix("array:"): data[name] for name in data.files if name.startswith("array:")},
            {int(member): message for member, message in about["messages"].items()},
            [tuple(row) for row in about["events"]],
            None if layout is None else StateLayout(tuple(layout[0]), layout[1]),
            about["fell_back"],
        )


def _write(path: Path, data: bytes) -> None:
    """Write a file completely or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def without(chunks: Iterator[Chunk], done: np.ndarray) -> Iterator[Chunk]:
    """The members of chunks that are not finished."""
    for chunk in chunks:
        known = done[chunk.first : chunk.first + chunk.count]
        if not known.any():
            yield chunk
            continue
        rows = np.ones(chunk.count, dtype=bool)
        rows[: known.size] = ~known
        if rows.any():
            yield from chunk.only(np.flatnonzero(rows).tolist())


def done_members(parts: list[Part]) -> np.ndarray:
    """Which members have been run."""
    last = max((part.first + part.count for part in parts), default=0)
    done = np.zeros(last, dtype=bool)
    for part in parts:
        done[part.first : part.first + part.count] |= part.status != NOT_RUN
    return done


# --- digests ----------------------------------------------------------------------------------------------------------


def request_digest(request: EnsembleRequest, members: Members) -> str:
    """A digest of all data that affect the results: problem, settings, times, outputs, starts and parameters."""
    found = hashlib.sha256()
    settings = request.settings
    parts: list[Any] = [_version(), request.problem, vars(settings), request.span, request.t_eval, request.t_stop]
    parts += [request.outputs, request.keeps_states, request.keeps_events]
    for values in (members.starts, members.params):
        if isinstance(values, Streamed):
            parts.append("stream")
        elif isinstance(values, Listed):
            parts.append(list(values.items))
        elif values is not None:
            columns = values.columns.items() if isinstance(values, Named) else enumerate(values.columns)
            parts += [(key, None if column is None else column.values) for key, column in columns]
    _add(found, parts, set())
    return found.hexdigest()


def _version() -> str:
    """Version of Daedal, on which the bits of the results depend."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("daedal")
    except PackageNotFoundError:
        return ""


def _add(found: Any, value: Any, seen: set[int]) -> None:
    """Add a value of any structure; functions are represented by their code and closures."""
    found.update(type(value).__name__.encode())
    if value is None or isinstance(value, (str, bytes, int, float, complex, bool)):
        found.update(repr(value).encode())
    elif isinstance(value, np.ndarray) and value.dtype != object:
        found.update(repr((value.shape, value.dtype.str)).encode() + np.ascontiguousarray(value).tobytes())
    elif id(value) in seen:
        return
    else:
        seen.add(id(value))
        for part in _parts(value):
            _add(found, part, seen)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [part for item in value.items() for part in item]
    if isinstance(value, (list, tuple, np.ndarray)):
        return list(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, FunctionType):
        enclosed = [cell.cell_contents for cell in value.__closure__ or ()]
        return [value.__qualname__, value.__code__, value.__defaults__, *enclosed]
    if isinstance(value, CodeType):
        return [value.co_code, value.co_names, value.co_consts]
    if hasattr(value, "py_func"):
        return [value.py_func]
    if hasattr(value, "toarray"):
        return [value.toarray()]
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        return [getattr(value, name, None) for name in fields]
    inner = getattr(value, "__dict__", None)
    return [type(value).__qualname__, *([] if inner is None or isinstance(value, type) else [dict(inner)])]
