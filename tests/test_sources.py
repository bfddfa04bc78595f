"""Machines and circuits are solved as they are: by `solve`, prepared, many times, and analysed."""

import pickle
import warnings

import numpy as np
import pytest

import daedal
from daedal import circuits
from daedal.multibody import Body, JointFriction, Model, Revolute, ground
from daedal.problems.preparable import prepared_of
from daedal.problems.problem_sources import is_source, problem_of

SPAN = (0.0, 0.5)


def pendulum():
    rod = Body.rod("rod", length=1.0, mass=2.0)
    return Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)


def low_pass():
    return circuits.parse("V1 in 0 PULSE(0 1 1m 1u 1u 2m 4m)\nR1 in out 1k\nC1 out 0 1u")


def test_a_model_gives_the_bits_of_its_equations_of_motion():
    model = pendulum()
    sol = daedal.solve(model, SPAN, None)
    np.testing.assert_array_equal(sol.q, daedal.solve(model.system(), SPAN, model.start()).q)
    start = model.assemble(pivot=0.5)
    np.testing.assert_array_equal(daedal.solve(model, SPAN, start).q, daedal.solve(model, SPAN, {"pivot": 0.5}).q)
    moving = daedal.solve(model, SPAN, {"pivot": 0.5, "pivot'": 2.0})
    assert moving.q[0, 0] == pytest.approx(0.5) and moving.v[0, 0] == pytest.approx(2.0)


def test_a_model_keeps_its_problem_and_travels_without_it():
    model = pendulum()
    assert model.as_problem() is model.as_problem() is problem_of(model)
    before = daedal.solve(model, SPAN, None).q
    other = pickle.loads(pickle.dumps(model))
    assert is_source(other) and not prepared_of(other)
    np.testing.assert_array_equal(daedal.solve(other, SPAN, None).q, before)


def test_a_model_with_modes_is_solved_in_the_coordinates_that_it_needs():
    rod = Body.rod("rod", length=1.0, mass=1.0)
    model = Model(
        Revolute("pivot", ground, rod.start), JointFriction("brake", "pivot", torque=0.5), gravity=(0.0, -9.81)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sol = daedal.solve(model, SPAN, {"pivot": -1.0})
    same = daedal.solve(model.problem(), SPAN, model.assemble(pivot=-1.0))
    assert isinstance(sol, daedal.HybridSolution)
    np.testing.assert_array_equal(sol.t, same.t)


def test_a_circuit_starts_at_its_operating_point_and_stops_at_kinks_of_its_sources():
    circuit = low_pass()
    sol = daedal.solve(circuit, (0.0, 4e-3), None, atol=circuit.tolerances())
    np.testing.assert_array_equal(sol.y, circuit.solve((0.0, 4e-3)).y)
    loaded = daedal.solve(circuit, (0.0, 5e-4), {"C1": 0.5})
    assert loaded["v(out)"][0] == pytest.approx(0.5)
    assert loaded["v(out)"][-1] == pytest.approx(0.5 * np.exp(-0.5), rel=1e-4)


def test_parameters_of_a_run_are_those_of_its_start_as_well():
    divider = circuits.parse("V1 in 0 12\nR1 in out 1k\nR2 out 0 3k\nC1 out 0 1u")
    sol = daedal.solve(divider, (0.0, 1e-3), None, params={"R2": 1e3})
    np.testing.assert_allclose(sol["v(out)"], 6.0, rtol=1e-6)
    solver = daedal.prepare(divider)
    np.testing.assert_allclose(solver.solve((0.0, 1e-3), None)["v(out)"], 9.0, rtol=1e-6)
    np.testing.assert_allclose(solver.solve((0.0, 1e-3), None, params={"R2": 1e3})["v(out)"], 6.0, rtol=1e-6)


def test_circuits_that_were_solved_can_be_pickled():
    circuit = low_pass()
    daedal.solve(circuit, (0.0, 5e-4), None)
    assert pickle.loads(pickle.dumps(circuit)).as_problem().names == circuit.as_problem().names


@pytest.mark.parametrize("make", [pendulum, low_pass])
def test_prepared_many_times_and_analysed(make):
    source = make()
    prepared = daedal.prepare(source)
    single = prepared.solve((0.0, 5e-4), None)
    again = pickle.loads(pickle.dumps(prepared)).solve((0.0, 5e-4), None) if make is pendulum else single
    np.testing.assert_array_equal(single.y, again.y)
    assert daedal.solve_many(source, (0.0, 5e-4), None, on="threads", workers=1).failed.size == 0
    assert daedal.analyse(source).index == daedal.analyse(source.problem()).index


def test_a_start_that_a_model_does_not_know_is_refused_by_name():
    with pytest.raises(daedal.errors.UnknownNameError, match="hinge"):
        daedal.solve(pendulum(), SPAN, {"hinge": 0.5})
