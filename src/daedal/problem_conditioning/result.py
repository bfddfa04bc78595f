"""The conditioning of a DAE, as a value: constants, amplification factors, in words and as a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.messages import unknown_name
from daedal.problem_conditioning.advice import advice, verdict
from daedal.problem_conditioning.effective_index import EffectiveIndex
from daedal.problem_conditioning.findings import Constant
from daedal.problem_conditioning.layer import InitialLayer, initial_layer
from daedal.problem_conditioning.perturbed import PerturbedIndex2, perturbed_index2
from daedal.tabular import Tabular

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCES = {
    "x(0)": "initial values x(0)",
    "p": "differential equations, p",
    "q": "constraints, q",
    "q'": "constraints, rate q'",
}
_SOURCE = "P. M. E. J. Wijckmans, Conditioning of Differential Algebraic Equations, chapters 4 and 5."
_MOST_VARIABLES = 12
_NOTHING = 1e-14
_LONG = 0.01  # part of the interval that an initial layer may take


@dataclass(frozen=True, repr=False)
class Conditioning:
    """The result of :func:`daedal.conditioning`; printed, it says what was found in words.

    Attributes
    ----------
    names : tuple of str
        The unknowns.
    t : numpy.ndarray
        The grid.
    index : int or None
        Of the equations as they stand; None if it changes along the grid, or if they determine no solution.
    effective : EffectiveIndex
        What remains when small numbers are taken for zero, where it is highest: levels, decisions, threshold.
    indices, formal_indices : numpy.ndarray
        The effective index and the index along the grid; NaN where some variables are not determined at all.
    constants : dict
        Constants by name, each a value with its symbol, meaning, and values along the grid.
    amplification : dict
        By (effect, source), such as ("y", "q"): how large the effect can become at each time of the grid.
    matrices : dict
        Projectors and other matrices along the grid by name: Q, P, Qs, Ps, G for index 1, with B, C, D of the part that
        is nearly of index 2; P, F, Z, W, W_plus and A, B, C for index 2.
    algebraic : numpy.ndarray, shape (n, n_y)
        The directions of the algebraic variables y among the unknowns.
    unresolved : tuple of float
        Times near which the coefficients change too fast for the grid: constants are uncertain from there on.
    is_linear, has_stabilised_reduction : bool
        Whether the problem is linear, and whether :class:`daedal.StabilisedReduction` applies.
    """

    names: tuple[str, ...]
    t: np.ndarray
    index: int | None
    effective: EffectiveIndex
    indices: np.ndarray
    formal_indices: np.ndarray
    constants: dict[str, Constant]
    amplification: dict[tuple[str, str], np.ndarray]
    matrices: dict[str, np.ndarray] = field(repr=False)
    algebraic: np.ndarray = field(repr=False)
    unresolved: tuple[float, ...]
    is_linear: bool
    has_stabilised_reduction: bool

    @property
    def effective_index(self) -> int | None:
        """The highest effective index; None if some variables are not determined once small numbers are dropped.

        It is higher than the index only if the solution follows that of the problem without the small numbers: the
        initial layer must be much shorter than the interval.
        """
        return self.index if self.has_long_layer else self.effective.index

    @property
    def has_long_layer(self) -> bool:
        """Whether small numbers in the constraints matter all the same, because nothing is faster than the solution."""
        if "layer_thickness" not in self.constants:
            return False
        lengths = self.constants["layer_thickness"].values[self.indices == np.nanmax(self.indices)]
        return bool(_LONG * abs(self.t[-1] - self.t[0]) < np.max(lengths) < np.inf)

    @property
    def variables(self) -> dict[str, int | None]:
        """The effective index of each unknown: 0 for differential ones, None for those that are not determined."""
        found = self.effective.of_variables(self.algebraic)
        highest = self.effective_index
        lowered = [index if index is None or highest is None else min(index, highest) for index in found]
        return dict(zip(self.names, lowered, strict=True))

    @property
    def variable_index(self) -> list[int]:
        """The effective indices as DASSL's option ``variable_index`` takes them: classes 1, 2 and 3."""
        return [3 if index is None else min(max(index, 1), 3) for index in self.variables.values()]

    @property
    def advice(self) -> list[str]:
        """What follows for the solution of the problem, in sentences."""
        return advice(self)

    def __getitem__(self, name: str) -> float:
        """A constant by its name."""
        if name not in self.constants:
            raise unknown_name(name, self.constants, "constant for this problem")
        return self.constants[name].value

    def factor(self, effect: str, source: str) -> float:
        """The largest amplification of a source, "x(0)", "p", "q" or "q'", in the effect "x" or "y"."""
        if (effect, source) not in self.amplification:
            pairs = [f"({a}, {b})" for a, b in self.amplification]
            raise unknown_name(f"({effect}, {source})", pairs, "factor for this problem")
        return float(np.nanmax(self.amplification[effect, source]))

    def perturbed(self, *, dA: Any = None, dB: Any = None, dC: Any = None, at: float | None = None) -> PerturbedIndex2:
        """What errors in the coefficients of an index-2 problem do to its modes, at the point of the grid next to `at`.

        The matrices are those of the semi-explicit form, ``matrices["A"]`` and so on.
        """
        if self.index != 2:
            raise InvalidProblemError(f"perturbed coefficients are looked at for index 2; the index is {self.index}")
        k = 0 if at is None else int(np.argmin(np.abs(self.t - at)))
        return perturbed_index2(*(self.matrices[name][k] for name in "ABC"), dA=dA, dB=dB, dC=dC)

    def initial_layer(self, x0: Any, q0: Any) -> InitialLayer:
        """The initial layer of a problem that is nearly of index 2: where the solution goes, and what dies out.

        Parameters
        ----------
        x0, q0 : array_like
            The start, and the constraint's q there; with several kinds of constraints q of those nearly of index 2.
        """
        if "D" not in self.matrices:
            raise InvalidProblemError("only problems of index 1 that are nearly of index 2 have an initial layer")
        B, C, D = (self.matrices[name][0] for name in "BCD")
        x, q = np.atleast_1d(np.asarray(x0, dtype=float)), np.atleast_1d(np.asarray(q0, dtype=float))
        if x.shape != (B.shape[0],) or q.shape != (D.shape[0],):
            raise InvalidProblemError(f"x0 must have {B.shape[0]} entries and q0 {D.shape[0]}")
        return initial_layer(B, C, D, x, q)

    def plot(self, *, save: str | Path | None = None, pyplot: bool = True, title: str | None = None) -> Figure:
        """Amplification factors over time, see :func:`daedal.viz.plot_conditioning`."""
        from daedal.viz import plot_conditioning

        return plot_conditioning(self, save=save, pyplot=pyplot, title=title)

    def factors_table(self) -> Tabular:
        """How much each perturbation grows."""
        sources = dict.fromkeys(source for _, source in self.amplification)
        effects = dict.fromkeys(effect for effect, _ in self.amplification)
        rows = [(SOURCES[source], *(_number(self.factor(effect, source)) for effect in effects)) for source in sources]
        header = ("a perturbation of size 1 in", *(f"moves {effect} by" for effect in effects))
        return Tabular("l" + "r" * len(effects), rows, header, indent=2)

    def constants_table(self) -> Tabular:
        """The constants by their names, as the source writes them, and what they mean."""
        rows = [
            (name, one.symbol, _number(one.value), f"{self.t[int(np.nanargmax(one.values))]:.3g}", one.meaning)
            for name, one in self.constants.items()
        ]
        return Tabular("llrrl", rows, ("name", "constant", "value", "at t =", "meaning"), indent=2)

    def variables_table(self) -> Tabular:
        """The algebraic variables with their effective index."""
        some = [(name, index) for name, index in self.variables.items() if index != 0]
        rows = [(name, "not determined" if index is None else str(index)) for name, index in some]
        more = [f"and {len(rows) - _MOST_VARIABLES} more"] * (len(rows) > _MOST_VARIABLES)
        return Tabular("ll", [*rows[:_MOST_VARIABLES], *more], ("algebraic variable", "effective index"), indent=2)

    def decisions_table(self) -> Tabular:
        """The numbers on which the effective index rests."""
        header = ("strength of", "count", "smallest counted", "largest dropped", "threshold", "decision")
        return Tabular("lrrrrl", [level.decision.row() for level in self.effective.levels], header, indent=2)

    def _sections(self) -> list[tuple[str, Tabular]]:
        tables = [
            ("How perturbations grow", self.factors_table()),
            ("Constants of the bounds", self.constants_table()),
            ("Effective index", self.variables_table()),
            ("Decisions about it", self.decisions_table()),
        ]
        return [(heading, table) for heading, table in tables if table.rows]

    def _unknowns(self) -> str:
        return f"{len(self.names)} unknown{'s' * (len(self.names) != 1)}"

    def __repr__(self) -> str:
        return f"<conditioning of {self._unknowns()}: {verdict(self)}>"

    def __str__(self) -> str:
        start, end = self.t[0], self.t[-1]
        lines = [f"Conditioning of {self._unknowns()} from t = {start:g} to {end:g}: {verdict(self)}"]
        for heading, table in self._sections():
            lines += ["", heading, str(table)]
        lines += ["", "What follows", str(Tabular("ll", [("-", text) for text in self.advice], indent=2, width=110))]
        return "\n".join([*lines, "", _SOURCE])

    def _repr_html_(self) -> str:
        from markupsafe import Markup

        page = Markup("<p><b>Conditioning: {}</b></p>").format(verdict(self))
        for heading, table in self._sections():
            page += Markup("<p>{}</p>{}").format(heading, table.__html__())
        advice = Markup("").join(Markup("<li>{}</li>").format(text) for text in self.advice)
        return str(page + Markup("<p>What follows</p><ul>{}</ul>").format(advice))


def _number(value: float) -> str:
    if np.isinf(value):
        return "unbounded"
    return "0" if value < _NOTHING else f"{value:.3g}"
