"""What all methods share: the base class, the registry, prepared runs, endings."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import daedal
from daedal.errors import InvalidProblemError
from daedal.events.event import gather_events
from daedal.kernels.endings import MEANINGS, Ending
from daedal.mechanics.formulations import named_formulation
from daedal.mechanics.formulations.second_order_forms import second_order_form
from daedal.mechanics.system_workspace import SystemWorkspace
from daedal.methods.base import FORMS, Method, registered
from daedal.methods.named_methods import method_class, named_method
from daedal.methods.task import Equations, Task
from heun import Heun

PENDULUM = daedal.library.get("planar_pendulum")


# --- a new method -----------------------------------------------------------------------------------------------------


def solve_pendulum(method, span=(0.0, 2.0), **options):
    return daedal.solve(PENDULUM.problem, span, PENDULUM.initial, method=method, **options)


def test_a_new_method_takes_fewer_than_sixty_lines():
    assert len((Path(__file__).parent / "heun.py").read_text().splitlines()) < 60


def test_a_new_method_solves_with_error_control_output_times_events_and_dense_output():
    times = np.linspace(0.0, 2.0, 9)
    turns = daedal.Event(lambda t, q, v: q[0], name="vertical")
    sol = solve_pendulum(Heun(), rtol=1e-7, atol=1e-9, t_eval=times, events=turns)
    exact = solve_pendulum("dopri5", formulation="projection", rtol=1e-11, atol=1e-12, events=turns)
    assert sol.success and sol.stats.error_test_failures > 0
    np.testing.assert_array_equal(sol.t, times)
    np.testing.assert_allclose(sol.q, exact(times).q, atol=3e-5)
    np.testing.assert_allclose(sol(1.234).q, exact(1.234).q, atol=3e-5)
    assert [e.t for e in sol.events] == pytest.approx([e.t for e in exact.events], abs=3e-5)
    stopped = solve_pendulum(Heun(), events=replace(turns, terminal=True))
    assert stopped.status == "event" and stopped.t[-1] == pytest.approx(exact.events[0].t, abs=1e-3)


def test_a_new_method_has_its_order_with_constant_steps():
    exact = solve_pendulum("dopri5", formulation="projection", rtol=1e-12, atol=1e-13).q[:, -1]
    errors = [np.max(np.abs(solve_pendulum(Heun(), fixed_step=h).q[:, -1] - exact)) for h in (0.02, 0.01, 0.005)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.15)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.15)


def test_a_new_method_refuses_what_it_does_not_work_on():
    problem = daedal.ImplicitDAE(lambda t, y, yp: yp + y, 1)
    with pytest.raises(InvalidProblemError, match="Heun needs ordinary differential equations"):
        daedal.solve(problem, (0.0, 1.0), ([1.0], None), method=Heun())


# --- the registry -----------------------------------------------------------------------------------------------------


def test_a_class_is_found_by_its_name_and_by_that_of_the_class():
    assert type(named_method("heun", {})) is Heun
    assert type(named_method("ModifiedBDF", {})) is type(named_method("modified_bdf", {})) is daedal.methods.ModifiedBDF
    assert named_method(daedal.methods.DASSL, {"max_order": 2}).max_order == 2
    given = daedal.methods.HEM4(controller="classic")
    assert named_method(given, {}) is given


method_class("none of them")  # imports all methods


@pytest.mark.parametrize("kind", [kind for kind in registered().values() if kind is not Heun])
def test_every_method_declares_what_it_works_on_and_its_options(kind):
    assert set(kind.needs) <= set(FORMS) and kind.needs
    method = kind()
    assert method.max_order >= 1
    assert all(hasattr(method, field.name) for field in fields(kind))
    assert kind.name == kind.name.lower()


def test_a_users_class_does_not_replace_a_method_of_the_same_name():
    class DASSL(Method):
        name = "dassl"
        needs = ("residual",)

        def prepare(self, equations):
            raise NotImplementedError

    assert type(named_method("dassl", {})) is daedal.methods.DASSL
    assert isinstance(named_method(DASSL, {}), DASSL)


def test_names_are_suggested():
    with pytest.raises(InvalidProblemError, match=r"'colocation'; did you mean 'collocation'\? known: auto, "):
        named_method("colocation", {})


# --- prepared runs ----------------------------------------------------------------------------------------------------


def task(span, y0, yp0, **options):
    n = len(y0)
    given = {"rtol": np.full(n, 1e-6), "atol": np.full(n, 1e-9)} | options
    return Task(span, np.array(y0), np.array(yp0), **given)


def robertson(method=None, traced=False, **options):
    def residual(t, y, yp):
        fast = 1e4 * y[1] * y[2]
        return [yp[0] + 0.04 * y[0] - fast, yp[1] - 0.04 * y[0] + fast + 3e7 * y[1] ** 2, y[0] + y[1] + y[2] - 1.0]

    problem = daedal.ImplicitDAE(residual, 3, **options)
    problem = problem.compiled(backend="trace") if traced else problem
    run = (method or daedal.methods.DASSL()).prepare(Equations(3, problem=problem))
    near = task((0.0, 50.0), [1.0, 0.0, 0.0], [-0.04, 0.04, 0.0])
    event = gather_events(lambda t, y: y[0] - 0.9, problem, 0.0, near.y0, near.yp0)
    far = task((0.0, 1e4), [0.9, 0.0, 0.1], [-0.036, 0.036, 0.0], switching=event, dense=False)
    return run, near, far


def mechanism(method, formulation):
    q0, v0 = (np.asarray(values, dtype=float) for values in PENDULUM.initial[:2])
    assembly = SystemWorkspace(PENDULUM.problem, 0.0, q0, autonomous=True)
    start, form = assembly.start(0.0, np.concatenate([q0, v0])), named_formulation(formulation)
    if method.supports("second_order"):
        reduction = second_order_form(form, assembly, start, project=True)
        form = {"second_order": reduction.problem, "hook": reduction.problem.residual.hook}
    else:
        reduction = form.reduce(assembly, start)
        form = {"problem": reduction.problem, "rate": reduction.rate, "hook": reduction.problem.residual.hook}
    n = reduction.problem.n
    run = method.prepare(Equations(n, mechanism=assembly, bridge=assembly.bridge, **form))
    near = task((0.0, 0.5), reduction.y0, reduction.yp0, excluded=reduction.excluded)
    far = task((0.0, 1.7), reduction.y0, reduction.yp0, t_eval=np.linspace(0.0, 1.7, 30), excluded=reduction.excluded)
    return run, near, far


RUNS = {
    "DASSL": robertson,
    "DASSL, sparse": lambda: robertson(sparsity=np.ones((3, 3))),
    "DASSL, scaled rows": lambda: robertson(daedal.methods.DASSL(row_scaling=[0.0, 0.0, 1.0])),
    "DASSL, masked": lambda: robertson(
        daedal.methods.DASSL(error_test="filtered", nonnegative=True, variable_index=[1, 1, 2])
    ),
    "Radau": lambda: robertson(daedal.methods.Radau()),
    "Radau, sparse": lambda: robertson(daedal.methods.Radau(), sparsity=np.ones((3, 3))),
    "Radau, banded": lambda: robertson(daedal.methods.Radau(stages=5), bandwidth=(2, 2)),
    "Rosenbrock": lambda: robertson(daedal.methods.Rosenbrock()),
    "Rosenbrock, RODAS3, sparse": lambda: robertson(daedal.methods.Rosenbrock("rodas3"), sparsity=np.ones((3, 3))),
    "Rosenbrock, code": lambda: robertson(daedal.methods.Rosenbrock(), traced=True),
    "Radau, classes": lambda: robertson(daedal.methods.Radau(variable_index=[1, 1, 2])),
    "Radau, GGL": lambda: mechanism(daedal.methods.Radau(), "ggl"),
    "Extrapolation": lambda: robertson(daedal.methods.Extrapolation()),
    "Extrapolation, sparse": lambda: robertson(
        daedal.methods.Extrapolation(scheme="implicit"), sparsity=np.ones((3, 3))
    ),
    "Extrapolation, banded": lambda: robertson(daedal.methods.Extrapolation(scheme="limex"), bandwidth=(2, 2)),
    "MEXX": lambda: mechanism(daedal.methods.MEXX(), "index1"),
    "GGL": lambda: mechanism(daedal.methods.DASSL(), "ggl"),
    "DOPRI5": lambda: mechanism(daedal.methods.DOPRI5(), "index1"),
    "PHEM56": lambda: mechanism(daedal.methods.PHEM56(), "index1"),
    "HEM4": lambda: mechanism(daedal.methods.HEM4(), "index1"),
    "ModifiedBDF": lambda: mechanism(daedal.methods.ModifiedBDF(), "index3"),
    "thesis": lambda: mechanism(daedal.methods.ModifiedBDF(controller="thesis"), "index3"),
    "ImplicitRungeKutta": lambda: robertson(daedal.methods.ImplicitRungeKutta("lobatto_iiia3")),
    "ImplicitRungeKutta, embedded": lambda: robertson(
        daedal.methods.ImplicitRungeKutta("sdirk4"), sparsity=np.ones((3, 3))
    ),
    "ImplicitRungeKutta, GGL": lambda: mechanism(daedal.methods.ImplicitRungeKutta("radau3"), "ggl"),
    "Collocation": lambda: mechanism(daedal.methods.Collocation("radau", stages=2), "index3"),
    "Heun": lambda: mechanism(Heun(), "index1"),
}


def bits(outcome):
    kept = [outcome.t, outcome.y, outcome.yp, outcome.y_reached, outcome.counts]
    if outcome.dense is not None:
        kept += [outcome.dense.coefficients, outcome.dense.psi, outcome.dense.starts]
    return [outcome.reason, outcome.steps, *[array.tobytes() for array in kept], *[e.t for e in outcome.events]]


@pytest.mark.parametrize("name", RUNS)
def test_a_prepared_run_gives_the_same_bits_whatever_ran_before(name):
    run, near, far = RUNS[name]()
    first = bits(run.integrate(near))
    run.integrate(far)
    run.integrate(replace(near, fixed_step=0.0625, dense=False))
    fresh, same, _ = RUNS[name]()
    assert bits(run.integrate(near)) == first == bits(fresh.integrate(same))


def test_an_outcome_does_not_change_when_the_run_is_used_again():
    run, near, far = robertson()
    outcome = run.integrate(near)
    kept = bits(outcome)
    run.integrate(far)
    assert bits(outcome) == kept


def test_events_and_their_records_are_made_once_for_their_functions():
    run, _, far = robertson()
    first = run.integrate(far)
    made = run._switching
    second = run.integrate(far)
    assert run._switching is made and bits(first) == bits(second)
    run.integrate(replace(far, switching=replace(far.switching, initial=-far.switching.initial)))
    assert run._switching is made, "signs at the start and parameters are all that differs"
    run.integrate(replace(far, switching=replace(far.switching, terminal=far.switching.terminal.copy())))
    assert run._switching is not made


def test_explicit_methods_build_neither_a_residual_nor_linear_algebra():
    for method in (daedal.methods.PHEM56(), daedal.methods.DOPRI5()):
        run, near, _ = mechanism(method, "index1")
        assert run.workspace is None
        assert run.system["residual"]["kind"] == 0
        run.integrate(near)


def test_the_last_of_constant_steps_ends_on_the_end_of_the_interval():
    # 0.1 + 7 (0.6 / 7) is not 0.7
    sol = solve_pendulum(daedal.methods.HEM3(), span=(0.1, 0.7), fixed_step=0.6 / 7.0)
    assert sol.t[-1] == 0.7
    problem = daedal.ImplicitDAE(lambda t, y, yp: yp + y, 1)
    sol = daedal.solve(
        problem, (0.1, 0.7), ([1.0], None), method=daedal.methods.DASSL(max_order=2), fixed_step=0.6 / 7.0
    )
    assert sol.t[-1] == 0.7 and sol.t.size == 8


# --- endings ----------------------------------------------------------------------------------------------------------


def test_every_ending_has_a_meaning():
    assert set(MEANINGS) == set(Ending)
    assert Ending.FINISHED.meaning and not Ending.FINISHED.failed and Ending.UNEVALUABLE.failed
    assert f"{Ending.ERROR_TEST_FAILED}" == "-6"


def test_a_solution_reports_the_ending_of_its_run():
    run, near, _ = robertson()
    assert run.integrate(near).reason is Ending.FINISHED
    assert run.integrate(replace(near, max_steps=3)).reason is Ending.MAX_STEPS
    outcome = run.integrate(replace(near, atol=np.zeros(3)))
    assert outcome.reason is Ending.ZERO_WEIGHT and outcome.failure.component == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: daedal.methods.Rosenbrock(["rodas4"]), "variant must be one of"),
        (
            lambda: daedal.methods.Rosenbrock(linear_solver=np.array(["dense"])),
            "linear_solver of Rosenbrock must be one of",
        ),
        (lambda: daedal.methods.Extrapolation(columns=np.array([2, 3])), "columns must be 'auto' or a whole number"),
        (lambda: daedal.methods.Extrapolation(sequence=[1, 10**9]), "of at most 10000"),
        (lambda: daedal.methods.MEXX(columns=np.array([2, 3])), "columns must be 'auto' or a whole number"),
        (lambda: daedal.methods.RATTLE(order=np.array([2, 4])), "order must be one of"),
        (lambda: daedal.methods.RATTLE(order=2.0), "order must be one of"),
        (lambda: daedal.methods.Multistep("bdf2", scheme=["x"]), "scheme must be one of"),
        (lambda: daedal.methods.ImplicitRungeKutta(projection=None), "projection must be one of"),
    ],
)
def test_options_of_the_wrong_kind_are_refused_in_words(make, words):
    with pytest.raises(daedal.InvalidProblemError, match=words):
        make()
