"""What users of several kinds looked for in results, and found wrong or missing."""

import pickle
import re
import warnings

import numpy as np
import pytest
import scipy.integrate
from numpy.testing import assert_array_equal

import daedal


@pytest.fixture(scope="module")
def slider():
    """A block on a belt, held by a spring: it sticks and slips."""
    block = daedal.MechanicalSystem(1.0, lambda t, q, v: [-4.0 * q[0]], n_q=1, names=["x"])
    problem = daedal.hybrid.Friction(block, [1.0], mu=0.4, normal=10.0, mu_static=0.5, speed=1.0)
    return problem, daedal.solve(problem, (0.0, 5.0), ([0.0], [0.0]), rtol=1e-9)


# --- the force of friction --------------------------------------------------------------------------------------------


def test_friction_shows_its_force_and_nothing_of_its_own_making(slider):
    _, sol = slider
    assert sol.names == ("x", "x'")
    shown = [*sol.to_dataframe().columns, *sol.events.to_dataframe().columns, *sol.to_xarray().variable.values]
    assert not [name for name in shown if "[" in name] and "friction_force" in shown
    assert not [label for axes in sol.plot(pyplot=False).axes for label in (axes.get_ylabel(),) if "[" in label]


def test_the_force_of_friction_obeys_its_law_in_all_modes(slider):
    _, sol = slider
    force, slips = sol["friction_force"], sol.mode != "stick"
    assert np.allclose(force[slips], 4.0)  # mu N, against the slip to the negative side
    assert np.allclose(force[~slips], 4.0 * sol["x"][~slips], atol=1e-9)  # it holds the spring
    assert np.allclose(sol["x''"], force - 4.0 * sol["x"], atol=1e-9)  # and the equation of motion holds everywhere
    assert np.max(np.abs(force)) == pytest.approx(5.0, rel=1e-6)  # mu_static N
    at = sol.to_dataframe("friction_force", t=[2.0, 0.5])["friction_force"]
    assert at.to_numpy() == pytest.approx([4.0, 4.0 * sol(0.5)["x"]])


def test_the_force_of_friction_is_stored(slider, tmp_path):
    _, sol = slider
    for again in (daedal.load(sol.save(tmp_path / "slider.npz")), pickle.loads(pickle.dumps(sol))):
        assert_array_equal(again["friction_force"], sol["friction_force"])
        assert list(again.to_dataframe().columns) == list(sol.to_dataframe().columns)
        assert "friction_force" not in again.to_dataframe(t=[0.5])
        with pytest.raises(daedal.InvalidProblemError, match="only at the output points"):
            again.to_dataframe("friction_force", t=[0.5])


def test_ensembles_of_friction_have_the_variables_of_the_user(slider):
    problem, _ = slider
    ensemble = daedal.solve_many(problem, (0.0, 1.0), ("slip-", (np.array([[0.0], [0.1]]), np.zeros((2, 1)))))
    assert ensemble.names == ("x", "x'") and ensemble.success


# --- contacts ---------------------------------------------------------------------------------------------------------


def test_contacts_are_stored(tmp_path):
    puck = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -9.81], n_q=2, names=["x", "y"])
    ice = daedal.hybrid.Contact(lambda t, q: q[1], 0.5, tangent=[1.0, 0.0], mu=0.2, name="ice")
    sol = daedal.solve(daedal.hybrid.UnilateralProblem(puck, ice), (0.0, 2.0), {"x": 0.0, "y": 0.3, "x'": 3.0})
    found = sol.contact("ice")
    for again in (daedal.load(sol.save(tmp_path / "puck.npz")), pickle.loads(pickle.dumps(sol))):
        stored = again.contact("ice")
        for part in ("t", "state", "gap", "normal", "friction", "slip"):
            assert_array_equal(getattr(stored, part), getattr(found, part))
        assert again.contact_lanes == sol.contact_lanes != {}
        with pytest.raises(daedal.errors.UnknownNameError, match="no contact 'icy'; did you mean 'ice'"):
            again.contact("icy")
        with pytest.raises(daedal.InvalidProblemError, match="only at the output points"):
            again.contact("ice", t=[0.1])
    mixed = sol.contact("ice", t=[1.9, 0.1])  # in any order
    assert mixed.state.tolist() == [sol.contact("ice", t=[t]).state[0] for t in (1.9, 0.1)]


