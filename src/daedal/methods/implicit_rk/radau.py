r"""Radau IIA with 3, 5 and 7 stages, orders 5, 9 and 13, for F(t, y, y') = 0.

References
----------
E. Hairer, G. Wanner: Solving Ordinary Differential Equations II, Springer 1996, IV.8 and VII; Stiff differential
equations solved by Radau methods, J. Comput. Appl. Math. 111 (1999) 93-111 (the choice of the stages).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.base import Method, check_corrector, check_matrix_options, check_variable_index, storage_kind
from daedal.methods.implicit_rk.implicit_stages import RADAU_STAGES, CollocationStages, collocation_stages
from daedal.methods.implicit_rk.stage_systems import in_deviations
from daedal.methods.implicit_rk.variable_classes import ClassifiedRun
from daedal.methods.run import OneStepRun
from daedal.methods.task import Equations
from daedal.methods.workspace import Workspace

_MOST_FAILURES = 30


@dataclass(frozen=True, eq=False)
class Radau(Method):
    r"""Radau IIA of orders 5, 9 and 13 with variable step and number of stages.

    The collocation polynomial u of degree s satisfies the equations at the s nodes of a step, the last of which is the
    end of the step: :math:`F(t_i, u(t_i), u'(t_i)) = 0`. The stages are computed by a simplified Newton method with one
    real system of n unknowns and (s - 1)/2 complex ones.

    Parameters
    ----------
    stages : {"auto", 3, 5, 7}
        "auto" starts with 3 (5 or 7 for tight tolerances), increases the number if Newton's method converges fast and
        decreases it if not.
    linear_solver : {"auto", "dense", "banded", "sparse"}
        "auto" follows the problem's `sparsity` and `bandwidth`.
    error_test : {"auto", "all", "differential"} or mask
        Components in the error test: all; all but the algebraic ones; a mask or list of the components to include.
        "auto" tests all components of first-order problems.
    variable_index : sequence of int, optional
        Index class 1, 2 or 3 of each variable. Errors and corrections of class i are multiplied by
        :math:`(h/\tau)^{i-1}`, where :math:`\tau` is the time in which variables of class 1 change by their own size.
        By default, classes are computed at the start from dF/dy and dF/dy', for up to 200 unknowns.
    corrector : {"auto", "simultaneous", "staggered"}
        In runs with sensitivities: "auto" solves for all unknowns of the stages together; "staggered" solves first for
        those of the solution, then for the sensitivities, with the same matrices.

    Notes
    -----
    The error test applies to the largest error of u inside a step, of order s + 1 in h. Errors at the ends of steps, of
    order 2s - 1, are far smaller.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.get("robertson")
    >>> sol = daedal.solve(model.problem, (0.0, 40.0), model.initial, method="radau", rtol=1e-6, atol=1e-10)
    >>> print(f"{sol.y[0, -1]:.5f}")
    0.71583
    """

    stages: Any = "auto"
    linear_solver: str = "auto"
    error_test: Any = "auto"
    variable_index: Any = None
    corrector: str = "auto"

    name = "radau"
    needs = ("residual",)
    stiff = True
    shares_newton_matrix = True

    def __post_init__(self):
        if self.stages != "auto" and (isinstance(self.stages, bool) or self.stages not in RADAU_STAGES):
            raise InvalidProblemError(f"stages must be 'auto', 3, 5 or 7, got {self.stages!r}")
        check_matrix_options(self)
        if self.corrector == "staggered direct":
            raise InvalidProblemError(
                "corrector: Radau has no staggered direct method, since no single matrix solves for the "
                "sensitivities of all stages at once; 'staggered' iterates with the available matrices, and "
                "DASSL supports both"
            )
        check_corrector(self.corrector)
        if self.variable_index is not None:
            check_variable_index(self.variable_index)

    @property
    def max_order(self) -> int:
        """The highest classical order."""
        return 2 * (RADAU_STAGES[-1] if self.stages == "auto" else self.stages) - 1

    def prepare(self, equations: Equations) -> OneStepRun:
        """Create the matrices of all systems, and memory for the stages."""
        problem, kind = equations.problem, storage_kind(equations.problem, self.linear_solver)
        return _RadauRun(self, equations, Workspace(problem, hook=equations.hook, linear_solver=kind), kind)


class _RadauRun(ClassifiedRun):
    def __init__(self, method: Radau, equations: Equations, workspace: Workspace, kind: str):
        from daedal.methods.implicit_rk import radau_step as step
        from daedal.methods.one_step import OWN

        n, problem = equations.n, equations.problem
        schemes = [collocation_stages("radau", s) for s in RADAU_STAGES]
        automatic = method.stages == "auto"
        lowest = 0 if automatic else RADAU_STAGES.index(method.stages)
        most = len(RADAU_STAGES) if automatic else lowest + 1
        matrices = self.stage_matrices(workspace, kind)
        matrices.give(workspace.matrix_address)
        systems = [matrices.system(x.newton, in_deviations(x.newton)) for x in schemes[:most]]
        record = self.stage_record(
            step.RADAU,
            workspace,
            [*systems, *systems[:1] * (len(schemes) - most)],
            residuals=step.radau_residuals,
            predict=step.radau_predict,
            most_stages=step.MOST_STAGES,
            leading=n // problem.copies if method.corrector == "staggered" else n,
            gamma=np.array([x.gamma for x in schemes]),
            shared=True,
            unit=1.0,
            may_be_flat=True,
            discounts=True,
            unknown=1.0,
            **_tables(schemes, step.MOST_STAGES),
            current=lowest,
            lowest=lowest,
            highest=most - 1,
        )
        record["z"] = record["deviations"]
        super().__init__(
            method,
            equations,
            attempt=step.radau_attempt,
            accept=step.radau_accept,
            begin=step.radau_begin,
            order=method.max_order,
            start_order=schemes[lowest].s + 1,
            controller=OWN,
            most_failures=_MOST_FAILURES,
            record=record,
            restored=True,
            workspace=workspace,
        )

    def orders_of(self, degrees: np.ndarray) -> np.ndarray:
        """2s - 1, by the degree s of the polynomial of a step."""
        return 2 * degrees - 1


def _tables(schemes: list[CollocationStages], most: int) -> dict[str, np.ndarray]:
    """The coefficients of all methods, concatenated."""
    count = len(schemes)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("c", "d", "value", "slope"), (count, most))
    shapes |= {"w": (count, most, most), "middle": (count,)}
    tables = {name: np.zeros(shape) for name, shape in shapes.items()}
    for k, scheme in enumerate(schemes):
        s = scheme.s
        tables["c"][k, :s], tables["d"][k, :s], tables["w"][k, :s, :s] = scheme.c, scheme.d, scheme.w
        tables["middle"][k], tables["value"][k, :s], tables["slope"][k, :s] = scheme.worst
    tables["stages"] = np.array([scheme.s for scheme in schemes])
    tables["share"] = np.array([scheme.share for scheme in schemes])
    return tables
