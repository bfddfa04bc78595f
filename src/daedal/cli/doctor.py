"""``daedal doctor``."""

import os
import platform
import sys
from pathlib import Path

import numpy as np

import daedal
from daedal.cli.accuracy import largest_error
from daedal.cli.output import print_rows, refuse

_SELF_TEST_ERROR = 1e-4  # a hundred times the relative tolerance of the problem


def doctor() -> None:
    """Check the installation: versions, the cache of compiled code, a problem solved and compared."""
    print(f"Daedal {daedal.__version__}")
    print_rows(
        [
            ("python", f"{platform.python_version()} ({platform.system()} {platform.machine()})"),
            *((package, _version_of(package)) for package in ("numpy", "scipy", "numba", "matplotlib")),
            ("cores", str(cores())),
        ]
    )
    try:
        rows, healthy = _self_test()
    except Exception as error:  # whatever is broken, the report has to be finished
        rows, healthy = [("self-test", f"failed with {type(error).__name__}: {error}")], False
    print_rows([*_cache_report(), *rows])
    if not healthy:
        refuse("the self-test failed; reinstall Daedal and what it needs, or report this output")
    print("All is well.")


def _version_of(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _self_test() -> tuple[list[tuple[str, str]], bool]:
    """Solve Robertson's reaction with interpreted and with compiled equations, and compare with the reference."""
    model = daedal.library.robertson()
    assert model.reference is not None
    rows, healthy = [], True
    for kind, problem in (("self-test", model.problem), ("compiled", model.problem.compiled())):
        first = daedal.solve(problem, model.t_span, model.initial, **model.options)
        again = daedal.solve(problem, model.t_span, model.initial, **model.options)
        error = largest_error(model.reference, again)
        right = error is not None and error.size < _SELF_TEST_ERROR and np.array_equal(first.y, again.y)
        seconds = f"first {first.stats.seconds:.2f} s, again {again.stats.seconds:.4f} s"
        rows.append((kind, f"robertson {seconds}, error {error}: {'right' if right else 'WRONG'}"))
        healthy = healthy and right
    return rows, healthy


def _cache_report() -> list[tuple[str, str]]:
    """Where Numba keeps the compiled kernels, according to the kernels loaded so far."""
    folders = sorted(
        {
            Path(value.stats.cache_path)
            for name, module in list(sys.modules.items())
            if name.startswith("daedal.")
            for value in vars(module).values()
            if getattr(getattr(value, "stats", None), "cache_path", None) and hasattr(value, "py_func")
        }
    )
    if not folders:
        return [("cache", "none found: every process compiles anew")]
    files = [
        path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.suffix in (".nbi", ".nbc")
    ]
    size = sum(path.stat().st_size for path in files)
    writable = all(os.access(folder, os.W_OK) for folder in folders if folder.is_dir())
    remedy = "writable" if writable else "NOT writable: set NUMBA_CACHE_DIR to a folder that is"
    return [("cache", f"{len(files)} files, {size / 1e6:.1f} MB, {remedy}"), *(("", str(folder)) for folder in folders)]