# --- starts by name, names, plots -------------------------------------------------------------------------------------


def test_runs_through_modes_begin_with_values_by_name(slider):
    problem, _ = slider
    ball = problem.system
    for modes in (
        problem,
        daedal.hybrid.HybridProblem({"a": ball}, start="a"),
        daedal.hybrid.HybridProblem({"a": ball}),
    ):
        given = {"x": 0.2, "x'": 0.5}
        initial = ("a", given) if modes.modes.get("a") and modes.start is None else given
        assert daedal.solve(modes, (0.0, 0.01), initial).y[:, 0].tolist() == [0.2, 0.5]
    with pytest.raises(daedal.InvalidProblemError, match="need a mode"):
        daedal.solve(daedal.hybrid.HybridProblem({"a": ball}), (0.0, 0.01), {"x": 0.2})


def test_plots_take_names_one_after_the_other_and_all_that_have_a_name(slider):
    ode = daedal.ODE(lambda t, y: [y[1], -y[0]], 2, names=["a", "b"])
    sol = daedal.solve(ode, (0.0, 5.0), [0.0, 1.0])
    for names in (("a", "b"), (["a", "b"],), ("a", "b'")):
        lines = [line for axes in sol.plot(*names, steps=False, pyplot=False).axes for line in axes.lines]
        assert len(lines) == 2
    figure = slider[1].plot("x", "friction_force", modes=False, events=False, pyplot=False)
    assert len(figure.axes) == 2
    with pytest.raises(daedal.errors.UnknownNameError, match="did you mean 'a'"):
        sol.plot("A")


def test_unknown_names_are_one_kind_of_error(slider):
    ode = daedal.ODE(lambda t, y, p: [-p["k"] * y[0]], 1, names=["a"], params={"k": 1.0})
    sol = daedal.solve(ode, (0.0, 1.0), [1.0], sensitivities=["k"])
    ensemble = daedal.solve_many(ode, (0.0, 1.0), [1.0], params={"k": [1.0, 2.0]}, t_eval=[0.5])
    for call in (
        lambda: sol["aa"],
        lambda: sol(0.5)["aa"],
        lambda: sol.plot("aa"),
        lambda: sol.to_dataframe(["aa"]),
        lambda: sol.sensitivity("aa"),
        lambda: ensemble["aa"],
        lambda: ensemble.plot(variables=["aa"]),
        lambda: daedal.solve(ode, (0.0, 1.0), [1.0], sensitivities=["aa"]),
        lambda: daedal.solve(ode, (0.0, 1.0), [1.0], params={"aa": 1.0}),
        lambda: slider[1]["xx"],
    ):
        with pytest.raises(daedal.errors.UnknownNameError) as caught:
            call()
        assert isinstance(caught.value, (KeyError, ValueError))
        assert re.search("(known: |(there|available) are)", str(caught.value))


# --- what is printed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (daedal.ODE(lambda t, y: [-y[0]], 1, names=["a"]), "<ODE: 1 unknown (a); functions f>"),
        (
            daedal.MechanicalSystem(
                1.0, lambda t, q, v: [0.0, 0.0], lambda t, q: [q @ q - 1.0], n_q=2, n_constraints=1, names=["x", "y"]
            ),
            "<MechanicalSystem: 2 coordinates (x, y); 1 constraint; functions force, constraint>",
        ),
        (daedal.MassMatrixDAE(lambda t, y: [-y[0]], 1, np.eye(1)), "<MassMatrixDAE: 1 unknown (y[0]); functions f>"),
        (
            daedal.SemiExplicitDAE(lambda t, y, z: z, lambda t, y, z: y + z, 1, 1, names=["u", "w"]),
            "<SemiExplicitDAE: 2 unknowns (u, w); 1 algebraic variable; functions f, g>",
        ),
    ],
)
def test_problems_print_in_one_line(problem, words):
    assert repr(problem) == words


