"""A process that compiles: reads requests as lines of JSON, writes files, and answers each with a line."""

from __future__ import annotations

import json
import sys
import time
import traceback
from pathlib import Path

ANSWER = "daedal-worker: "
"""How the line begins that answers a request; others are output of the compiler."""


def main():
    """Answer until the requests end."""
    from daedal.kernels.compiler import compile_unit

    for line in sys.stdin:
        asked = json.loads(line)
        begun = time.perf_counter()
        try:
            made = compile_unit(asked["unit"], asked["levels"])
            files = []
            for level, compiled in made.items():
                path = Path(asked["folder"]) / f"{asked['unit']}.{level}"
                path.write_bytes(compiled.packed())
                files.append(str(path))
            answer = {"files": files, "seconds": time.perf_counter() - begun}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(ANSWER + json.dumps(answer), flush=True)
