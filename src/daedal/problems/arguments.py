"""Arguments of a user's functions of the state, recognised by parameter name, or by position if the names are unknown.

Events, guards, resets, outputs and costs may omit arguments that they do not need. The remaining ones are recognised by
name: the names used by the problem's own functions or those of the manual.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.hessenberg import HessenbergDAE
from daedal.problems.implicit import ImplicitDAE
from daedal.problems.linear_dae import LinearDAE
from daedal.problems.mechanical import MechanicalSystem
from daedal.problems.quasilinear import Quasilinear
from daedal.problems.second_order_problem import SecondOrderDAE
from daedal.problems.semi_explicit import SemiExplicitDAE

TIME, WHOLE, FIRST, SECOND, PARAMS = "t", "whole", "first", "second", "params"
"""Roles of arguments: the time, the whole state, its first or second part, y', or the parameters."""

AMBIGUOUS = "ambiguous"

_LETTERS = {
    MechanicalSystem: ("q", "v"),
    SemiExplicitDAE: ("y", "z"),
    LinearDAE: ("x", "y"),
    SecondOrderDAE: ("x", "xp"),
    HessenbergDAE: ("z", "y"),
    ImplicitDAE: ("y", "yp"),
}
_TIMES = ("t", "time")
_PARAMS = ("p", "par", "pars", "param", "params", "parameters")
_DERIVATIVES = ("{}p", "{}_p", "d{}", "d{}dt", "d{}_dt", "{}dot", "{}_dot", "{}d", "{}prime", "{}_prime")
_OWN = ("f", "forces", "residual")  # functions of the state that define a problem
_AS_THEY_ARE = (TIME, WHOLE), (TIME, FIRST, SECOND), (TIME, FIRST, SECOND, PARAMS)


def positional_names(function) -> list[str] | None:
    """Names of the required arguments of a function; None if its signature is unknown."""
    try:
        parameters = inspect.signature(getattr(function, "py_func", function)).parameters.values()
    except (TypeError, ValueError):
        return None
    return [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]


def state_split(problem: Any) -> int | None:
    """Index at which the state vector splits into the two arguments of functions of the state."""
    if isinstance(problem, MechanicalSystem):
        return problem.n_q
    if isinstance(problem, SemiExplicitDAE):
        return problem.n_y
    if isinstance(problem, LinearDAE):
        return problem.n_x
    if isinstance(problem, SecondOrderDAE):
        return problem.n
    return (problem.order - 1) * problem.n_x or None if isinstance(problem, HessenbergDAE) else None


