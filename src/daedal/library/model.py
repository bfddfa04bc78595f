"""What a ready-made problem consists of: the equations, the data, and how the answer is known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import daedal


@dataclass(frozen=True)
class Reference:
    """A known point of the solution.

    Attributes
    ----------
    t : float
        The time of the values.
    y : numpy.ndarray, shape (n,)
        The values; ``nan`` stands where none is known.
    source : str
        Who computed them, and how.
    accuracy : float
        How far the values can be trusted, as a relative error.
    """

    t: float
    y: np.ndarray
    source: str
    accuracy: float = 1e-10

    def error(self, y) -> np.ndarray:
        """Relative error of each component of `y`; absolute where the reference is 0, ``nan`` where none is known."""
        size = np.where(self.y == 0.0, 1.0, np.abs(self.y))
        return np.abs(np.asarray(y) - self.y) / size


@dataclass(frozen=True)
class Model:
    """A problem of the library with everything needed to solve it and to judge the answer.

    Attributes
    ----------
    name, title : str
        The name in :func:`daedal.library.get`, and one for headings.
    problem : daedal.ImplicitDAE or daedal.SemiExplicitDAE
        The equations with their parameters.
    t_span : tuple of float
        The interval of the source.
    initial : tuple
        Initial values in the form that :func:`daedal.solve` expects.
    index : int
        The differentiation index.
    source : str
        Where the problem comes from.
    description : str
        What it models and what it is good for.
    equations : str
        The equations in LaTeX.
    reference : Reference or None
        A known point of the solution; None when the parameters are not those of the source.
    options : dict
        Options for :func:`daedal.solve` that suit the problem.
    plot : dict
        What to show: ``variables`` (names), ``xscale``, ``yscale`` and ``factors`` (a factor for each variable shown).
    extra : dict
        What only this problem has, such as ``exact`` for a closed solution; the factory's documentation lists it.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.get("robertson")
    >>> solution = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    """

    name: str
    title: str
    problem: Any = field(repr=False)
    t_span: tuple[float, float]
    initial: tuple[Any, Any] = field(repr=False)
    index: int
    source: str = field(repr=False)
    description: str = field(repr=False)
    equations: str = field(repr=False)
    reference: Reference | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    plot: Mapping[str, Any] = field(default_factory=dict, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def _repr_markdown_(self) -> str:
        return f"**{self.title}** (`{self.name}`, index {self.index})\n\n{self.description}\n\n$${self.equations}$$"


def compile_if_large(problem, compiled: bool | None, large: int = 200):
    """The problem, compiled if that is wished or, without a wish, from `large` unknowns on."""
    if compiled is None:
        compiled = problem.n >= large
    return problem.compiled() if compiled else problem


def check_choice(parameter: str, value: Any, choices: Collection[Any]) -> None:
    """Refuse a `value` that is not one of the `choices`."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise daedal.InvalidProblemError(f"{parameter}={value!r} is not known; choose one of {known}")


def check_positive(**parameters: Any) -> None:
    """Refuse parameters that are not positive finite numbers."""
    for name, value in parameters.items():
        if not (isinstance(value, (int, float, np.integer)) and np.isfinite(value) and value > 0):
            raise daedal.InvalidProblemError(f"{name}={value!r} must be a positive number")
