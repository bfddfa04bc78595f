"""Formulations and methods side by side: the table, what a failure looks like in it, the plots, the commands."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import daedal
from test_cli import daedal_command
from test_measures import example1

PENDULUM = daedal.library.planar_pendulum()


def exact(t):
    return np.concatenate([PENDULUM.extra["exact"](t), PENDULUM.extra["exact_lam"](t)])


def compared(**options):
    options = {"formulations": ["projection", "ggl"], "reference": exact} | options
    return daedal.compare(PENDULUM.problem, (0.0, 2.0), PENDULUM.initial, **options)


@pytest.fixture(scope="module")
def found():
    return compared(formulations=["projection", "baumgarte", daedal.formulations.Baumgarte(gamma=10.0), "ggl"])


@pytest.fixture(scope="module")
def precision():
    return compared(rtol=[1e-6, 1e-4, 1e-8])


def test_every_pair_is_a_row_and_impossible_ones_say_why(found):
    pairs = [(row.formulation, row.method, row.status) for row in found.rows]
    assert pairs == [
        ("projection", "dopri5", "finished"),
        ("projection", "dassl", "finished"),
        ("baumgarte", "dopri5", "finished"),
        ("baumgarte", "dassl", "finished"),
        ("Baumgarte(gamma=10.0)", "dopri5", "finished"),
        ("Baumgarte(gamma=10.0)", "dassl", "finished"),
        ("ggl", "dopri5", "impossible"),
        ("ggl", "dassl", "finished"),
    ]
    impossible = found.rows[6]
    assert "needs a formulation that is an ordinary differential equation" in impossible.message
    assert math.isnan(impossible.error_q) and impossible.steps == 0


def test_numbers_are_those_of_the_runs(found):
    row = found.rows[-1]
    sol = daedal.solve(
        PENDULUM.problem, (0.0, 2.0), PENDULUM.initial, formulation="ggl", method="dassl", rtol=1e-6, atol=1e-9
    )
    assert (row.steps, row.rejected) == (sol.stats.steps, sol.stats.rejected)
    assert row.evaluations == sol.stats.residual_evaluations
    assert row.drift_position == sol.drift["position before projection"]
    state, right = sol(np.array(row.t)), np.array([exact(t) for t in row.t]).T
    assert row.error_q == pytest.approx(np.max(np.abs(state.q - right[:2])) / np.max(np.abs(right[:2])))
    assert row.error_lam == pytest.approx(np.max(np.abs(state.lam - right[4:])) / np.max(np.abs(right[4:])))
    assert max(row.error) == max(row.error_q, row.error_v)


def test_drift_is_that_before_the_output_is_projected(found):
    drift = {(row.formulation, row.method): row.drift_position for row in found.rows}
    assert drift["projection", "dopri5"] < 1e-14
    assert 1e-9 < drift["Baumgarte(gamma=10.0)", "dopri5"] < 1e-5


def test_table_shows_rows_reference_and_reasons(found):
    lines = str(found).splitlines()
    assert lines[0] == "Comparison, rtol = 1e-06"
    assert lines[1].split()[:2] == ["formulation", "method"] and lines[1].endswith("ms")
    assert [line.split()[0] for line in lines[2:10]] == [row.formulation for row in found.rows]
    assert lines[10] == "Errors are relative to the known solution."
    assert lines[11].startswith("Impossible: ggl + dopri5. DOPRI5 is explicit")


def test_html_has_the_same_cells(found):
    page = found._repr_html_()
    assert page.count("<tr>") == 1 + len(found.rows) and "Baumgarte(gamma=10.0)" in page and "to the known" in page


def test_json_holds_everything_and_unknown_numbers_are_null(found, tmp_path):
    path = tmp_path / "new" / "file.json"
    text = found.to_json(path)
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data == json.loads(text)
    assert len(data["rows"]) == len(found.rows) and data["rows"][6]["error_q"] is None
    assert data["rows"][0]["error_q"] == found.rows[0].error_q


def test_several_tolerances_give_work_and_precision(precision):
    for formulation, method in (("projection", "dopri5"), ("projection", "dassl"), ("ggl", "dassl")):
        rows = [row for row in precision.rows if (row.formulation, row.method) == (formulation, method)]
        assert [row.rtol for row in rows] == [1e-4, 1e-6, 1e-8]
        assert rows[0].error_q > 10.0 * rows[1].error_q > 100.0 * rows[2].error_q
        assert rows[0].evaluations < rows[1].evaluations < rows[2].evaluations
    assert sum(row.status == "impossible" for row in precision.rows) == 1
    assert "rtol" in str(precision).splitlines()[1]


def test_the_default_reference_is_good_enough_to_measure_with():
    against_exact, refined = compared(methods=["dassl"]), compared(methods=["dassl"], reference=None)
    assert "the automatic choice with rtol = 1e-09" in refined.reference and "DASSL differ by" in refined.reference
    for one, other in zip(against_exact.rows, refined.rows, strict=True):
        assert other.error_q == pytest.approx(one.error_q, rel=0.05)


def test_a_solution_and_a_point_serve_as_reference():
    sol = daedal.solve(PENDULUM.problem, (0.0, 2.0), PENDULUM.initial, rtol=1e-10, atol=1e-13)
    by_solution = compared(reference=sol, methods=["dassl"]).rows[1]
    assert by_solution.error_q == pytest.approx(compared(methods=["dassl"]).rows[1].error_q, rel=0.01)
    point = daedal.library.Reference(1.5, np.append(exact(1.5)[:4], np.nan), "")
    by_point = compared(reference=point, methods=["dassl"]).rows[1]
    assert by_point.t == (1.5,) and 0.0 < by_point.error_v <= 1.1 * by_solution.error_v


def test_constant_steps_show_the_order_and_what_explodes():
    model = daedal.library.stability_example3(nu=1000.0, kappa=1.0)
    options = {
        "formulations": ["index2", "projected_invariants"],
        "methods": [daedal.methods.DASSL(max_order=1), "rk4"],
        "fixed_step": 0.01,
        "reference": model.extra["exact"],
    }
    rows = daedal.compare(model.problem, model.t_span, model.initial, **options).rows
    by_pair = {(row.formulation, row.method): row for row in rows}
    assert by_pair["index2", "DASSL(max_order=1)"].error_q > 1e50
    # err(p) and err(v) at t = 1 are 7.0e-3; here they are relative to e
    right = by_pair["projected_invariants", "DASSL(max_order=1)"]
    assert right.error_q == pytest.approx(6.997e-3 / math.e, rel=0.02) and right.steps == 100 and right.rtol is None
    assert len(right.t) == 101


def test_a_failing_run_is_a_row():
    stiff = compared(methods=["dassl"], max_steps=30)
    assert {row.status for row in stiff.rows} == {"failed"}
    assert all(row.steps == 30 and row.message for row in stiff.rows)
    assert "failed" in str(stiff)


def test_an_exception_in_a_users_function_is_a_row_too():
    def force(t, q, v):
        if t > 1.0:
            raise OverflowError("too far")
        return [0.0, -9.81]

    system = daedal.MechanicalSystem(1.0, force, lambda t, q: [q @ q - 1.0], n_q=2, n_constraints=1)
    rows = daedal.compare(
        system,
        (0.0, 2.0),
        ([1.0, 0.0], [0.0, 0.0]),
        formulations="ggl",
        methods="dassl",
        reference=lambda t: np.zeros(4),
    ).rows
    assert rows[0].status == "failed" and rows[0].message == "OverflowError: too far"


def test_linear_hessenberg_problems_are_compared_too():
    found = daedal.compare(
        example1(1.0),
        (0.0, 1.0),
        np.ones(2),
        formulations=["projection", "index2"],
        methods=["dassl"],
        reference=lambda t: math.exp(t) * np.array([1.0, 1.0, -1.0 / (2.0 - t)]),
    )
    for row in found.rows:
        assert row.success and row.error_q < 1e-4 and row.error_lam < 1e-2
        assert math.isnan(row.error_v) and math.isnan(row.drift_velocity) and row.drift_position < 1e-6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"formulations": ["gl"]}, "did you mean 'ggl'"),
        ({"methods": ["euler"]}, "unknown method 'euler'"),
        ({"formulations": []}, "must not be empty"),
        ({"rtol": 0.0}, "rtol"),
        ({"reference": 3.0}, "reference must be"),
        ({"reference": lambda t: np.zeros(3)}, "expected \\(q, v\\)"),
        ({"reference": daedal.library.Reference(7.0, np.zeros(4), "")}, "outside t_span"),
    ],
)
def test_wrong_input_is_refused_at_once(options, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        compared(**options)


def test_inconsistent_values_and_other_problems_are_refused():
    with pytest.raises(daedal.InconsistentInitialError):
        daedal.compare(PENDULUM.problem, (0.0, 1.0), ([2.0, 0.0], [0.0, 0.0]), reference=exact)
    with pytest.raises(daedal.InvalidProblemError, match="is solved as given"):
        daedal.compare(daedal.library.robertson().problem, (0.0, 1.0), None)


# --- plots ---


@pytest.mark.parametrize("kind", ["auto", "runs", "work", "time"])
def test_plots_are_drawn_without_complaint(found, kind, tmp_path, recwarn):
    path = tmp_path / "new" / "plot.png"
    figure = found.plot(kind=kind, save=path, pyplot=False)
    assert path.stat().st_size > 20_000
    assert len(figure.axes) == {"auto": 4, "runs": 4, "work": 2, "time": 1}[kind]
    assert not list(recwarn)


def test_chart_has_a_line_for_every_possible_run(found):
    axes = found.plot(pyplot=False).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        f"{row.formulation} + {row.method}" for row in found.rows if row.status != "impossible"
    ]


def test_several_tolerances_are_drawn_as_work_against_precision(precision):
    milliseconds, calls = precision.plot(pyplot=False).axes
    assert [len(line.get_xdata()) for line in calls.lines] == [3, 3, 3]
    assert milliseconds.get_xlabel() == "milliseconds"


def test_plots_need_something_to_show(found):
    nothing = daedal.compare(
        PENDULUM.problem, (0.0, 1.0), PENDULUM.initial, formulations="ggl", methods="dopri5", reference=exact
    )
    with pytest.raises(daedal.InvalidProblemError, match="nothing to plot"):
        nothing.plot(pyplot=False)
    with pytest.raises(daedal.InvalidProblemError, match="choose one of"):
        found.plot(kind="pie", pyplot=False)


# --- commands ---


def test_command_compares_and_writes(tmp_path):
    plot, numbers = tmp_path / "out" / "plot.png", tmp_path / "out" / "numbers.json"
    ended = daedal_command(
        "compare", "planar_pendulum", "--formulations", "projection,ggl", "--methods", "dassl", "--rtol", "1e-4,1e-6",
        "--t-end", "2", "--plot", plot, "--json", numbers,
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[0] == f"{PENDULUM.title}, rtol = 0.0001, 1e-06"
    rows = json.loads(numbers.read_text(encoding="utf-8"))["rows"]
    assert [(row["formulation"], row["rtol"]) for row in rows] == [
        ("projection", 1e-4), ("projection", 1e-6), ("ggl", 1e-4), ("ggl", 1e-6)
    ]  # fmt: skip
    assert all(row["error_lam"] < 1e-2 for row in rows)
    assert plot.stat().st_size > 20_000


def test_command_takes_parameters_and_constant_steps():
    ended = daedal_command(
        "compare", "stability_example3", "--set", "nu=1000.0", "--fixed-step", "0.01", "--methods", "dassl",
        "--formulations", "projected_invariants",
    )  # fmt: skip
    assert ended.code == 0 and "constant steps of 0.01" in ended.out and " 100 " in ended.out


def test_command_uses_the_reference_of_a_model_at_its_end():
    ended = daedal_command("compare", "seven_body", "--formulations", "projection", "--methods", "dopri5")
    assert ended.code == 0 and "the reference at t = 0.03" in ended.out
    ended = daedal_command(
        "compare", "seven_body", "--formulations", "projection", "--methods", "dopri5", "--t-end", "0.001"
    )
    assert ended.code == 0 and "the automatic choice with rtol" in ended.out


def test_command_advises():
    ended = daedal_command("advise", "stability_example3", "--set", "nu=1000.0")
    assert ended.code == 0 and "use        formulation=ProjectedInvariants(), method=DASSL()" in ended.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["compare", "robertson"], 1, "mechanical problems are andrews_machine, "),
        (["advise", "robertson"], 1, "mechanical problems are andrews_machine, "),
        (["advise", "planar_pendulm"], 1, "did you mean 'planar_pendulum'"),
        (["advise", "planar_pendulum", "--rtol", "-1"], 1, "rtol"),
        (["compare", "planar_pendulum", "--rtol", "small"], 2, "not a list of numbers"),
        (["compare", "planar_pendulum", "--formulations", "gl"], 1, "did you mean 'ggl'"),
        (["compare", "planar_pendulum", "--json", "file.txt"], 2, ".json"),
        (["compare", "planar_pendulum", "--plot", "file.doc"], 2, ".png"),
        (
            ["compare", "planar_pendulum", "--t-end", "0.1", "--formulations", "ggl", "--json", "blocked/file.json"],
            1,
            "cannot write",
        ),
    ],
)
def test_wrong_commands_are_refused_in_words(arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("blocked").touch()
    ended = daedal_command(*arguments)
    assert ended.code == code and message in " ".join(ended.err.split())
    assert "Traceback" not in ended.err
