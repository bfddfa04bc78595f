"""The same input gives the same bits: whatever ran before, from whatever start, in whatever thread."""

from __future__ import annotations

import copy
import gc
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from weakref import ref

import numpy as np
import pytest

import daedal
from daedal.driver.request import checked_settings
from daedal.mechanics.formulations import FORMULATIONS
from daedal.problems.preparable import prepared_of
from daedal.symbolic import machine
from daedal.symbolic.graph import Graph

GRAVITY = 9.81


def plain_pendulum():
    return daedal.MechanicalSystem(
        2.0,
        lambda t, q, v: [-0.1 * v[0], -2.0 * GRAVITY],
        lambda t, q: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)],
        n_q=2,
        n_constraints=1,
    )


def driven_pendulum():
    """A pivot that moves: constraints that depend on time, and no derivative is given."""
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [0.0, -GRAVITY],
        lambda t, q: [0.5 * ((q[0] - 0.1 * np.sin(3.0 * t)) ** 2 + q[1] ** 2 - 1.0)],
        n_q=2,
        n_constraints=1,
    )


@cache
def compiled_functions():
    """Compiled once: what differs between problems is not their code."""
    import numba

    force = numba.njit(lambda t, q, v: np.array([-0.1 * v[0], -2.0 * GRAVITY]))
    return force, numba.njit(lambda t, q: np.array([0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)]))


def compiled_pendulum():
    force, constraint = compiled_functions()
    return daedal.MechanicalSystem(2.0, force, constraint, n_q=2, n_constraints=1)


def implicit():
    return daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0] * y[1], y[0] ** 2 + y[1] - 2.0 - np.sin(t)], 2)


def semi_explicit():
    return daedal.SemiExplicitDAE(lambda t, y, z: [-z[0] * y[0]], lambda t, y, z: [z[0] - 1.0 - y[0] ** 2], 1, 1)


def index_two():
    return daedal.SemiExplicitDAE(lambda t, y, z: [y[1], -z[0] - y[0]], lambda t, y, z: [y[1] - np.cos(2.0 * t)], 2, 1)


def second_order():
    return daedal.SecondOrderDAE(
        lambda t, x, xp, xpp: [xpp[0] + x[0] * x[2], xpp[1] + x[1] * x[2] + GRAVITY, x[0] ** 2 + x[1] ** 2 - 1.0], 3
    )


def hessenberg():
    return daedal.HessenbergDAE(
        A=[[0.0, 1.0], [-1.0, 0.0]],
        B=[[0.0], [1.0]],
        C=[[0.0, 1.0]],
        q=[0.0, 0.0],
        r=lambda t: np.array([-np.cos(t)]),
        n_x=2,
        n_y=1,
    )


def linear():
    """x' = -x + y + sin t, 0 = x - 2 y."""
    return daedal.LinearDAE([[-1.0]], [[1.0]], [[1.0]], [[-2.0]], lambda t: [np.sin(t)], [0.0], n_x=1, n_y=1)


def sparse_chain():
    return daedal.library.chain_of_pendulums(n=4).problem


def chain_start(shift):
    q, v = daedal.library.chain_of_pendulums(n=4).initial
    return np.asarray(q) + shift * np.cos(np.arange(len(q))), np.asarray(v)


def thermostat():
    heat, cool = (daedal.ImplicitDAE(lambda t, y, yp, s=s: [yp[0] - s + 0.5 * y[0]], 1) for s in (2.0, 0.0))
    return daedal.hybrid.HybridProblem(
        {"on": heat, "off": cool},
        [
            daedal.hybrid.Transition("on", "off", lambda t, y: y[0] - 2.0, name="warm"),
            daedal.hybrid.Transition("off", "on", lambda t, y: y[0] - 1.0, name="cold"),
        ],
    )


PENDULUM = [([1.0, 0.0], [0.0, 0.0]), ([0.6, -0.8], [0.8, 0.6])]
DRIVEN = [([1.0, 0.0], None), ([0.6, -0.8], None)]
SCALAR = [([1.0, 1.0], None), ([0.5, 1.75], None)]


