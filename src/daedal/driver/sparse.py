"""Start, formulation and method of mechanisms with sparse matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from daedal.driver.mechanism import MechanismPlan, MechanismRunState
from daedal.driver.request import Request
from daedal.errors import InvalidProblemError
from daedal.initial.mechanical_start import split_mechanical
from daedal.initial.sparse_start import sparse_start
from daedal.mechanics.formulations import named_formulation
from daedal.mechanics.formulations.formulation import Formulation
from daedal.mechanics.formulations.reformulation import check_sparse
from daedal.mechanics.setting import ConsistentStart
from daedal.mechanics.sparse.sparse_equations import highest_frequency
from daedal.mechanics.sparse.sparse_workspace import SparseWorkspace
from daedal.methods.named_methods import named_method
from daedal.problems import MechanicalSystem


def begin_sparse(plan: MechanismPlan, request: Request) -> MechanismRunState:
    """A run of a system with sparse matrices."""
    automatic = isinstance(plan.method, str)
    method = named_method("dassl", {}) if automatic else plan.method
    checked_choice(plan.problem, plan.formulation, method)
    q0, v0, *_ = split_mechanical(request.initial)
    correct = request.settings.correct_initial
    assembly, start, notes = sparse_start(plan.problem, request.span, q0, v0, correct=correct)
    start = start.towards(request.sign)
    choice = SparseChoice(assembly, start, request, plan.formulation, method, automatic)
    return MechanismRunState(plan, request, assembly, start, notes, choice)


class SparseChoice:
    """Formulation and method for a system with sparse matrices; GGL and DASSL by default.

    Parameters
    ----------
    assembly, start
        The assembled system and its consistent start.
    request : object
        The request of the run.
    formulation : str or formulation
    method : method object
    automatic : bool
        Whether to choose the maximum order of the method.
    """

    def __init__(
        self, assembly: SparseWorkspace, start: ConsistentStart, request, formulation, method, automatic: bool
    ):
        self.notes: list[str] = []
        self.changed, self.watches_amplification = True, False
        self.step_limit: int | None = None
        self.formulation, self.method = checked_choice(assembly.system, formulation, method), method
        if request.settings.fixed_step is not None and method.needs_starting_values:
            raise InvalidProblemError(
                "a system with sparse matrices supports fixed steps only with method='dassl', max_order=1 (backward "
                "Euler) or with given starting_values"
            )
        if automatic and request.settings.fixed_step is None:
            frequency = highest_frequency(assembly, start)
            if _oscillates(assembly, start, request, frequency):
                self.method = replace(method, max_order=2)
                self.notes.append(
                    f"The order is at most 2, since the system can oscillate at up to {frequency:.3g} rad per unit of "
                    "time, which higher orders would need to resolve."
                )

    @property
    def pair(self) -> tuple[int, int]:
        return id(self.formulation), id(self.method)

    def continues(self, segment) -> bool:
        return False


def checked_choice(system: MechanicalSystem, formulation, method) -> Formulation:
    """The formulation, GGL for "auto", after checks that it has a sparse form and that the method accepts residuals."""
    automatic = isinstance(formulation, str) and formulation == "auto"
    form = named_formulation("ggl" if automatic else formulation)
    check_sparse(form, system)
    if not method.supports("residual"):
        raise InvalidProblemError(
            f"{type(method).__name__} cannot solve a system with sparse matrices; use method='dassl'"
        )
    return form


def _oscillates(assembly: SparseWorkspace, start: ConsistentStart, request, frequency: float) -> bool:
    """Whether oscillations too small to matter would limit the steps of BDF methods of orders 3 to 5.

    These orders are unstable on a section of the imaginary axis and must resolve every undamped mode. Order 2 is stable
    there, and takes about rtol^(-1/3) steps per characteristic time of the motion.
    """
    nx = assembly.nx
    sizes = [float(np.max(np.abs(x), initial=0.0)) for x in (start.z[:nx], start.z[nx:], start.a)]
    time = abs(request.span[1] - request.span[0])
    if sizes[1] > 0.0:
        time = min(time, sizes[0] / sizes[1])
    if sizes[2] > 0.0:
        time = min(time, float(np.sqrt(sizes[0] / sizes[2])))
    return frequency * time > 5.0 * float(np.max(request.settings.rtol)) ** (-1.0 / 3.0)
