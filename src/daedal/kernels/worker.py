"""A compiling process: reads requests as lines of JSON, and answers each with a line of JSON and object code.

Requests and answers use separate descriptors, so that they do not mix with what a module reads or prints when imported.
"""

from __future__ import annotations

import importlib
import json
import os
import time
import traceback
from pathlib import Path
from typing import Any

from daedal.kernels.sources import changed, located, source_stamp

ANSWER = b"daedal-worker: "
"""Prefix of an answer line, which distinguishes it from output printed before this module was imported."""


def main():
    """Answer requests until they end.

    The last request is null, since a fork of the other process may keep the pipe open, which would prevent end-of-file.
    """
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        for line in requests:
            asked = json.loads(line)
            if asked is None:
                return
            told, contents = _answer(Path(asked["source"]), asked["unit"], asked["levels"])
            told["sizes"] = [len(content) for content in contents]
            answers.write(b"\n" + ANSWER + json.dumps(told).encode() + b"\n" + b"".join(contents))
            answers.flush()


def _answer(source: Path, unit: str, levels: list[str] | None) -> tuple[dict[str, Any], list[bytes]]:
    """The answer for a unit, and its packed object code for each level."""
    begun = time.perf_counter()
    found = located(unit)
    if found != source:
        return {"mismatch": f"another process would import {found or 'nothing'} instead of {source}"}, []
    source_stamp(source)  # reads all sources before they are imported
    told, contents = _compiled(source, unit, levels)
    if changed(source):  # since they were imported, for this or an earlier unit
        return {"changed": True}, []
    return {**told, "seconds": time.perf_counter() - begun}, contents


def _compiled(source: Path, unit: str, levels: list[str] | None) -> tuple[dict[str, Any], list[bytes]]:
    from daedal.kernels.compiler import compile_unit

    try:
        module = importlib.import_module(unit)
    except (Exception, SystemExit) as error:
        return {"mismatch": f"another process cannot import it ({type(error).__name__}: {error})"}, []
    if Path(module.__file__ or "").resolve() != source:
        return {"mismatch": f"another process imports {module.__file__} instead of {source}"}, []
    try:
        return {}, [compiled.packed() for compiled in compile_unit(unit, levels).values()]
    except Exception:
        return {"error": traceback.format_exc()}, []