def cases():
    """name: (maker of a problem, starts, options)."""
    found = {}
    for method in (
        "auto",
        "dassl",
        "dopri5",
        "hem4",
        "hem5",
        "phem56",
        "hedop5",
        "modified_bdf",
        "collocation",
        "mexx",
    ):
        found[f"pendulum-{method}"] = plain_pendulum, PENDULUM, {"method": method, "rtol": 1e-5}
    for method in ("rk4", "hem3", "rattle"):
        found[f"pendulum-{method}"] = plain_pendulum, PENDULUM, {"method": method, "fixed_step": 0.01}
    found["linear"] = linear, [([1.0], None), ([0.3], None)], {}
    found["sparse"] = sparse_chain, [chain_start(0.0), chain_start(0.05)], {"rtol": 1e-4, "correct_initial": True}
    for name in FORMULATIONS:
        found[f"pendulum-{name}"] = plain_pendulum, PENDULUM, {"formulation": name, "rtol": 1e-4}
    found["driven"] = driven_pendulum, DRIVEN, {"correct_initial": True}
    found["driven-shake"] = driven_pendulum, DRIVEN, {"correct_initial": True, "method": "shake", "fixed_step": 0.01}
    found["driven-ggl"] = driven_pendulum, DRIVEN, {"correct_initial": True, "formulation": "ggl", "rtol": 1e-4}
    found["compiled"] = compiled_pendulum, PENDULUM, {}
    found["compiled-ggl"] = compiled_pendulum, PENDULUM, {"formulation": "ggl"}
    found["implicit"] = implicit, SCALAR, {}
    for method in ("multistep", "one_leg"):
        found[f"implicit-{method}"] = implicit, SCALAR, {"method": method, "fixed_step": 0.01}
    for method in ("dassl", "radau", "rosenbrock", "extrapolation", "implicit_runge_kutta"):
        found[f"implicit-{method}"] = implicit, SCALAR, {"method": method, "rtol": 1e-5}
    found["implicit-tests"] = implicit, SCALAR, {"method": "dassl", "error_test": "differential"}
    found["semi-explicit"] = semi_explicit, [([1.0], None), ([0.3], None)], {}
    found["index-two"] = index_two, [([0.3, 1.0], None), ([0.5, 1.0], None)], {"method": "phem56"}
    pendulum_in_x = [([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]), ([0.6, -0.8, GRAVITY * 0.8], [0.0, 0.0, 0.0])]
    for method in ("modified_bdf", "collocation"):
        found[f"second-order-{method}"] = second_order, pendulum_in_x, {"method": method, "rtol": 1e-4}
    for form in ("auto", "ggl", "projected_invariants"):
        found[f"hessenberg-{form}"] = hessenberg, [[0.0, 1.0], [0.4, 1.0]], {"formulation": form, "rtol": 1e-5}
    found["thermostat"] = thermostat, [("on", ([0.5], [1.75])), ("off", ([1.9], [-0.95]))], {}
    return found


CASES = cases()


def bits(solution) -> bytes:
    parts = [np.ascontiguousarray(solution.t).tobytes(), np.ascontiguousarray(solution.y).tobytes()]
    if hasattr(solution, "lam"):
        parts.append(np.ascontiguousarray(solution.lam).tobytes())
    inside = 0.5 * (solution.t[0] + solution.t[-1])
    value = solution(inside)
    parts.append(np.ascontiguousarray(getattr(value, "y", value)).tobytes())
    return b"".join(parts)


def run(name, which, problem=None):
    make, starts, options = CASES[name]
    problem = make() if problem is None else problem
    return bits(daedal.solve(problem, (0.0, 0.7), starts[which], **options))


@pytest.mark.parametrize("name", CASES)
def test_an_earlier_run_from_another_start_leaves_no_trace(name):
    problem = CASES[name][0]()
    before = set(vars(problem))
    alone = run(name, 1)
    run(name, 0, problem)
    assert run(name, 1, problem) == alone
    assert run(name, 1, problem) == alone
    assert set(vars(problem)) == before, "nothing is kept on a problem"


@pytest.mark.slow
@pytest.mark.race
def test_random_order_and_four_threads_give_the_same_bits():
    problems = {name: CASES[name][0]() for name in CASES}
    jobs = [(name, which) for name in CASES for which in (0, 1)]
    alone = {job: run(*job) for job in jobs}
    shuffled = 3 * jobs
    random.Random(7).shuffle(shuffled)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda job: run(*job, problems[job[0]]), shuffled))
    different = {job for job, result in zip(shuffled, found, strict=True) if result != alone[job]}
    assert not different


def test_a_solution_may_be_evaluated_from_several_threads():
    sol = daedal.solve(plain_pendulum(), (0.0, 2.0), PENDULUM[1], rtol=1e-8)
    times = np.linspace(0.0, 2.0, 200)
    alone = [sol(t).lam.tobytes() + sol(t).q.tobytes() for t in times]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda t: sol(t).lam.tobytes() + sol(t).q.tobytes(), times))
    assert together == alone


