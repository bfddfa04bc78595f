"""Whether a problem is reduced before it is solved."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_bipartite_matching

from daedal.drive.request import Settings
from daedal.drive.traced import TracedPlan
from daedal.errors import InvalidProblemError, StructurallySingularError
from daedal.index_reduction.mechanism import recognise_mechanism
from daedal.index_reduction.reduce import REDUCTIONS, analysed, named_reduction, orders_of
from daedal.index_reduction.reduced import ReducedProblem
from daedal.index_reduction.strangeness_free import StrangenessFree
from daedal.structure.equations import Equations
from daedal.structure.signature import Orders, Signature
from daedal.tracing.tracer import TracedProblem

LOWEST_REDUCED = 3
"""Structural index from which problems are reduced without being asked: methods solve index 2 as it stands."""
_LARGEST_COMPILED = 100  # unknowns of a problem in compiled functions, which is traced for its structure alone


def is_reduction(formulation: Any) -> bool:
    """Whether a formulation is one of the ways to reduce the index."""
    return isinstance(formulation, str) and formulation in REDUCTIONS


def reduced_plan(problem: Any, settings: Settings, plan: TracedPlan) -> TracedPlan:
    """The plan for the mechanism that a problem describes, for the reduced problem, or `plan`: as it stands."""
    formulation, traced = settings.formulation, plan.traced
    asked = is_reduction(formulation)
    if not asked and (formulation != "auto" or settings.compile == "never" or not _may_need_it(problem, traced)):
        return plan
    try:
        equations, signature = analysed(problem)
        mechanism = recognise_mechanism(equations) if _may_be_mechanism(settings, traced) else None
        if mechanism is not None:
            from daedal.drive.recognised import RecognisedPlan

            return RecognisedPlan(plan, mechanism)
        if not asked and signature.index < LOWEST_REDUCED:
            return plan
        make = named_reduction(formulation).checked if asked else _automatic_reduction
        reduction = make(problem, equations, signature)
    except StructurallySingularError:
        raise
    except InvalidProblemError:
        if asked:
            raise
        return plan  # as it stands it may be solved all the same, or refused by what its run says
    from daedal.drive.any_index import AnyIndexPlan

    return AnyIndexPlan(plan, reduction, settings)


def _automatic_reduction(problem: Any, equations: Equations, signature: Signature) -> ReducedProblem:
    """By dummy derivatives; where the structure misleads by the strangeness-free form, if that says index 3 or more."""
    try:
        return named_reduction("auto").checked(problem, equations, signature)
    except InvalidProblemError:
        reduction = StrangenessFree.checked(problem, equations, signature)
        if reduction.index < LOWEST_REDUCED:
            raise
        return reduction


def _may_be_mechanism(settings: Settings, traced: TracedProblem | None) -> bool:
    """Whether equations and method are Daedal's to choose, and functions were traced."""
    automatic = all(isinstance(x, str) and x == "auto" for x in (settings.method, settings.formulation))
    is_open = automatic and not settings.options and settings.fixed_step is None
    return is_open and traced is not None and bool(traced.functions)


def _may_need_it(problem: Any, traced: TracedProblem | None) -> bool:
    """Whether the structural index can be larger than 1, as far as that is seen at a glance."""
    if traced is None:  # compiled functions
        orders = orders_of(problem) if problem.n <= _LARGEST_COMPILED else None
    else:
        orders = None if traced.orders is None else traced.orders()
    return orders is not None and not has_low_index(orders, problem.n)


def has_low_index(orders: Orders, n: int) -> bool:
    """Whether the equations determine the highest derivatives as they stand: then the structural index is 0 or 1.

    Each unknown is to be matched with an equation of its own that contains its highest derivative.
    """
    highest = np.zeros(n, dtype=np.int64)
    rows = np.repeat(np.arange(n), [len(row) for row in orders])
    columns = np.fromiter((j for row in orders for j in row), np.int64, rows.size)
    found = np.fromiter((k for row in orders for k in row.values()), np.int64, rows.size)
    np.maximum.at(highest, columns, found)
    leading = found == highest[columns]
    matrix = sp.csr_array((np.ones(int(leading.sum())), (rows[leading], columns[leading])), shape=(n, n))
    return bool(np.all(maximum_bipartite_matching(matrix) >= 0))
