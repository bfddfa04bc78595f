"""Regularisations: a small parameter instead of an exact constraint (Wijckmans section 6.1.1)."""

from dataclasses import dataclass

from daedal.errors import InvalidProblemError
from daedal.formulations.formulation import Formulation
from daedal.formulations.shape import HANKE, KNORRENSCHILD, PENALTY, Shape, level
from daedal.problems.checks import check_finite, check_positive


def _small(value, name: str) -> float:
    return check_finite(check_positive(value, name), name)


def _check_mechanical(system, name: str):
    if system.m != 2 or system.linear:
        raise InvalidProblemError(f"{name} is made for mechanical systems")


@dataclass(frozen=True)
class Loetstedt(Formulation):
    r"""Loetstedt's penalty: stiff springs in place of constraints, :math:`M \ddot q = f - \varepsilon^{-1} G^T g`.

    The constraint is met to :math:`O(\varepsilon)`, with fast oscillations unless the start is right; velocity
    constraints become dampers.

    Parameters
    ----------
    epsilon : float
        The compliance of the springs.
    """

    epsilon: float = 1e-6
    name = "loetstedt"
    ordinary = True
    stiff = True

    def shape(self, system) -> Shape:
        """No multipliers."""
        _check_mechanical(system, "Loetstedt's penalty")
        return Shape(level(0, 2), variant=PENALTY, compliance=_small(self.epsilon, "epsilon"))


@dataclass(frozen=True)
class Knorrenschild(Formulation):
    r"""Knorrenschild's regularisation (6.4), :math:`0 = g(q + (\varepsilon + \mu) \dot q + \mu \varepsilon \ddot q)`.

    Parameters
    ----------
    epsilon, mu : float
        The two small times.
    """

    epsilon: float = 1e-3
    mu: float = 1e-3
    name = "knorrenschild"

    def shape(self, system) -> Shape:
        """g = 0 a short time ahead."""
        return _regularised(self, KNORRENSCHILD, system)


@dataclass(frozen=True)
class Hanke(Formulation):
    r"""Hanke's regularisation (6.5), :math:`\dot q = v + \mu \dot v`, :math:`0 = g(q + \varepsilon \dot q + \mu
    \varepsilon \dot v)`.

    Parameters
    ----------
    epsilon, mu : float
        The two small times.
    """

    epsilon: float = 1e-3
    mu: float = 1e-3
    name = "hanke"

    def shape(self, system) -> Shape:
        """g = 0 a short time ahead."""
        return _regularised(self, HANKE, system)


def _regularised(form, variant: int, system) -> Shape:
    _check_mechanical(system, type(form).__name__)
    epsilon, mu = _small(form.epsilon, "epsilon"), check_finite(form.mu, "mu")
    if mu < 0.0:
        raise InvalidProblemError(f"mu must not be negative, got {mu:g}")
    # With a step far beyond epsilon and mu these forms behave as the index-3 form does.
    return Shape(level(0, 2), n_top=system.n_c, variant=variant, small_times=(epsilon, mu), classes=(1, 2, 3))