@pytest.mark.parametrize("name", ["compiled", "driven", "implicit", "index-two", "second-order-modified_bdf"])
def test_a_prepared_solver_gives_the_bits_of_solve(name):
    make, starts, options = CASES[name]
    solver = daedal.prepare(make(), **options)
    for which in (0, 1, 0):
        assert bits(solver.solve((0.0, 0.7), starts[which])) == run(name, which)


def test_what_was_made_ready_is_kept_with_the_problem_and_goes_with_it():
    problem = implicit()
    daedal.solve(problem, (0.0, 1.0), SCALAR[0])
    plans = prepared_of(problem)["plans"]
    plan = plans.get(checked_settings().key)
    daedal.solve(problem, (0.0, 1.0), SCALAR[1])
    assert plan is not None and plans.get(checked_settings().key) is plan
    for other in (copy.copy(problem), replace(problem), pickle.loads(pickle.dumps(sparse_chain()))):
        assert prepared_of(other) == {}
    gone, made = ref(problem), ref(plan)
    del problem, plan, plans
    gc.collect()
    assert gone() is None and made() is None


def test_no_more_than_a_few_problems_keep_plans():
    problems = [implicit() for _ in range(40)]
    for problem in problems:
        daedal.prepare(problem)
    assert [bool(prepared_of(problem)) for problem in problems] == [False] * 8 + [True] * 32


def test_a_prepared_solver_in_four_threads():
    make, starts, options = CASES["compiled"]
    solver = daedal.prepare(make(), **options)
    alone = [run("compiled", which) for which in (0, 1)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda i: bits(solver.solve((0.0, 0.7), starts[i % 2])), range(40)))
    assert found == 20 * alone


def decay(t, y, yp, p):
    return [yp[0] + p[0] * y[0]]


def test_new_parameters_and_pickling_of_a_prepared_solver():
    solver = daedal.prepare(daedal.ImplicitDAE(decay, 1, params=[1.0]), rtol=1e-9)
    again = pickle.loads(pickle.dumps(solver))
    for rate in (1.0, 3.0, 2.0):
        for each in (solver, again):
            sol = each.solve((0.0, 1.0), ([1.0], [-rate]), params=[rate])
            assert abs(sol.y[0, -1] - np.exp(-rate)) < 1e-7
    assert abs(solver.solve((0.0, 1.0), ([1.0], [-1.0])).y[0, -1] - np.exp(-1.0)) < 1e-7


def test_parameters_for_a_problem_without_any_are_refused():
    with pytest.raises(daedal.InvalidProblemError, match="has no parameters"):
        daedal.prepare(implicit()).solve((0.0, 1.0), SCALAR[0], params=[1.0])


BLOWING_UP = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[0] ** 2], 1)
HAULED = daedal.ImplicitDAE(
    lambda t, s, sp: [
        sp[0] - s[2],
        sp[1] - s[3],
        sp[2] + s[4] * s[0],
        sp[3] + s[4] * s[1] + 1.0,
        s[0] ** 2 + s[1] ** 2 - (1.0 - t) ** 2,
    ],
    5,
)


@pytest.mark.parametrize(
    ("problem", "start", "options"),
    [
        (BLOWING_UP, ([1.0], [1.0]), {}),
        (BLOWING_UP, ([1.0], None), {"max_steps": 20}),
        (HAULED, ([0.0, -1.0, 0.5, 1.0, 1.0], None), {"max_steps": 50, "correct_initial": True}),
    ],
)
def test_a_failed_run_is_freed_with_its_error(problem, start, options):
    """No frame in a traceback refers to the error, which would keep a solution until cycles are collected."""

    def failed():
        try:
            daedal.solve(problem, (0.0, 2.0), start, **options)
        except daedal.IntegrationError as error:  # pytest.raises would keep it
            return ref(error.solution)
        raise AssertionError

    gc.collect()
    gc.disable()
    try:
        assert failed()() is None
    finally:
        gc.enable()


def test_linkers_are_freed_with_the_programs_that_they_loaded():
    def made(k):
        graph = Graph()
        found = graph.multiply(graph.apply("sin", graph.argument("y", 0)), graph.constant(2.0 + k))
        return machine.compile_function(graph, {"y": 1}, {"f": [found]})

    linkers = [ref(made(k)._code._library._linker) for k in range(4 * machine._OF_A_LINKER)]
    gc.collect()
    assert linkers[machine._OF_A_LINKER]() is None  # neither recently used, nor shared with programs of other tests
