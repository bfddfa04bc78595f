"""What the analysis of any method has in common: predictions, a table, a picture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daedal.method_analysis.predictions import SOURCES, Prediction
from daedal.methods.multistep_formula import MultistepFormula
from daedal.methods.runge_kutta_tableau import RungeKuttaTableau
from daedal.tabular import Tabular

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEADER = ("index", "problem", "variables", "order", "by which theorem")


@dataclass(frozen=True, repr=False)
class MethodAnalysis(ABC):
    """The result of :func:`daedal.analyse_method`; printed, it is a table.

    Attributes
    ----------
    method : RungeKuttaTableau or MultistepFormula
        The coefficients.
    exact : bool
        Whether everything but the angle of a stable sector was computed with exact numbers.
    order : int
        For ordinary differential equations.
    a_stable, l_stable : bool
        For the test equation.
    angle : float
        The angle of the largest stable sector in degrees.
    predictions : tuple of Prediction
        Orders on DAEs of index 0 to 3, for each class of variables.
    """

    method: RungeKuttaTableau | MultistepFormula
    exact: bool
    order: int
    a_stable: bool
    l_stable: bool
    angle: float
    predictions: tuple[Prediction, ...]

    def predicted(self, index: int, variables: str | None = None) -> list[Prediction]:
        """The predictions for an index, of all variables or of those named."""
        return [x for x in self.predictions if x.index == index and variables in (None, x.variables)]

    @abstractmethod
    def rows(self) -> Sequence[tuple[str, str]]:
        """Properties as names and values."""

    def plot(self, *, save: str | Path | None = None, pyplot: bool = True, **options: Any) -> Figure:
        """The stability region, see :func:`daedal.viz.plot_stability_region`."""
        from daedal.viz import plot_stability_region

        return plot_stability_region(self.method, save=save, pyplot=pyplot, **options)

    def table(self) -> Tabular:
        """The predictions as a table."""
        return Tabular("rllll", [_line(x) for x in self.predictions], _HEADER)

    def __repr__(self) -> str:
        return f"<analysis of {self.method.name}: order {self.order}>"

    def __str__(self) -> str:
        properties = Tabular("ll", self.rows(), indent=2)
        orders = Tabular("rllll", [_line(x) for x in self.predictions], _HEADER, indent=2)
        return "\n".join(
            [
                self.method.name,
                str(properties),
                "",
                'Order of convergence with constant steps. "2 to 3": 2 is guaranteed, 3 is not exceeded in general; '
                '"-": nothing is guaranteed.',
                str(orders),
                "",
                SOURCES,
            ]
        )

    def _repr_html_(self) -> str:
        from markupsafe import Markup

        properties = Tabular("ll", self.rows()).__html__()
        return str(Markup("<p><b>{}</b></p>{}<p></p>{}").format(self.method.name, properties, self.table().__html__()))


def _line(x: Prediction) -> tuple[str, ...]:
    return str(x.index), x.problem, x.variables, x.text, x.theorem


def yes(holds: bool) -> str:
    """yes or no."""
    return "yes" if holds else "no"


def stability_rows(a_stable: bool, l_stable: bool, angle: float, proved: bool) -> list[tuple[str, str]]:
    """A-stability, L-stability and the angle in words."""
    how = "proved" if proved else "numerically"
    sector = "90°" if a_stable else f"{angle:.2f}° (numerically)" if angle else "none: the negative axis is not stable"
    return [
        ("A-stable", f"{yes(a_stable)} ({how})"),
        ("A(α)-stable, α =", sector),
        ("L-stable", f"{yes(l_stable)} ({how})"),
    ]
