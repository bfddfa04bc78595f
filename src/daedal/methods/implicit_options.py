"""Options shared by implicit methods: matrix storage, error test components, sensitivities."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from daedal.errors import InvalidProblemError

_ERROR_TESTS = ("auto", "all", "differential")
_SOLVERS = ("auto", "dense", "banded", "sparse")
CORRECTORS = ("simultaneous", "staggered", "staggered direct")
"""How a step computes a solution and its sensitivities."""


def check_name(option: str, given: Any, known: Collection[str], further: str = "") -> None:
    """Raise unless the value is one of the known names."""
    if not isinstance(given, str) or given not in known:
        raise InvalidProblemError(f"{option} must be one of {', '.join(map(repr, known))}, got {given!r}{further}")


def check_matrix_options(method: Any) -> None:
    """Raise for an unknown `linear_solver` or `error_test`."""
    check_name(f"linear_solver of {type(method).__name__}", method.linear_solver, _SOLVERS, "; GMRES requires DASSL")
    if isinstance(method.error_test, str) and method.error_test not in _ERROR_TESTS:
        raise InvalidProblemError(
            f"unknown error_test '{method.error_test}'; known: {', '.join(_ERROR_TESTS)}, or a mask"
        )


def storage_kind(problem: Any, linear_solver: str = "auto") -> str:
    """Storage of a problem's matrices, as requested or according to its structure."""
    if linear_solver != "auto":
        return linear_solver
    return "sparse" if problem.sparsity is not None else "banded" if problem.bandwidth is not None else "dense"


def check_corrector(given: Any, known: tuple[str, ...] = CORRECTORS) -> None:
    """Raise for an unknown `corrector`."""
    if given != "auto" and given not in known:
        raise InvalidProblemError(f"unknown corrector {given!r}; known: {', '.join(known)}")