def test_problems_with_modes_print_in_one_line(slider):
    assert repr(slider[0]) == (
        "<Friction: modes slip+, slip-, stick; transitions end of slip+, end of slip-, end of stick>"
    )
    contacts = daedal.hybrid.UnilateralProblem(slider[0].system, daedal.hybrid.Contact(lambda t, q: q[0], name="floor"))
    assert repr(contacts) == "<UnilateralProblem: modes free; contacts floor>"


def test_one_of_a_thing_is_no_plural():
    sol = daedal.solve(daedal.ODE(lambda t, y: [-y[0]], 1), (0.0, 1.0), [1.0], t_eval=[1.0])
    assert repr(sol).startswith("Solution of 1 variable\n") and "(1 point)" in repr(sol)


# --- SciPy's call -----------------------------------------------------------------------------------------------------


def test_results_of_scipys_call_print_as_a_table():
    result = daedal.solve_ivp(lambda t, y: [-y[0]], (0.0, 1.0), [1.0], dense_output=True)
    assert "array(" not in repr(result) and len(repr(result).splitlines()) == 12


def test_scipys_classes_are_methods():
    for method in (scipy.integrate.RK45, scipy.integrate.BDF, scipy.integrate.Radau):
        result = daedal.solve_ivp(lambda t, y: [-y[0]], (0.0, 1.0), [1.0], method=method, rtol=1e-8)
        assert result.y[0, -1] == pytest.approx(np.exp(-1.0), rel=1e-4)


def test_an_interval_of_length_zero_is_what_it_is_in_scipy():
    for solve in (scipy.integrate.solve_ivp, daedal.solve_ivp):
        result = solve(lambda t, y: -y, (2.0, 2.0), [1.0, 3.0], dense_output=True)
        assert result.t.tolist() == [2.0, 2.0] and result.y.tolist() == [[1.0, 1.0], [3.0, 3.0]] and result.success
        assert result.sol(2.0).tolist() == [1.0, 3.0]
    with pytest.raises(daedal.InvalidProblemError, match="t_eval must lie in t_span"):
        daedal.solve_ivp(lambda t, y: -y, (2.0, 2.0), [1.0], t_eval=[3.0])


def test_tolerances_of_zero_are_raised_with_a_warning_as_in_scipy():
    with pytest.warns(UserWarning, match="rtol is too small"):
        result = daedal.solve_ivp(lambda t, y: [-y[0]], (0.0, 1.0), [1.0], rtol=0.0)
    assert result.success


# --- files ------------------------------------------------------------------------------------------------------------


def test_folders_that_do_not_exist_are_made(slider, tmp_path):
    (tmp_path / "blocked").touch()
    for i, write in enumerate((slider[1].save, slider[1].to_csv)):
        write(tmp_path / f"new{i}" / "deeper" / "slider.npz")
        assert (tmp_path / f"new{i}" / "deeper" / "slider.npz").is_file()
        with pytest.raises(FileExistsError):
            write(tmp_path / "blocked" / "slider.npz")


def test_ensembles_are_saved_and_loaded(tmp_path):
    def stop(t, y):
        return y[0] - 0.5

    stop.terminal = True
    ode = daedal.ODE(lambda t, y, p: [-p["k"] * y[0]], 1, names=["a"], params={"k": 1.0})
    ensemble = daedal.solve_many(ode, (0.0, 1.0), [1.0], params={"k": [0.1, 2.0]}, t_eval=[0.5, 1.0], events=stop)
    ensemble.attributes["source"] = "bench 3"
    again = daedal.load(ensemble.save(tmp_path / "runs"))
    assert repr(again) == repr(ensemble) and again.attributes == {"source": "bench 3"}
    assert_array_equal(again["a"], ensemble["a"])
    assert again.status.tolist() == ["finished", "event"]
    assert {name: column.tolist() for name, column in again.events.items()} == {
        name: column.tolist() for name, column in ensemble.events.items()
    }
    assert again.to_dataframe().equals(ensemble.to_dataframe())
    reduced = daedal.solve_many(ode, (0.0, 1.0), [1.0], params={"k": [0.1, 2.0]}, reduce=["mean"])
    stored = daedal.load(reduced.save(tmp_path / "mean.npz"))
    assert_array_equal(stored.reduced["mean"]["y"], reduced.reduced["mean"]["y"])


