"""``daedal doctor``."""

import os
import platform

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
            *((package, _version_of(package)) for package in ("numpy", "scipy", "llvmlite", "numba", "matplotlib")),
            ("cores", str(cores())),
        ]
    )
    try:
        rows, healthy = _self_test()
    except Exception as error:  # whatever is broken, the report has to be finished
        rows, healthy = [("self-test", f"failed with {type(error).__name__}: {error}")], False
    print_rows([*_kernel_report(), *rows])
    if not healthy:
        refuse("the self-test failed; reinstall Daedal and what it needs, or report this output")
    print("All is well.")


def _version_of(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed, and needed only for functions of your own" if package == "numba" else "missing"


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _self_test() -> tuple[list[tuple[str, str]], bool]:
    """Solve Robertson's reaction with equations that are called and with traced ones; compare with the reference."""
    model = daedal.library.robertson()
    assert model.reference is not None
    rows, healthy = [], True
    for kind, compile in (("called", "never"), ("traced", "always")):
        first = daedal.solve(model.problem, model.t_span, model.initial, compile=compile, **model.options)
        again = daedal.solve(model.problem, model.t_span, model.initial, compile=compile, **model.options)
        error = largest_error(model.reference, again)
        right = error is not None and error.size < _SELF_TEST_ERROR and np.array_equal(first.y, again.y)
        seconds = f"first {first.stats.seconds:.2f} s, again {again.stats.seconds:.4f} s"
        rows.append((kind, f"robertson {seconds}, error {error}: {'right' if right else 'WRONG'}"))
        healthy = healthy and right
    return rows, healthy


def _kernel_report() -> list[tuple[str, str]]:
    """Where the machine code of kernels and of traced functions is."""
    from daedal import object_store
    from daedal.kernels.levels import host_levels
    from daedal.kernels.units import SHIPPED, all_units, find

    units = all_units()
    there = sum(find(unit) is not None for unit in units)
    source = "installed" if SHIPPED.is_dir() else "built"
    remedy = "" if there == len(units) else "; `python -m daedal.build --all` builds the others, as first use does"
    folder = object_store.folder()
    files = list(folder.glob("*.o")) if folder.is_dir() else []
    size = sum(file.stat().st_size for file in files) / 1e6
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    writable = "writable" if os.access(nearest, os.W_OK) else "NOT writable: set DAEDAL_CACHE_DIR to a folder that is"
    return [
        ("kernels", f"{there} of {len(units)} units {source}, for {host_levels()[0]}{remedy}"),
        ("cache", f"{len(files)} files, {size:.1f} MB, {writable}"),
        ("", str(folder)),
    ]
