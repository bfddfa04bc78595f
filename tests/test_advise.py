"""Advice on formulation and method: what it recommends, that it works, and that a student can read it."""

import numpy as np
import pytest

import daedal
from test_measures import example1, example2

ONES = np.ones(2)


def pendulum(damping=0.0):
    """A pendulum of length 1 with damping."""
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [-damping * v[0], -9.81 - damping * v[1]],
        lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=2,
        n_constraints=1,
    )


def solved(system, t_span, initial, advice, **options):
    return daedal.solve(system, t_span, initial, formulation=advice.formulation, method=advice.method, **options)


@pytest.mark.parametrize("name", ["planar_pendulum", "double_pendulum", "seven_body", "knife_edge"])
def test_ordinary_mechanisms_get_what_the_automatic_choice_takes(name):
    model = daedal.library.get(name)
    advice = daedal.advise(model.problem, model.t_span, model.initial)
    assert (advice.case, advice.formulation.name, advice.method.name) == (1, "projection", "dopri5")
    assert advice.verdict.explicit and advice.forbidden == ()
    t0, t1 = model.t_span
    run = model.problem, (t0, t0 + 0.01 * (t1 - t0)), model.initial
    advised, automatic = solved(*run, advice), daedal.solve(*run)
    assert (advised.formulation, advised.method) == (automatic.formulation, automatic.method)


@pytest.mark.parametrize("kappa", [0.0, 1.0])
def test_case_4_is_recognised_and_the_recommendation_takes_long_steps(kappa):
    model = daedal.library.stability_example3(nu=1000.0, kappa=kappa)
    advice = daedal.advise(model.problem, model.t_span, model.initial)
    assert advice.case == 4 and advice.formulation == daedal.formulations.ProjectedInvariants(projection="CT")
    assert "index2" in advice.forbidden and "ggl" in advice.forbidden
    sol = solved(model.problem, model.t_span, model.initial, advice)
    assert np.max(np.abs(sol.y[:, -1] - np.e)) < 1e-4
    assert sol.stats.steps < 100  # a nonstiff treatment needs h < 2/V_B, 500 steps at least


def test_hessenberg_examples_get_their_cases():
    assert daedal.advise(example1(1.0), (0.0, 1.0), ONES).case == 1
    assert daedal.advise(example1(1000.0), (0.0, 1.0), ONES).case == 2
    assert daedal.advise(example1(1.0, a=-1e4), (0.0, 1.0), ONES).case == 3
    assert daedal.advise(example2(1000.0), (0.0, 1.0), ONES).case == 4


def test_stiff_damping_is_case_3_and_mild_damping_is_not():
    initial = ([1.0, 0.0], [0.0, 0.0])
    stiff = daedal.advise(pendulum(1e4), (0.0, 5.0), initial)
    assert (stiff.case, stiff.formulation.name, stiff.method.name) == (3, "ggl", "dassl")
    assert "decay" in stiff.reasons[0]
    sol = solved(pendulum(1e4), (0.0, 5.0), initial, stiff)
    assert sol.success and sol.stats.steps < 1000
    assert daedal.advise(pendulum(1.0), (0.0, 5.0), initial).case == 1


def test_vibrations_that_the_steps_pass_over_are_stiff_and_excited_ones_are_not():
    # A pendulum whose bob carries a small mass on a stiff spring along x
    k, m = 1e6, 1e-2
    system = daedal.MechanicalSystem(
        [1.0, 1.0, m],
        lambda t, q, v: [k * (q[2] - q[0]), -9.81, -k * (q[2] - q[0])],
        lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=3,
        n_constraints=1,
    )
    calm = daedal.advise(system, (0.0, 0.5), ([0.0, -1.0, 0.0], [1.0, 0.0, 1.0]), rtol=1e-3)
    assert calm.case == 3 and "vibrations" in calm.reasons[0]
    shaken = daedal.advise(system, (0.0, 0.01), ([0.0, -1.0, 0.01], [1.0, 0.0, 1.0]))
    assert shaken.case == 1


def test_tighter_tolerances_ask_for_shorter_steps():
    model = daedal.library.planar_pendulum()
    loose, tight = (daedal.advise(model.problem, model.t_span, model.initial, rtol=rtol) for rtol in (1e-4, 1e-9))
    assert np.median(tight.h) < 0.3 * np.median(loose.h)


def test_the_step_is_that_of_the_slow_motion():
    # Accuracy allows the same steps whatever nu
    models = [daedal.library.stability_example3(nu=nu, kappa=0.0) for nu in (1.0, 1000.0)]
    steps = [np.median(daedal.advise(m.problem, m.t_span, m.initial).h) for m in models]
    assert 0.3 < steps[1] / steps[0] < 3.0


def test_advice_in_words_fits_on_a_small_page():
    model = daedal.library.stability_example3(nu=1000.0)
    text = str(daedal.advise(model.problem, model.t_span, model.initial))
    lines = text.splitlines()
    assert len(lines) <= 16 and max(map(len, lines)) <= 110
    assert "use        formulation=ProjectedInvariants(), method=DASSL()" in text
    for word in ("trial", "forces", "turning", "rotation", "condition", "in short", "because", "avoid"):
        assert word in text


def test_a_trial_that_is_cut_short_still_gives_advice():
    model = daedal.library.rod_pendulum()
    advice = daedal.advise(model.problem, (0.0, 1000.0), model.initial)
    assert advice.case == 1 and "the limit on its steps ended it" in str(advice)


def test_backward_runs_are_advised_too():
    model = daedal.library.planar_pendulum()
    advice = daedal.advise(model.problem, (0.0, -3.0), model.initial)
    assert advice.case == 1 and np.all(advice.h > 0.0)


def test_a_system_without_constraints_is_judged_by_its_forces():
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [-1e5 * (v[0] - np.cos(t))], n_q=1)
    assert daedal.advise(system, (0.0, 1.0), ([0.0], [1.0])).case == 3


def test_other_problems_are_refused_in_words():
    with pytest.raises(daedal.InvalidProblemError, match="a problem of type ImplicitDAE is solved as given"):
        daedal.advise(daedal.library.robertson().problem, (0.0, 1.0), None)
    with pytest.raises(daedal.InvalidProblemError, match="rtol"):
        daedal.advise(pendulum(), (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), rtol=-1.0)


def test_a_mechanism_that_runs_into_a_singular_position_is_reported():
    # Crank and rod of equal length: in the dead centre both constraints have the same gradient
    system = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [0.0, -1.0, 0.0],
        lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0, (q[2] - q[0]) ** 2 + q[1] ** 2 - 1.0],
        n_q=3,
        n_constraints=2,
    )
    c, s = 0.5, np.sqrt(0.75)
    advice = daedal.advise(system, (0.0, 2.0), ([c, s, 2.0 * c], [-s, c, -2.0 * s]))
    assert advice.case == "singular" and "linearly dependent" in str(advice)
