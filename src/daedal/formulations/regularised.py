"""Regularisations: a small parameter instead of an exact constraint (Wijckmans section 6.1.1)."""

from __future__ import annotations

from dataclasses import dataclass

from daedal.errors import InvalidProblemError
from daedal.formulations.index_reduction import index_options
from daedal.formulations.reduction import Reduction, Shape, Start, build
from daedal.problems.checks import check_finite, check_positive


def _small(value, name: str) -> float:
    return check_finite(check_positive(value, name), name)


def _mechanical(assembly, name: str):
    if assembly.m != 2 or assembly.linear:
        raise InvalidProblemError(f"{name} is made for mechanical systems")


@dataclass(frozen=True)
class Loetstedt:
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

    def reduce(self, assembly, start: Start) -> Reduction:
        """The form for an assembled system."""
        from daedal.formulations.residuals import PENALTY

        _mechanical(assembly, "Loetstedt's penalty")
        if assembly.record["uses_multipliers"]:
            raise InvalidProblemError(
                "Loetstedt's penalty has no multipliers, which the forces of this system depend on; use another "
                "formulation (auto, ggl)"
            )
        return build(assembly, start, Shape(variant=PENALTY, epsilon=_small(self.epsilon, "epsilon")))


@dataclass(frozen=True)
class Knorrenschild:
    r"""Knorrenschild's regularisation (6.4), :math:`0 = g(q + (\varepsilon + \mu) \dot q + \mu \varepsilon \ddot q)`.

    Parameters
    ----------
    epsilon, mu : float
        The two small times.
    """

    epsilon: float = 1e-3
    mu: float = 1e-3
    name = "knorrenschild"

    def reduce(self, assembly, start: Start) -> Reduction:
        """The form for an assembled system."""
        from daedal.formulations.residuals import KNORRENSCHILD

        return _regularise(self, KNORRENSCHILD, assembly, start)


@dataclass(frozen=True)
class Hanke:
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

    def reduce(self, assembly, start: Start) -> Reduction:
        """The form for an assembled system."""
        from daedal.formulations.residuals import HANKE

        return _regularise(self, HANKE, assembly, start)


def _regularise(form, variant: int, assembly, start: Start) -> Reduction:
    _mechanical(assembly, type(form).__name__)
    epsilon, mu = _small(form.epsilon, "epsilon"), check_finite(form.mu, "mu")
    if mu < 0.0:
        raise InvalidProblemError(f"mu must not be negative, got {mu:g}")
    epsilon, mu = assembly.direction * epsilon, assembly.direction * mu
    shape = Shape(n_top=assembly.n_c, alpha=(1.0,), variant=variant, epsilon=epsilon, mu=mu)
    reduction = build(assembly, start, shape)
    # With a step far beyond epsilon and mu these forms behave as the index-3 form does.
    reduction.options |= index_options(assembly, reduction.problem.n, (1, 2, 3))
    return reduction
