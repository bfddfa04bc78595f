"""What every solver of the benchmark offers: prepare a run, run it, say what came out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from benchmarks.cases import Case
from benchmarks.mechanisms import FORMS

Array = np.ndarray


FORM_MARKERS = {"ggl": "v", "ggl1": "^"}


class SolveFailure(Exception):
    """The solver gave up; the text is what it told the user."""


@dataclass(frozen=True)
class Level:
    """One rung of the work-precision ladder: tolerances, or a number of elements for a fixed grid."""

    rtol: float
    atol: float
    elements: int = 0

    @property
    def label(self) -> str:
        return f"N={self.elements}" if self.elements else f"{self.rtol:.0e}"


@dataclass(frozen=True)
class Outcome:
    """The end point and, where known, the residual evaluations (those for the Jacobian included) and the steps."""

    y: Array
    evaluations: int | None = None
    steps: int | None = None


class Solver(ABC):
    """A solver set up for one case.

    ``prepare`` does what a user does once for a problem and a tolerance (building, compiling); it returns the call to
    be timed, which is everything a user repeats to solve the problem again. ``outcome`` reads its result, untimed.
    ``module`` is what a user imports, if it is not the package itself. ``form`` is that in which the solver takes
    mechanisms, see ``benchmarks.mechanisms``; a solver with a form runs on mechanisms only, one without a form on the
    other cases only.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    package: ClassVar[str]
    module: ClassVar[str] = ""
    requires: ClassVar[tuple[str, ...]] = ()
    callbacks: ClassVar[str]
    family: ClassVar[str] = "BDF"
    form: ClassVar[str] = ""
    marker: ClassVar[str] = ""

    def __init__(self, case: Case, counting: bool = False) -> None:
        self.case = case.in_form(self.form)

    @classmethod
    def takes(cls, case: Case) -> bool:
        """Whether the solver is to run on this case."""
        return bool(cls.form) == (case.mechanism is not None) and cls.handles(case)

    @classmethod
    @abstractmethod
    def handles(cls, case: Case) -> bool:
        """Whether this solver can be given the case at all."""

    @classmethod
    def levels(cls, case: Case, rtols: tuple[float, ...]) -> list[Level]:
        """The ladder this solver climbs."""
        return [Level(rtol, rtol * case.atol_per_rtol) for rtol in rtols]

    @abstractmethod
    def prepare(self, level: Level) -> Callable[[], Any]:
        """The call to be timed."""

    @abstractmethod
    def outcome(self, raw: Any) -> Outcome:
        """What the timed call returned, read."""


class ResidualSolver(Solver):
    """A solver that takes a residual, interpreted or through Numba.

    ``function`` returns the residual, ``fill`` stores it in its last argument. With ``counting`` both count calls.
    """

    calls = 0

    def __init__(self, case: Case, counting: bool = False) -> None:
        super().__init__(case)
        case = self.case
        plain, params = case.residual, case.params
        if self.callbacks == "compiled":
            plain, into = compiled(case.compiled_residual or case.residual)
            self.function: Callable[..., Array] = lambda t, y, yp: plain(t, y, yp, params)
            self.fill: Callable[..., None] = lambda t, y, yp, out: into(t, y, yp, out, params)
        else:

            def fill(t: float, y: Array, yp: Array, out: Array) -> None:
                out[:] = plain(t, y, yp, params)

            self.function, self.fill = lambda t, y, yp: plain(t, y, yp, params), fill
        if counting:
            self.count()

    def count(self) -> None:
        """Put a counter in front of both functions, with their signatures, which some solvers look at."""
        function, fill = self.function, self.fill

        def counted_function(t: float, y: Array, yp: Array) -> Array:
            self.calls += 1
            return function(t, y, yp)

        def counted_fill(t: float, y: Array, yp: Array, out: Array) -> None:
            self.calls += 1
            fill(t, y, yp, out)

        self.function, self.fill = counted_function, counted_fill

    @classmethod
    def handles(cls, case: Case) -> bool:
        return case.linear == "dense" and (case.interpreted or cls.callbacks == "compiled")


def in_form(solver: type[Solver], form: str) -> type[Solver]:
    """The same solver for mechanisms in one of their forms."""
    fields = {"name": f"{solver.name}-{form}", "label": f"{solver.label}, {FORMS[form]}", "form": form}
    fields["marker"] = FORM_MARKERS.get(form, "")
    return type(f"{solver.__name__}{form.capitalize()}", (solver,), fields)


@cache
def compiled(function: Callable[..., Array]) -> tuple[Callable[..., Array], Callable[..., None]]:
    """A residual through Numba: returning its values, and storing them in its fourth argument."""
    import numba

    inner = function if hasattr(function, "py_func") else numba.njit(function)

    @numba.njit
    def fill(t: float, y: Array, yp: Array, out: Array, p: Array) -> None:
        out[:] = inner(t, y, yp, p)

    return inner, fill
