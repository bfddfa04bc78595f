"""Conditioning of a DAE: constants and amplification factors, described in words and as a plot."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.analysis.conditioning.constants import (
    BoundConstant,
    InitialLayer,
    PerturbedIndex2,
    initial_layer,
    perturbed_index2,
)
from daedal.analysis.conditioning.effective_index import EffectiveIndex
from daedal.common.messages import unknown_name
from daedal.common.tabular import Tabular
from daedal.errors import InvalidProblemError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODERATE = 1e3  # maximum amplification factor that counts as harmless
_SKEW = 1e2  # smallest norm of P that causes a warning about errors in the coefficients


def verdict(found: Conditioning) -> str:
    """One-line summary of the result."""
    if found.index is None:
        never = np.all(np.isnan(found.formal_indices))
        return (
            "the equations do not determine a solution"
            if never
            else ("the type of the problem changes along the interval")
        )
    effect = found.effective_index
    if effect is None:
        return f"index {found.index}, nearly singular"
    return f"index {found.index}" if effect == found.index else f"index {found.index}, effective index {effect}"


def advice(found: Conditioning) -> list[str]:
    """Advice, most important first."""
    if found.index is None:
        return [_no_index(found)]
    if found.index > 2:
        return [
            (
                f"Constants are available for index 1 and 2 only, and the index is {found.index}: reduce the index "
                "first, then examine the conditioning of the reduced problem."
            )
        ]
    parts = [_unresolved(found), _nearly(found), _gain(found), _robust(found), _growth(found), _unclear(found)]
    parts.append(_varies(found))
    said = [text for text in parts if text]
    return said or ["All factors are moderate: the problem is well conditioned, and can be solved as given."]


def _no_index(found: Conditioning) -> str:
    kinds = found.formal_indices
    same = kinds == kinds[0] if np.isfinite(kinds[0]) else np.isnan(kinds)
    if not np.all(same):
        t = found.t[int(np.argmin(same))]
        return (
            f"The index varies: it changes near t = {t:.3g}. Bounds hold only between such points; examine the "
            "conditioning on each side of it."
        )
    if np.isfinite(kinds[0]):
        return (
            "The number of variables that the constraints determine without differentiation changes along the "
            "interval: the problem is singular at some point. Examine the conditioning on parts of the interval."
        )
    return (
        f"The equations do not determine {_names(found, None)}, however often the constraints are differentiated. "
        "Check for an equation that follows from the others."
    )


def _nearly(found: Conditioning) -> str:
    effect = found.effective_index
    if effect is None:
        return (
            f"If numbers below {found.effective.threshold:g} are neglected, the equations do not determine "
            f"{_names(found, None)}: the problem is nearly singular, and no derivative of the constraints helps. "
            "Factors grow like the inverse of the small number, and small errors of the coefficients change the "
            "solution qualitatively (examples 4.11 and 5.12). Check the model."
        )
    if found.index is None or effect <= found.index:
        return ""
    names = _names(found, effect)
    if np.isinf(found["layer_k2_hat"]) if "layer_k2_hat" in found.constants else False:
        return (
            f"{names} behaves like a variable of index {effect}, but the solution diverges from that of the "
            f"index-{effect} problem exponentially and rapidly: the initial layer is unstable. Check the signs in "
            "the constraint."
        )
    if effect == 2:
        return (
            "Integrate it as index 2. Errors of the constraint that vary from step to step, such as those of "
            f"Newton's method, affect {names} divided by the step size h, or multiplied by "
            f"{found['layer_bare']:.2g} once h is shorter than {found['layer_thickness']:.2g}; smooth errors only "
            f"through their rate, times {found['layer_k2_hat']:.2g}. {_remedy(found)} Initial values that do not "
            f"satisfy the constraint without y cause an initial layer of length {found['layer_thickness']:.2g}."
        )
    return (
        f"{names} behaves like a variable of index {effect}: smooth errors of the constraint affect it through "
        f"derivatives of order {effect - 1}, errors that vary from step to step divided by h^{effect - 1}. "
        f"{_remedy(found)}"
    )


def _gain(found: Conditioning) -> str:
    if not found.has_long_layer:
        return ""
    return (
        "Some algebraic variables have very small coefficients in their constraints, but the problem does not "
        "behave like one of the next higher index: the constraints determine these variables with a large gain. Small "
        "errors of the other variables become large errors of these."
    )


def _unresolved(found: Conditioning) -> str:
    if not found.unresolved:
        return ""
    return (
        f"The coefficients change too fast for the grid from t = {found.unresolved[0]:.3g} on, and the factors "
        "are uncertain. Use a shorter interval or more `points`."
    )


def _remedy(found: Conditioning) -> str:
    scaling = "method='dassl', variable_index=found.variable_index scales the error test accordingly"
    if found.has_stabilised_reduction and found.effective_index == 2:
        return (
            "formulation='stabilised_reduction' removes such errors from y for every h (tables 6.1 to 6.3 of the "
            f"source); {scaling}."
        )
    return f"{scaling[0].upper()}{scaling[1:]}."


def _robust(found: Conditioning) -> str:
    if found.index != 2 or found["P"] <= _SKEW:
        return ""
    reach = min(found.perturbed(at=float(t)).reach for t in found.t)
    return (
        f"|P| = {found['P']:.2g}: the constraints are nearly parallel to the directions in which y enforces them. "
        f"Relative errors of {reach:.1g} in B or C can turn growth into decay or vice versa (Theorem 5.10); "
        "found.perturbed(dA=..., dB=..., dC=...) shows the effect of given errors."
    )


def _growth(found: Conditioning) -> str:
    names = {"x(0)": "the initial values", "p": "the differential equations", "q": "the constraints"}
    length = float(abs(found.t[-1] - found.t[0]))  # an error of p always accumulates over time
    explained = found.effective_index is not None and found.index is not None and found.effective_index > found.index
    large = [
        (effect, source, found.factor(effect, source) / (length if source == "p" else 1.0))
        for effect, source in found.amplification
        if source in names and not (explained and (source == "q" or effect == "y"))
    ]
    effect, source, factor = max(large, key=lambda one: one[2], default=("", "", 0.0))
    if factor <= MODERATE:
        return ""
    size = "without bound" if np.isinf(factor) else f"by a factor of {factor:.2g}"
    return (
        f"Errors in {names[source]} are amplified {size} in {effect}: use correspondingly smaller tolerances, and "
        "do not trust more digits of the result than the data support after this amplification."
    )


def _unclear(found: Conditioning) -> str:
    if found.effective.clear:
        return ""
    near = next(level.decision for level in found.effective.levels if not level.decision.clear)
    values = ", ".join(f"{value:.1g}" for value in near.singular_values[near.lowest : near.highest])
    return (
        f"The effective index is ambiguous: {values} lies near the threshold {near.threshold:g}. Vary `threshold` "
        "to see both cases."
    )


def _varies(found: Conditioning) -> str:
    known = np.nan_to_num(found.indices, nan=-1.0)
    if np.all(known == known[0]):
        return ""
    t = found.t[int(np.argmax(known != known[0]))]
    return f"The effective index changes along the interval, first near t = {t:.3g}."


def _names(found: Conditioning, index: int | None) -> str:
    names = [name for name, own in found.variables.items() if own == index]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


# --- the result -------------------------------------------------------------------------------------------------------

SOURCES = {
    "x(0)": "initial values x(0)",
    "p": "differential equations, p",
    "q": "constraints, q",
    "q'": "constraints, rate q'",
}
_SOURCE = "P. M. E. J. Wijckmans, Conditioning of Differential Algebraic Equations, chapters 4 and 5."
_MOST_VARIABLES = 12
_NOTHING = 1e-14
_LONG = 0.01  # length of an initial layer, relative to the interval, above which it counts as long


@dataclass(frozen=True, repr=False)
class Conditioning:
    """The result of :func:`daedal.analysis.analyse_conditioning`; ``print`` describes it in words.

    Attributes
    ----------
    names : tuple of str
        The unknowns.
    t : numpy.ndarray
        Times of the grid.
    index : int or None
        Index of the original equations; None if it changes along the grid, or if they do not determine a solution.
    effective : EffectiveIndex
        The effective index at the grid point at which it is highest, with its levels, decisions and threshold.
    indices, formal_indices : numpy.ndarray
        The effective index and the index along the grid; NaN where some variables are undetermined.
    constants : dict
        Constants by name, each with its symbol, its meaning and its values along the grid.
    amplification : dict
        The largest possible effect at each time of the grid, by (effect, source) such as ("y", "q").
    matrices : dict
        Projectors and other matrices along the grid by name: Q, P, Qs, Ps, G for index 1, with B, C, D of the nearly
        index-2 part; P, F, Z, W, W_plus and A, B, C for index 2.
    algebraic : numpy.ndarray, shape (n, n_y)
        Columns that span the algebraic variables y in the space of the unknowns.
    unresolved : tuple of float
        Times near which the coefficients change too fast for the grid: constants are uncertain from there onward.
    is_linear, has_stabilised_reduction : bool
        Whether the problem is linear, and whether :class:`daedal.formulations.StabilisedReduction` applies.

    Examples
    --------
    >>> import daedal
    >>> def residual(t, y, yp):
    ...     return [yp[0] + y[0], y[1] - y[0]]
    >>> problem = daedal.ImplicitDAE(residual, 2, names=["x", "z"])
    >>> sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 1.0], None))
    >>> found = daedal.analysis.analyse_conditioning(problem, sol)
    >>> print(found.index, found.names)
    1 ('x', 'z')
    """

    names: tuple[str, ...]
    t: np.ndarray
    index: int | None
    effective: EffectiveIndex
    indices: np.ndarray
    formal_indices: np.ndarray
    constants: dict[str, BoundConstant]
    amplification: dict[tuple[str, str], np.ndarray]
    matrices: dict[str, np.ndarray] = field(repr=False)
    algebraic: np.ndarray = field(repr=False)
    unresolved: tuple[float, ...]
    is_linear: bool
    has_stabilised_reduction: bool

    @property
    def effective_index(self) -> int | None:
        """The highest effective index; None if some variables are undetermined once small numbers are dropped.

        It is higher than the index only if the solution follows that of the problem without the small numbers, which
        requires an initial layer much shorter than the interval.
        """
        return self.index if self.has_long_layer else self.effective.index

    @property
    def has_long_layer(self) -> bool:
        """Whether the initial layer is so long that small numbers in the constraints matter on the whole interval."""
        if "layer_thickness" not in self.constants:
            return False
        lengths = self.constants["layer_thickness"].values[self.indices == np.nanmax(self.indices)]
        return bool(_LONG * abs(self.t[-1] - self.t[0]) < np.max(lengths) < np.inf)

    @property
    def variables(self) -> dict[str, int | None]:
        """The effective index of each unknown: 0 for differential ones, None for undetermined ones."""
        found = self.effective.of_variables(self.algebraic)
        highest = self.effective_index
        lowered = [index if index is None or highest is None else min(index, highest) for index in found]
        return dict(zip(self.names, lowered, strict=True))

    @property
    def variable_index(self) -> list[int]:
        """The effective indices in the form of DASSL's option ``variable_index``: classes 1, 2 and 3."""
        return [3 if index is None else min(max(index, 1), 3) for index in self.variables.values()]

    @property
    def advice(self) -> list[str]:
        """Consequences for the solution of the problem, in sentences."""
        return advice(self)

    def __getitem__(self, name: str) -> float:
        """The value of the constant with this name."""
        if name not in self.constants:
            raise unknown_name(name, self.constants, "constant for this problem")
        return self.constants[name].value

    def factor(self, effect: str, source: str) -> float:
        """The largest amplification of a source, "x(0)", "p", "q" or "q'", in "x" or "y"."""
        if (effect, source) not in self.amplification:
            pairs = [f"({a}, {b})" for a, b in self.amplification]
            raise unknown_name(f"({effect}, {source})", pairs, "factor for this problem")
        return float(np.nanmax(self.amplification[effect, source]))

    def perturbed(self, *, dA: Any = None, dB: Any = None, dC: Any = None, at: float | None = None) -> PerturbedIndex2:
        """The effect of coefficient errors on the modes of an index-2 problem at the grid point next to `at`.

        The matrices are those of the semi-explicit form, ``matrices["A"]`` and so on.
        """
        if self.index != 2:
            raise InvalidProblemError(
                f"perturbed coefficients are available for index 2 only; the index is {self.index}"
            )
        k = 0 if at is None else int(np.argmin(np.abs(self.t - at)))
        return perturbed_index2(*(self.matrices[name][k] for name in "ABC"), dA=dA, dB=dB, dC=dC)

    def initial_layer(self, x0: Any, q0: Any) -> InitialLayer:
        """The initial layer of a nearly index-2 problem: its limit and its decaying part.

        Parameters
        ----------
        x0, q0 : array_like
            x and q at the start. If only some of the constraints are nearly of index 2, q contains the entries of
            these constraints only.
        """
        if "D" not in self.matrices:
            raise InvalidProblemError("only index-1 problems that are nearly of index 2 have an initial layer")
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
        """Table of amplification factors."""
        sources = dict.fromkeys(source for _, source in self.amplification)
        effects = dict.fromkeys(effect for effect, _ in self.amplification)
        rows = [(SOURCES[source], *(_number(self.factor(effect, source)) for effect in effects)) for source in sources]
        header = ("a perturbation of size 1 in", *(f"moves {effect} by" for effect in effects))
        return Tabular("l" + "r" * len(effects), rows, header, indent=2)

    def constants_table(self) -> Tabular:
        """The constants: name, symbol in the source, and meaning."""
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
        """The numbers that determine the effective index."""
        header = ("strength of", "count", "smallest counted", "largest dropped", "threshold", "decision")
        return Tabular("lrrrrl", [level.decision.row() for level in self.effective.levels], header, indent=2)

    def _sections(self) -> list[tuple[str, Tabular]]:
        tables = [
            ("Amplification of perturbations", self.factors_table()),
            ("Constants of the bounds", self.constants_table()),
            ("Effective index", self.variables_table()),
            ("Decisions on the effective index", self.decisions_table()),
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
        lines += ["", "Consequences", str(Tabular("ll", [("-", text) for text in self.advice], indent=2, width=110))]
        return "\n".join([*lines, "", _SOURCE])

    def _repr_html_(self) -> str:
        from markupsafe import Markup

        page = Markup("<p><b>Conditioning: {}</b></p>").format(verdict(self))
        for heading, table in self._sections():
            page += Markup("<p>{}</p>{}").format(heading, table.__html__())
        advice = Markup("").join(Markup("<li>{}</li>").format(text) for text in self.advice)
        return str(page + Markup("<p>Consequences</p><ul>{}</ul>").format(advice))


def _number(value: float) -> str:
    if np.isinf(value):
        return "unbounded"
    return "0" if value < _NOTHING else f"{value:.3g}"
