"""Choice between solving a problem as given, as a mechanism, and after index reduction."""

from __future__ import annotations

from typing import Any

from daedal.driver.any_index import LocallyJudgedPlan, ReducedForm, SingularPlan, is_judged_locally, judged_locally
from daedal.driver.low_index import LARGEST_EXAMINED, LOWEST_REDUCED
from daedal.driver.plan_stages import Plan
from daedal.driver.reduced_start import option_for_higher_index
from daedal.driver.request import Settings
from daedal.driver.traced import TracedPlan
from daedal.errors import InvalidProblemError, StructurallySingularError
from daedal.index.reduction.recognition import recognise_mechanism
from daedal.index.reduction.reduce import analysed, named_reduction
from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.index.reduction.strangeness_free import StrangenessFreeProblem, UndeterminedError, characteristic_values
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.system_equations import SystemEquations
from daedal.index.structure.system_jacobian import SystemJacobian
from daedal.problems import SecondOrderDAE


class _NotReducible(InvalidProblemError):
    """No index reduction applies to the problem, and no method solves it directly."""


def reduced_plan(problem: Any, settings: Settings, plan: TracedPlan, *, recognise: bool = True) -> Plan:
    """The plan for a mechanism, if `recognise`, or for the reduced problem, or `plan`, for the problem as given."""
    formulation = settings.formulation
    asked = formulation != "auto"
    try:
        equations, signature = analysed(problem)
        second_order = isinstance(problem, SecondOrderDAE)
        kept = getattr(problem, "invariants", None)
        recognise = recognise and _is_open(settings) and not second_order and kept is None
        mechanism = recognise_mechanism(equations) if recognise else None
        if mechanism is not None:
            from daedal.driver.recognised import MechanismForm

            return plan.in_form(MechanismForm(plan, mechanism))
        misleads = not asked and _misleads(equations, signature)
        if misleads and is_judged_locally(problem, settings, plan):
            return LocallyJudgedPlan(plan, misleads)
        if not asked and signature.index < LOWEST_REDUCED + second_order and not misleads:
            return judged_locally(problem, settings, plan)
        make = named_reduction(formulation).checked if asked else _automatic_reduction
        powers = option_for_higher_index(settings)
        if powers is not None and not asked:
            return plan
        if powers is not None:
            raise InvalidProblemError(
                f"{powers} scales by powers of the step size for direct solution of a higher-index problem, but "
                f"formulation={formulation!r} solves it in other unknowns, reduced to a lower index. Omit {powers}, "
                "or choose formulation='none'."
            )
        if second_order:
            from daedal.driver.reduced_second_order import ReducedSecondOrder

            form = ReducedForm(ReducedSecondOrder(make, problem, equations, signature, settings), asked)
            return plan.in_form(form)
        reduction = make(problem, equations, signature)
    except InvalidProblemError as reason:
        if asked or isinstance(reason, _NotReducible):
            raise
        if isinstance(reason, (StructurallySingularError, UndeterminedError)):
            return SingularPlan(plan, reason)
        return judged_locally(problem, settings, plan)
    from daedal.driver.reduced_plan import ReducedPlan

    return plan.in_form(ReducedForm(ReducedPlan(reduction, settings), asked))


def _automatic_reduction(
    problem: Any, equations: SystemEquations, signature: StructuralSignature, *leading: Any
) -> ReducedProblem:
    """Reduce by dummy derivatives, or by the strangeness-free form if the structure is misleading and the index at
    least 3."""
    try:
        return named_reduction("auto").checked(problem, equations, signature, *leading)
    except InvalidProblemError as reason:
        if equations.order > 1:
            characteristic_values(equations, signature)  # raises if the equations do not determine the solution
            raise _NotReducible(
                f"{reason} For 'strangeness_free', define an ImplicitDAE with the velocities as unknowns."
            ) from reason
        reduction = StrangenessFreeProblem.checked(problem, equations, signature, *leading)
        if reduction.index < LOWEST_REDUCED:
            raise
        return reduction


def _misleads(equations: SystemEquations, signature: StructuralSignature) -> bool:
    """Whether the signature method fails; false for problems too large to decide."""
    return equations.n <= LARGEST_EXAMINED and SystemJacobian(equations, signature).generic.verdict == "singular"


def _is_open(settings: Settings) -> bool:
    """Whether formulation and method are automatic, so that the problem may be solved as a mechanism."""
    automatic = all(isinstance(x, str) and x == "auto" for x in (settings.method, settings.formulation))
    return automatic and not settings.options