@dataclass(frozen=True)
class StateArguments:
    """Permitted arguments of functions of a problem's state.

    Attributes
    ----------
    problem : object
        Its class and functions determine the names of the arguments.
    has_params : bool
    is_split : bool
        Whether the state arguments are parts of one vector; otherwise they are y and y'.
    further : sequence of str
        Names of additional arguments after the state.
    """

    problem: Any
    has_params: bool
    is_split: bool
    further: Sequence[str] = ()

    @property
    def letters(self) -> tuple[str, str]:
        """Names used in the manual for the state or its first part, and for y' or the second part."""
        return next((letters for kind, letters in _LETTERS.items() if isinstance(self.problem, kind)), ("y", "yp"))

    def of(self, function: Any, what: str, *, state_only: bool = False) -> tuple[str, ...]:
        """Role of each argument of a function.

        Parameters
        ----------
        function : callable
        what : str
            Name for messages, used if the function has none.
        state_only : bool
            Whether to exclude y'.
        """
        places = self._of(function, what)
        if state_only and SECOND in places and not self.is_split:
            first, second = self.letters
            forms = f"(t, {first})" + (f" or (t, {first}, p)" if self.has_params else "")
            raise InvalidProblemError(f"{what} takes {second}, but it is a function of the state; expected {forms}")
        return places

    def _of(self, function: Any, what: str) -> tuple[str, ...]:
        names = positional_names(function)
        if names is None:
            return TIME, FIRST, SECOND
        known = [self._known(name, names) for name in names]
        if len(names) > 1 and None not in known and len(set(known)) == len(known):
            if not {FIRST, SECOND}.issubset(known):
                known = [self._alone(name, str(kind)) for name, kind in zip(names, known, strict=True)]
            if AMBIGUOUS not in known:
                return tuple(map(str, known))
        expected = self._by_position(known)
        if expected is None or any(
            kind not in (None, place) and (kind, place) != (FIRST, WHOLE)
            for kind, place in zip(known, expected, strict=True)
        ):
            raise InvalidProblemError(self._refusal(names, what))
        return expected

    def _alone(self, name: str, kind: str) -> str:
        """Role of a single state argument: y is the whole state, as in solutions."""
        if name == "y" and self.is_split and kind in (FIRST, SECOND):
            return AMBIGUOUS if self._own.get(name) == SECOND else WHOLE
        return WHOLE if kind == FIRST and not self.is_split else kind

    def _by_position(self, known: Sequence[str | None]) -> tuple[str, ...] | None:
        """Roles of arguments by position; None if ambiguous."""
        if len(known) == 2:
            return TIME, WHOLE
        if len(known) == 3 and PARAMS in known:
            return TIME, WHOLE, PARAMS
        if len(known) < 3 or (len(known) == 3 and self.has_params and known[2] is None):
            return None
        rest = list(known[3:])
        if rest and rest[-1] is None and self.has_params:
            rest[-1] = PARAMS
        return None if None in rest else (TIME, FIRST, SECOND, *map(str, rest))

    def _known(self, name: str, names: Sequence[str]) -> str | None:
        """Role of the argument of this name; None if the name is unknown."""
        first, second = self.letters
        states = {first, *names[1:2], *(own for own, kind in self._own.items() if kind == FIRST)}
        if name in self._own:
            return self._own[name]
        if name in _TIMES:
            return TIME
        if name in (first, second):
            return FIRST if name == first else SECOND
        if name in self.further:
            return name
        if self.has_params and name in _PARAMS:
            return PARAMS
        if name in {form.format(state) for state in states for form in _DERIVATIVES}:
            return SECOND if second in ("yp", "xp", "v") else AMBIGUOUS
        return None

    @cached_property
    def _own(self) -> dict[str, str]:
        """Argument names used by the problem's own functions."""
        function = next((f for f in (getattr(self.problem, name, None) for name in _OWN) if callable(f)), None)
        names = None if function is None else positional_names(function)
        if names is None or len(names) < 2:
            return {}
        state = names[1:2] if isinstance(self.problem, Quasilinear) else names[1:3]
        own = dict(zip(state, (FIRST, SECOND), strict=False))
        return own | {names[-1]: PARAMS} if self.has_params and len(names) > 1 + len(state) else own

    def _refusal(self, names: Sequence[str], what: str) -> str:
        taken = f"({', '.join(names)})" if len(names) > 1 else "1 argument" if names else "0 arguments"
        return f"{what} takes {taken}; expected {self.expected}"

    @property
    def expected(self) -> str:
        """The permitted forms of a function, for messages."""
        own = {kind: name for name, kind in self._own.items()}
        first, second = own.get(FIRST, self.letters[0]), own.get(SECOND, self.letters[1])
        forms = [f"(t, {first})", f"(t, {first}, {second})"]
        if self.has_params:
            forms += [f"(t, {first}, p)", f"(t, {first}, {second}, p)"]
        further = f", {' or '.join(self.further)} optionally after the state" if self.further else ""
        return f"{', '.join(forms[:-1])} or {forms[-1]}, with these argument names{further}"


def in_standard_form(function: Callable[..., Any], places: tuple[str, ...], is_split: bool) -> tuple[Any, int]:
    """Wrap a function as (t, y), (t, first, second) or (t, first, second, params); return it and its number of
    arguments."""
    if places in _AS_THEY_ARE and not (is_split and WHOLE in places):
        return function, len(places)

    taken, joins = [(TIME, FIRST, SECOND, PARAMS, WHOLE).index(place) for place in places], is_split and WHOLE in places

    def with_params(t, first, second, params):
        whole = np.concatenate([first, second]) if joins else first
        return function(*[(t, first, second, params, whole)[i] for i in taken])

    if PARAMS in places:
        return with_params, 4
    return lambda t, first, second: with_params(t, first, second, None), 3
