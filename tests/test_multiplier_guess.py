"""Forces that have no values at lambda = 0: the search for the multipliers begins elsewhere, or where the user says."""

import numba
import numpy as np
import pytest

import daedal

MU, G = 0.3, 9.81


def divides(t, q, v, lam):
    """Coulomb friction as some write it, mu N^2 / |N|; with floats of Python a division by zero raises."""
    normal = lam[0]
    return np.array([-MU * normal * normal / abs(normal) * np.tanh(v[0] / 0.01), -G])


def divides_in_python(t, q, v, lam):
    normal = float(lam[0])
    return [-MU * normal * normal / abs(normal) * np.tanh(v[0] / 0.01), -G]


def wants_a_guess(t, q, v, lam):
    """Defined for lambda < -5 only, which contains neither 0 nor 1 nor -1."""
    return [-0.1 * np.sqrt(-lam[0] - 5.0), -G]


def block(force, **changes):
    """Slides along the x axis; its weight makes lambda = -g."""
    arguments = {"n_q": 2, "n_constraints": 1, "force_uses_multipliers": True} | changes
    return daedal.MechanicalSystem(1.0, force, lambda t, q: [q[1]], **arguments)


START = ([0.0, 0.0], [3.0, 0.0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("force", [divides, divides_in_python, numba.njit(divides)], ids=["NumPy", "Python", "Numba"])
@pytest.mark.parametrize("formulation", ["auto", "ggl", "index1"])
@pytest.mark.parametrize("guess", [None, [-9.0], [0.0]])
def test_friction_that_divides_by_the_multiplier_runs(force, formulation, guess):
    initial = START if guess is None else (*START, None, None, guess)
    sol = daedal.solve(block(force), (0.0, 0.5), initial, formulation=formulation)
    assert sol.q[0, -1] == pytest.approx(3.0 * 0.5 - 0.5 * MU * G * 0.25, rel=1e-5)
    assert sol.lam == pytest.approx(np.full_like(sol.lam, -G), rel=1e-6)
    assert sol(0.1).lam == pytest.approx([-G], rel=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_was_tried_is_said_and_a_guess_helps():
    with pytest.raises(daedal.InconsistentInitialError) as caught:
        daedal.solve(block(wants_a_guess), (0.0, 0.5), START)
    message = str(caught.value)
    assert "force returns NaN or infinity at the initial values" in message
    assert "Tried lam = 0, 1 and -1" in message
    assert "initial=(q0, v0, None, None, lam0)" in message
    sol = daedal.solve(block(wants_a_guess), (0.0, 0.5), (*START, None, None, [-8.0]))
    slowing = 0.1 * np.sqrt(G - 5.0)
    assert sol.q[0, -1] == pytest.approx(1.5 - 0.5 * slowing * 0.25, rel=1e-6)
    assert sol.lam == pytest.approx(np.full_like(sol.lam, -G), rel=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_consistent_state_carries_its_multipliers_into_the_run():
    system = block(wants_a_guess)
    state = daedal.consistent_initial(system, 0.0, (*START, None, None, [-8.0]))
    assert state.lam == pytest.approx([-G])
    for initial in (state, state.initial):
        assert daedal.solve(system, (0.0, 0.1), initial).success


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_guess_without_values_is_told_among_what_was_tried():
    with pytest.raises(daedal.InconsistentInitialError, match=r"Tried the given lam0, lam = 0, 1 and -1"):
        daedal.solve(block(wants_a_guess), (0.0, 0.5), (*START, None, None, [3.0]))


def test_a_guess_of_the_wrong_shape_is_refused():
    with pytest.raises(daedal.InvalidProblemError, match=r"lam0 has shape \(2,\); expected \(1,\)"):
        daedal.solve(block(divides), (0.0, 0.5), (*START, None, None, [1.0, 2.0]))


def test_other_exceptions_of_a_force_arrive_unchanged():
    def raises(t, q, v, lam):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match=r"^mine$"):
        daedal.solve(block(raises), (0.0, 0.5), START)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_redundant_constraints_do_not_disturb_the_search():
    system = block(
        lambda t, q, v, lam: [-MU * (lam[0] + lam[1]) ** 2 / abs(lam[0] + lam[1]) * np.tanh(v[0] / 0.01), -G],
        n_constraints=2,
    ).replaced(constraint=lambda t, q: [q[1], 2.0 * q[1]])
    sol = daedal.solve(system, (0.0, 0.5), START)
    assert sol.q[0, -1] == pytest.approx(3.0 * 0.5 - 0.5 * MU * G * 0.25, rel=1e-4)
