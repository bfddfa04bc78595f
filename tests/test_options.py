"""Options of runs: one table makes the signatures, docstrings, defaults and checks of solve, prepare and solve_many."""

import inspect
import pydoc

import numpy as np
import pytest

import daedal
from daedal.driver.options import MethodOptions, RunOptions, SolverOptions, table
from daedal.methods.base import registered
from daedal.methods.named_methods import method_class


def decay():
    return daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0})


def solve(**options):
    return daedal.solve(decay(), (0.0, 1.0), ([1.0], None), **options)


def options_of(function):
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def test_solve_and_prepare_take_the_same_options_with_the_same_defaults():
    of_solve, of_prepare, of_many = map(options_of, (daedal.solve, daedal.prepare, daedal.solve_many))
    assert of_prepare == {name: option.default for name, option in table(SolverOptions).items()}
    assert of_prepare.items() <= of_solve.items() and of_prepare.items() <= of_many.items()
    assert set(of_solve) - set(of_prepare) == {*RunOptions.__annotations__} - {*SolverOptions.__annotations__}


ELSEWHERE = (
    *(daedal.solve_dae, daedal.solve_ivp, daedal.Simulation, daedal.Solver.solve, daedal.fit, daedal.gradient),
    *(daedal.advise, daedal.compare, daedal.consistent_initial, daedal.export_fmu, daedal.linearise),
)
OF_THEIR_OWN = {("solve_ivp", "dense_output"), ("compare", "atol"), ("compare", "max_steps")}


@pytest.mark.parametrize("function", ELSEWHERE, ids=lambda function: function.__name__)
def test_an_option_has_one_name_and_one_default(function):
    known = {name: option.default for name, option in table(RunOptions).items()}
    own = {
        parameter.name: parameter.default
        for parameter in inspect.signature(function).parameters.values()
        if (function.__name__, parameter.name) not in OF_THEIR_OWN and parameter.default is not parameter.empty
    }
    assert {name: own[name] for name in own.keys() & known} == {name: known[name] for name in own.keys() & known}
    assert not own.keys() & {"initials", "start", "given", "system"}


@pytest.mark.parametrize("function", [daedal.Simulation, daedal.fit, daedal.gradient, daedal.solve_many])
def test_functions_that_solve_take_the_options_of_prepare(function):
    assert options_of(daedal.prepare).keys() <= options_of(function).keys()


def test_every_option_is_described():
    for name in options_of(daedal.solve):
        assert name in daedal.solve.__doc__


def test_help_fits_two_screens():
    assert len(pydoc.plain(pydoc.render_doc(daedal.solve)).splitlines()) <= 100


def test_options_of_methods_are_those_of_the_named_methods():
    method_class("none of them")  # imports all
    kinds = [kind for kind in registered().values() if kind.__module__.startswith("daedal.")]
    theirs = {option for kind in kinds for option in kind.options()}
    assert theirs == {*MethodOptions.__annotations__} - {"max_events", "record_events"}


def test_steps_stand_for_their_fields():
    steps = daedal.Steps(first_step=1e-3, max_step=0.1)
    together, apart = solve(steps=steps), solve(first_step=1e-3, max_step=0.1)
    np.testing.assert_array_equal(together.y, apart.y)
    assert together.history.h.max() <= 0.1


def test_sensitivities_stand_for_their_fields():
    together = solve(sensitivities=daedal.Sensitivities(["k"], initial={"k": [0.5]}, errors=False))
    apart = solve(sensitivities=["k"], initial_sensitivities={"k": [0.5]}, sensitivity_errors=False)
    np.testing.assert_array_equal(together.sensitivity("k"), apart.sensitivity("k"))


def test_a_prepared_solver_takes_steps():
    solver = daedal.prepare(decay(), steps=daedal.Steps(max_step=0.1))
    assert solver.solve((0.0, 1.0), ([1.0], None)).history.h.max() <= 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": daedal.Steps(max_step=0.1), "max_step": 0.2}, "max_step is given both in steps and as an option"),
        ({"steps": 0.1}, "steps must be a daedal.Steps, got 0.1"),
        ({"steps": daedal.Steps(max_step=-1.0)}, "max_step must be"),
        ({"sensitivities": daedal.Sensitivities("k"), "sensitivity_errors": False}, "fields of daedal.Sensitivities"),
        ({"max_order": 2}, "max_order is an option of dassl, .*name the method too, as in method='dassl'"),
        ({"max_order": 2, "error_test": "all"}, "max_order, error_test are options of dassl, modified_bdf"),
        ({"stages": 2}, "stages is an option of collocation, radau, .*as in method='collocation'"),
        ({"rtool": 1e-6}, "unknown option rtool; did you mean 'rtol'?"),
        ({"max_ordr": 2}, "unknown option max_ordr; did you mean 'max_order'?"),
    ],
)
def test_options_that_contradict_or_do_not_exist_are_refused(options, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        solve(**options)


def test_a_remedy_for_options_without_a_method_works():
    assert solve(max_order=2, method="dassl").history.order.max() <= 2


def test_a_stop_belongs_to_the_run():
    with pytest.raises(daedal.InvalidProblemError, match="t_stop is an argument of the run, not of prepare"):
        daedal.prepare(decay(), steps=daedal.Steps(t_stop=2.0))


def test_status_is_the_number_of_scipy_and_a_word():
    sol = solve()
    assert sol.status == 0 and sol.status == "finished" and sol.status != "event" and sol.status.reason == "finished"
    assert (str(sol.status), f"{sol.status}", int(sol.status)) == ("finished", "finished", 0)
    ended = solve(events=daedal.Event(lambda t, y: y[0] - 0.5, terminal=True))
    assert ended.status == 1 and ended.status == "event" and ended.status in (0, 1)
    with pytest.raises(daedal.IntegrationError) as caught:
        solve(max_steps=2)
    assert caught.value.solution.status == -1 and caught.value.solution.status == "failed"


def test_a_status_survives_a_file(tmp_path):
    solve().save(tmp_path / "run.npz")
    assert daedal.load(tmp_path / "run.npz").status == 0


def test_counts_have_the_names_of_scipy():
    sol = solve()
    stats = sol.stats
    assert (sol.nfev, sol.njev, sol.nlu) == (stats.nfev, stats.njev, stats.nlu)
    assert (stats.nfev, stats.njev, stats.nlu) == (
        stats.residual_evaluations,
        stats.jacobian_evaluations,
        stats.factorisations,
    )
