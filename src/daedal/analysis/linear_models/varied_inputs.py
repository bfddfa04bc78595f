"""Inputs with values and derivatives at a time as parameters, for differentiation of the trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from daedal.errors import InvalidProblemError, UnknownNameError, near_names
from daedal.problems.compile import with_known_params
from daedal.problems.named_inputs import Course, Inputs, at_piece, require_inputs, value_of
from daedal.symbolic.tracing.parameters import ParameterLayout


class Varied(NamedTuple):
    r"""An input plus a polynomial :math:`\sum_k c_k (t - t_0)^k / k!`; :math:`c_k` perturbs its k-th derivative."""

    base: Any
    change: Course

    def __call__(self, t):
        return value_of(self.base, t) + self.change.at(t)


class VariedInputs:
    """A problem whose inputs, and their first derivatives, can be perturbed at a time.

    Parameters
    ----------
    problem : object
    t : float
    names : sequence of str or None
        The perturbed inputs; None for all.
    order : int
        Highest perturbed derivative of the inputs.

    Attributes
    ----------
    problem : object
        The problem with perturbed inputs, with all perturbations zero.
    labels : tuple of str
        Names of the perturbed numbers, one for each entry of an input.
    order : int
    """

    def __init__(self, problem: Any, t: float, names: Sequence[str] | None, order: int):
        self.labels: tuple[str, ...] = ()
        self._t, self.order = t, order
        if names is not None and len(names):
            require_inputs(problem)
        known = getattr(problem, "inputs", None)
        self._inputs = known if isinstance(known, Inputs) else None
        chosen: list[str] = []
        if self._inputs is not None:
            chosen = list(self._inputs if names is None else names)
            for name in chosen:
                if name not in self._inputs:
                    hint = near_names(name, self._inputs)
                    raise UnknownNameError(
                        f"inputs: {name!r} is not an input of the problem; {hint}known: {', '.join(self._inputs)}"
                    )
            if len(set(chosen)) < len(chosen):
                raise InvalidProblemError("inputs contains an input twice")
            problem = at_piece(problem, t)
        self._plain, self._chosen = problem, chosen
        self.shapes = {name: self._inputs.shapes[name] for name in chosen} if self._inputs is not None else {}
        self.labels = tuple(
            label
            for name, shape in self.shapes.items()
            for label in ([name] if not shape else [f"{name}[{k}]" for k in range(shape[0])])
        )
        self.problem = self.changed(0, None)

    def changed(self, order: int, label: int | None, by: float = 1.0) -> Any:
        """The problem with one perturbation changed: that of derivative `order` of one input."""
        if not self._chosen:
            return self._plain
        changes: dict[str, np.ndarray] = {}
        first = 0
        for name, shape in self.shapes.items():
            size = shape[0] if shape else 1
            values = np.zeros((self.order + 1, size))
            if label is not None and first <= label < first + size:
                values[order, label - first] = by / _factorial(order)
            changes[name] = values if shape else values[:, 0]
            first += size
        given: Mapping[str, Any] = self._plain.params.inputs
        varied = {name: Varied(given[name], Course(change, self._t)) for name, change in changes.items()}
        return with_known_params(self._plain, self._plain.params._replace(inputs={**given, **varied}))

    def positions(self, layout: ParameterLayout) -> list[tuple[np.ndarray, float]]:
        """For each derivative the positions of its coefficients among the parameter values, and their factor."""
        base = layout.numbers(self.problem.params)
        found = []
        for order in range(self.order + 1):
            places = [
                int(np.flatnonzero(layout.numbers(self.changed(order, k).params) != base)[0])
                for k in range(len(self.labels))
            ]
            found.append((np.array(places, dtype=np.int64), 1.0 / _factorial(order)))
        return found


def _factorial(order: int) -> float:
    return float(np.prod(np.arange(1, order + 1))) if order else 1.0