def test_members_that_failed_are_not_drawn():
    ode = daedal.ODE(lambda t, y: [y[0] ** 2], 1, names=["a"])  # has a pole at t = 1 / y(0)
    ensemble = daedal.solve_many(ode, (0.0, 1.0), np.array([[0.5], [2.0]]), t_eval=np.linspace(0.0, 1.0, 11))
    assert ensemble.failed.tolist() == [1]
    figure = ensemble.plot("lines", pyplot=False)
    assert [np.isfinite(line.get_ydata()).any() for line in figure.axes[0].lines] == [True, False]
    assert "1 of 2 members failed and is not shown" in [text.get_text() for text in figure.texts]


# --- warnings ---------------------------------------------------------------------------------------------------------


def test_warnings_point_at_the_line_of_the_user():
    wrong, other = (
        daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1, jacobian=lambda t, y, yp, cj: [[5.0 + cj]])
        for _ in range(2)
    )  # a derivative is compared once for a problem
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        daedal.solve(wrong, (0.0, 1.0), [1.0])
        daedal.prepare(other).solve((0.0, 1.0), [1.0])
        daedal.solve_ivp(lambda t, y: [-y[0]], (0.0, 1.0), [1.0], rtol=0.0)
    assert len(caught) == 3 and {warning.filename for warning in caught} == {__file__}


# --- false alarms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["mexx", "dopri5", "hem5"])
def test_long_steps_without_dense_output_are_no_singular_configurations(method):
    """A pendulum turns by more than a right angle in one step of MEXX; the gradient of its rod does not vanish."""
    from daedal.studies.reproduce.tables_half_explicit import solve_pendulum, swing

    sol = solve_pendulum(method, rtol=1e-3, atol=1e-3, first_step=0.01, dense_output=False)
    assert sol.success and "singular" not in sol.message
    assert np.max(np.abs(sol.q[:, -1] - swing(10.0)[0])) < 5e-3


@pytest.mark.parametrize(("far", "expected"), [(0.0, 1), (1e7, 0)])
def test_impacts_that_change_nothing_are_no_events(far, expected):
    """A ball that turns back at the floor, which it reaches with 2e-7 m/s: beside 1e7 m, the impact is round-off."""
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, 2.0], n_q=2, names=["x", "y"])
    problem = daedal.hybrid.UnilateralProblem(ball, daedal.hybrid.Contact(lambda t, q: q[1], 1.0, name="floor"))
    sol = daedal.solve(problem, (0.0, 2.0), ([far, 1.0 - 1e-14], [0.0, -2.0]))
    assert sol.success and len(sol.events) == expected
    assert abs(sol["y"][-1] - 1.0) < 1e-5


@pytest.mark.parametrize("says_so", [True, False])
def test_a_model_says_whether_transitions_that_change_nothing_are_events(says_so):
    class Stated(daedal.hybrid.HybridProblem):
        records_idle = says_so

    bell = daedal.hybrid.Transition(guard=lambda t, y: y[0] - 1.0, source="on", target="on", name="bell")
    problem = Stated({"on": daedal.ODE(lambda t, y: [1.0], n=1)}, [bell])
    sol = daedal.solve(problem, (0.0, 2.0), ("on", [0.0]))
    assert sol.success and abs(sol.y[0, -1] - 2.0) < 1e-6
    assert [event.name for event in sol.events] == (["bell"] if says_so else [])
