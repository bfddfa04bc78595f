"""RATTLE and SHAKE: what is refused, and what is said."""

import numpy as np
import pytest

import daedal
from daedal.errors import IntegrationError, InvalidProblemError
from test_rattle import GRAVITY, LINKAGE_START, PROBLEMS, linkage, pendulum


def damped():
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: np.array([-0.3 * v[0], -GRAVITY - 0.3 * v[1]]),
        lambda t, q: np.array([q[0] ** 2 + q[1] ** 2 - 1.0]),
        n_q=2,
        n_constraints=1,
    )


def test_forces_that_depend_on_velocities_are_named():
    start, errors = PROBLEMS["pendulum"][1], []
    exact = daedal.solve(damped(), (0.0, 1.0), start, rtol=1e-12, atol=1e-13)
    for n in (50, 100):
        sol = daedal.solve(damped(), (0.0, 1.0), start, method="rattle", fixed_step=1.0 / n)
        errors.append(np.abs(sol.v[:, -1] - exact.v[:, -1]).max())
    assert "not symplectic" in sol.message and np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
    for name, (make, begin) in PROBLEMS.items():
        quiet = daedal.solve(make(), (0.0, 0.1), begin, method="rattle", fixed_step=0.02)
        assert "symplectic" not in quiet.message, name


def test_a_mass_that_depends_on_time():
    """(m q')' = -4 q with m = 2 + sin t: F = f + m' v does not depend on velocities."""
    system = daedal.MechanicalSystem(
        mass=lambda t, q: np.array([[2.0 + np.sin(t)]]),
        force=lambda t, q, v: np.array([-4.0 * q[0] - np.cos(t) * v[0]]),
        n_q=1,
    )
    exact, errors = daedal.solve(system, (0.0, 2.0), ([1.0], [0.0]), rtol=1e-12, atol=1e-13), []
    for n in (50, 100):
        sol = daedal.solve(system, (0.0, 2.0), ([1.0], [0.0]), method="rattle", fixed_step=2.0 / n)
        errors.append(abs(sol.q[0, -1] - exact.q[0, -1]))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1) and "symplectic" not in sol.message


@pytest.mark.parametrize(
    ("system", "options", "says"),
    [
        (pendulum, {"method": "rattle"}, "pass fixed_step"),
        (pendulum, {"method": "rattle", "order": 3, "fixed_step": 0.1}, "order must be one of 2, 4, 6, 8, got 3"),
        (pendulum, {"method": "rattle", "order": True, "fixed_step": 0.1}, "order must be one of"),
        (pendulum, {"method": "shake", "order": 4, "fixed_step": 0.1}, "unknown option order"),
        (pendulum, {"method": "rattle", "formulation": "ggl", "fixed_step": 0.1}, "omit formulation"),
        (damped, {"method": "shake", "fixed_step": 0.1}, "method='rattle'"),
    ],
)
def test_what_is_refused(system, options, says):
    with pytest.raises(InvalidProblemError, match=says):
        daedal.solve(system(), (0.0, 1.0), PROBLEMS["pendulum"][1], **options)


def test_shake_needs_a_constant_mass():
    with pytest.raises(InvalidProblemError, match="constant mass matrix"):
        daedal.solve(linkage(), (0.0, 1.0), LINKAGE_START, method="shake", fixed_step=0.1)


@pytest.mark.parametrize("name", ["knife_edge", "rolling_disc"])
def test_velocity_constraints_are_refused(name):
    model = daedal.library.get(name)
    with pytest.raises(InvalidProblemError, match="velocity constraints"):
        daedal.solve(model.problem, (0.0, 1.0), model.initial, method="rattle", fixed_step=0.1)


def test_other_problems_are_refused():
    with pytest.raises(InvalidProblemError, match="RATTLE"):
        daedal.solve_dae(lambda t, y, yp: yp + y, (0.0, 1.0), [1.0], [-1.0], method="rattle", fixed_step=0.1)


def test_a_step_that_is_too_long_is_named():
    with pytest.raises(IntegrationError, match="Remedy: use a smaller fixed_step") as caught:
        daedal.solve(pendulum(), (0.0, 6.0), PROBLEMS["pendulum"][1], method="rattle", fixed_step=1.5)
    assert caught.value.solution.t[-1] == 0.0


def test_forces_that_are_not_defined_for_other_velocities_are_left_alone():
    """Whether they depend on velocities cannot be told."""

    def force(t, q, v):
        if v[0] ** 2 + v[1] ** 2 > 2.2 * GRAVITY:
            raise ValueError("faster than any motion from this height")
        return np.array([0.0, -GRAVITY])

    system = daedal.MechanicalSystem(1.0, force, pendulum().constraint, n_q=2, n_constraints=1)
    start = (np.array([0.0, -1.0]), np.array([np.sqrt(2.0 * GRAVITY), 0.0]))
    for method in ("rattle", "shake"):
        sol = daedal.solve(system, (0.0, 1.0), start, method=method, fixed_step=0.005)
        assert sol.success and "symplectic" not in sol.message


def test_exceptions_arrive_unchanged():
    def force(t, q, v):
        if t > 0.5:
            raise KeyError("no table beyond 0.5")
        return np.array([0.0, -GRAVITY])

    system = daedal.MechanicalSystem(1.0, force, pendulum().constraint, n_q=2, n_constraints=1)
    with pytest.raises(KeyError, match="no table"):
        daedal.solve(system, (0.0, 1.0), PROBLEMS["pendulum"][1], method="rattle", fixed_step=0.1)


def test_damping_that_begins_later_is_seen():
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [-q[0] - 0.3 * t**2 * v[0]], n_q=1)
    with pytest.raises(daedal.InvalidProblemError, match="only on positions"):
        daedal.solve(system, (0.0, 5.0), ([1.0], [0.0]), method="shake", fixed_step=0.05)
    sol = daedal.solve(system, (0.0, 5.0), ([1.0], [0.0]), method="rattle", fixed_step=0.05)
    assert "not symplectic" in sol.message


@pytest.mark.parametrize("method", ["rattle", "shake", "mexx"])
def test_first_order_problems_are_told_to_become_mechanisms(method):
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1)
    with pytest.raises(daedal.InvalidProblemError, match="needs a mechanism: use a MechanicalSystem"):
        daedal.solve(problem, (0.0, 1.0), ([1.0], [-1.0]), method=method, fixed_step=0.1)
