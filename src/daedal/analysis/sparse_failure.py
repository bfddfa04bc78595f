"""Why the integration of a system with sparse matrices could not go on, in words."""

import numpy as np

from daedal.analysis.diagnosis import diagnose
from daedal.analysis.ending_sentences import more_steps, stopped, stopped_step
from daedal.analysis.wording import MOST_NAMED, counted, listing
from daedal.errors import Unevaluable
from daedal.kernels.endings import Ending
from daedal.mechanics.sparse.sparse_assembly import SparseAssembly
from daedal.mechanics.sparse.structure import SingularMatrix
from daedal.problems import MechanicalSystem


def explain_sparse(assembly: SparseAssembly, reduction, failure) -> str:
    """Why a run failed: dependent constraints where it stopped, or what the method says."""
    t, nx = float(failure.t), assembly.nx
    if failure.code in (Ending.MAX_STEPS, Ending.STALLED):
        limit = f"the limit of {counted(failure.steps, 'step')} was reached"
        what = limit if failure.code == Ending.MAX_STEPS else Ending.STALLED.meaning
        return f"{stopped_step(failure, what, failure.t_span)} Remedy: {more_steps(failure, failure.t_span)}."
    q = failure.y[:nx]
    try:
        assembly.augmented.factor(assembly.mass(t, q).data, assembly.jacobian(t, q).data)
    except SingularMatrix as error:
        return stopped(t, describe_dependence(assembly.system, t, error.null), digits=10)
    except Unevaluable:
        pass
    return diagnose(reduction.problem, failure, frozenset({"MechanicalSystem"}))


def describe_dependence(system: MechanicalSystem, t: float, null: np.ndarray) -> str:
    """What makes the augmented matrix singular, from the vector that it annihilates."""
    n = system.n_q
    free, dependent = np.abs(null[:n]), np.abs(null[n:])
    reason = "constraints are dependent, or directions that they leave free have no mass"
    largest = float(np.max(np.abs(null), initial=0.0))
    if np.isfinite(largest) and largest > 0.0:
        rows = np.flatnonzero(dependent > 0.1 * np.max(dependent, initial=0.0))
        columns = np.flatnonzero(free > 0.1 * np.max(free, initial=0.0))
        if np.max(dependent, initial=0.0) > np.max(free, initial=0.0):
            named = listing((system.constraint_label(int(i)) for i in rows[:MOST_NAMED]), rows.size)
            reason = f"the gradients of these constraints are dependent: {named}"
        else:
            named = listing((system.label(int(i)) for i in columns[:MOST_NAMED]), columns.size)
            reason = f"the mass matrix is singular in a direction that the constraints leave free: {named}"
    return (
        f"accelerations and multipliers are not determined at t = {t:g}: {reason}. "
        "Remedy: sparse systems need independent constraints; leave out those that follow from others."
    )
