"""Options that implicit methods share: storage of matrices, components of the error test, sensitivities in a step."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from daedal.errors import InvalidProblemError

_ERROR_TESTS = ("auto", "all", "differential")
_SOLVERS = ("auto", "dense", "banded", "sparse")
CORRECTORS = ("simultaneous", "staggered", "staggered direct")
"""How a solution and its sensitivities are found in a step."""


def check_name(option: str, given: Any, known: Collection[str], further: str = "") -> None:
    """Refuse what is not one of the known names."""
    if not isinstance(given, str) or given not in known:
        raise InvalidProblemError(f"{option} must be one of {', '.join(map(repr, known))}, got {given!r}{further}")


def check_matrix_options(method: Any) -> None:
    """Refuse a `linear_solver` or a name of an `error_test` that there is not."""
    check_name(f"linear_solver of {type(method).__name__}", method.linear_solver, _SOLVERS, "; GMRES goes with DASSL")
    if isinstance(method.error_test, str) and method.error_test not in _ERROR_TESTS:
        raise InvalidProblemError(
            f"unknown error_test '{method.error_test}'; known: {', '.join(_ERROR_TESTS)}, or a mask"
        )


def storage_kind(problem: Any, linear_solver: str = "auto") -> str:
    """How a problem's matrices are stored: as it is asked for, or by its structure."""
    if linear_solver != "auto":
        return linear_solver
    return "sparse" if problem.sparsity is not None else "banded" if problem.bandwidth is not None else "dense"


def check_corrector(given: Any, known: tuple[str, ...] = CORRECTORS) -> None:
    """Refuse what is none of them; "auto" is the first."""
    if given != "auto" and given not in known:
        raise InvalidProblemError(f"unknown corrector {given!r}; known: {', '.join(known)}")
