"""The command line: what it prints, what it writes, how it ends."""

import contextlib
import csv
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import daedal
from daedal import cli
from daedal.cli.common import largest_error

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "command-line.md"


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def daedal_command(*arguments) -> Ended:
    """Run the command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    return Ended(ended.value.code or 0, out.getvalue(), err.getvalue())


@pytest.fixture(autouse=True)
def in_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


def row(out: str, name: str) -> str:
    """The value printed beside `name`."""
    (value,) = re.findall(rf"^  {name} +(.*)$", out, re.MULTILINE)
    return value


# --- list, show ---


def test_list_names_every_problem_with_index_unknowns_and_title():
    ended = daedal_command("list")
    assert ended.code == 0
    header, *lines = ended.out.splitlines()
    assert header.split() == ["name", "index", "unknowns", "title"]
    assert [line.split()[0] for line in lines] == daedal.library.names()
    (pendulum,) = [line for line in lines if line.startswith("pendulum")]
    assert pendulum.split() == ["pendulum", "2", "6", "Plane", "pendulum"]


def test_show_describes_parameters_and_source():
    ended = daedal_command("show", "pendulum")
    assert ended.code == 0
    assert "form='ggl', gravity=1.0, length=1.0" in ended.out and "Brenan" in ended.out


@pytest.mark.parametrize("command", ["show", "run"])
def test_a_misspelt_name_is_answered_with_the_nearest_one(command):
    ended = daedal_command(command, "robertsno")
    assert ended.code == 1 and "did you mean 'robertson'?" in ended.err and ended.out == ""


def test_a_misspelt_command_is_answered_with_the_nearest_one():
    ended = daedal_command("lst")
    assert ended.code == 2 and "list" in ended.err


def test_version_is_printed():
    assert daedal_command("--version").out == f"daedal {daedal.__version__}\n"


# --- run ---


def test_run_prints_cost_and_error_against_the_reference():
    model = daedal.library.transistor_amplifier()
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    ended = daedal_command("run", "transistor_amplifier")
    assert ended.code == 0
    assert row(ended.out, "steps") == f"{sol.stats.steps} accepted, {sol.stats.rejected} rejected"
    assert row(ended.out, "evaluations").startswith(f"{sol.stats.residual_evaluations} ")
    errors = model.reference.error(sol.y[:, -1])
    assert row(ended.out, "error").startswith(f"{errors.max():.1e} (relative, largest in U{np.argmax(errors) + 1})")
    assert ended.out.splitlines()[-1] == sol.message


def test_tolerances_given_replace_those_of_the_problem():
    loose = daedal_command("run", "robertson", "--rtol", "1e-4")
    tight = daedal_command("run", "robertson", "--rtol", "1e-7", "--atol", "1e-16")
    assert row(loose.out, "tolerances") == "rtol 0.0001, atol 1e-19 to 1e-09"
    assert row(tight.out, "tolerances") == "rtol 1e-07, atol 1e-16"
    steps = [int(row(ended.out, "steps").split()[0]) for ended in (loose, tight)]
    errors = [float(row(ended.out, "error").split()[0]) for ended in (loose, tight)]
    assert steps[0] < steps[1] and errors[0] > errors[1]


def test_a_zero_reference_is_compared_absolutely():
    error = largest_error(daedal.library.Reference(1.0, np.array([0.0, 2.0]), ""), _two_points([0.5, 2.1]))
    assert str(error) == "5.0e-01 (absolute, largest in a)"


def _two_points(end) -> daedal.Solution:
    y = np.column_stack([np.zeros(2), end])
    return daedal.Solution(
        np.array([0.0, 1.0]), y, 0.0 * y, True, "finished", "", daedal.solution.Statistics(), ("a", "b")
    )


def test_reference_is_looked_up_inside_the_interval_and_not_outside():
    inside = daedal_command("run", "pendulum", "--t-end", "2")
    assert row(inside.out, "time").startswith("0 to 2 ")
    assert float(row(inside.out, "error").split()[0]) < 1e-4
    assert row(daedal_command("run", "pendulum", "--t-end", "0.5").out, "error").startswith("unknown")


def test_parameters_and_options_reach_the_problem_and_the_solver():
    ended = daedal_command(
        "run", "heat2d", "--set", "m=6", "--set", "structure=sparse", "--method", "dassl", "--option", "max_order=2"
    )
    assert ended.code == 0 and "36 unknowns" in ended.out
    assert row(ended.out, "method") == "DASSL, order up to 2"


def test_compiled_equations_give_the_same_error():
    plain = daedal_command("run", "prothero_robinson")
    compiled = daedal_command("run", "prothero_robinson", "--compiled")
    assert row(plain.out, "error") == row(compiled.out, "error")


def test_constraint_drift_of_a_semi_explicit_problem_is_printed():
    drift = row(daedal_command("run", "robertson", "--set", "form=semi-explicit").out, "drift")
    assert drift.startswith("constraint ") and float(drift.split()[1]) < 1e-9


def test_progress_bar_is_shown_on_stderr_when_wanted():
    assert "100%" in daedal_command("run", "prothero_robinson", "--progress").err
    assert daedal_command("run", "prothero_robinson").err == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["pendulum", "--set", "form=nothing"], 1, "form='nothing' is not known"),
        (["pendulum", "--set", "mass=1"], 1, "no parameter 'mass'; its parameters: form, gravity, length"),
        (["heat2d", "--set", "m=many"], 1, "for 'heat2d'"),
        (["pendulum", "--set", "form"], 2, "name=value"),
        (["pendulum", "--rtol", "much"], 2, "--rtol"),
        (["pendulum", "--method", "euler"], 1, "unknown method 'euler'"),
        (["pendulum", "--option", "speed=1"], 1, "unknown option speed"),
        (["pendulum", "--t-end", "nan"], 1, "t_span must be finite"),
        (["pendulum", "--save", "file.txt"], 2, "must end in one of .npz, .csv"),
        (["pendulum", "--plot", "file.doc"], 2, ".png"),
        (["pendulum", "--save", "blocked/file.csv"], 1, "cannot write"),
        (["pendulum", "--plot", "blocked/file.png"], 1, "cannot write"),
    ],
)
def test_wrong_input_is_refused_in_words(arguments, code, message):
    Path("blocked").touch()  # a file where a folder is needed
    ended = daedal_command("run", *arguments)
    assert ended.code == code and message in ended.err
    assert "Traceback" not in ended.err


def test_a_failure_prints_the_diagnosis_and_still_writes_what_was_computed():
    ended = daedal_command(
        "run", "pendulum", "--set", "form=index3", "--option", "fixed_step=None", "--option", "max_order=5",
        "--option", "formulation=none", "--plot", "part.png", "--save", "part.npz",
    )  # fmt: skip
    assert ended.code == 1
    assert row(ended.out, "status") == "failed" and "index 3" in ended.err
    assert Path("part.png").stat().st_size > 5000
    assert np.load("part.npz")["t"][-1] < 1.0


def test_ctrl_c_ends_with_130(monkeypatch):
    def interrupted(*arguments, **options):
        interrupt = KeyboardInterrupt()
        interrupt.solution = daedal.Solution(
            **(vars(_two_points([1.0, 1.0])) | {"success": False, "status": "interrupted"})
        )
        raise interrupt

    monkeypatch.setattr(daedal, "solve", interrupted)
    ended = daedal_command("run", "linear_index1")
    assert ended.code == 130 and row(ended.out, "status") == "interrupted"


def test_npz_holds_the_solution():
    model = daedal.library.linear_index1()
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    ended = daedal_command("run", "linear_index1", "--save", "new/file.npz")
    assert row(ended.out, "saved") == "new/file.npz"
    data = np.load("new/file.npz")
    assert np.array_equal(data["t"], sol.t) and np.array_equal(data["y"], sol.y) and np.array_equal(data["yp"], sol.yp)
    assert daedal.load("new/file.npz").names == sol.names


def test_csv_holds_the_solution_in_full_precision():
    model = daedal.library.heat2d(m=4)  # names with commas
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    daedal_command("run", "heat2d", "--set", "m=4", "--save", "file.csv")
    with open("file.csv", newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    assert header == ["t", *sol.names]
    assert np.array_equal(np.array(lines, dtype=float), np.column_stack([sol.t, sol.y.T]))


# --- analyse ---


def test_analyse_prints_properties_and_orders_and_draws_the_region(tmp_path):
    ended = daedal_command("analyse", "radau5", "--plot", tmp_path / "region.png")
    assert ended.code == 0 and ended.out.startswith("Radau IIA, 3 stages\n")
    assert row(ended.out, "L-stable") == "yes (proved)" and row(ended.out, "order k_d") == "5, by B(5), C(3), D(2)"
    assert (tmp_path / "region.png").stat().st_size > 10_000


def test_analyse_takes_problems_of_the_library(tmp_path):
    ended = daedal_command("analyse", "planar_pendulum", "--save", tmp_path / "structure.svg")
    assert ended.code == 0 and ended.out.startswith("A MechanicalSystem of 3 equations")
    assert row(ended.out, "degrees of freedom") == "2" and row(ended.out, "differentiation index").startswith("3 ")
    assert (tmp_path / "structure.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pendulum", "--plot", "a.png"), "use --save"),
        (("pendulum", "--save", "a.png"), "must end in one of"),
        (("radau5", "--save", "a.svg"), "requires a library problem"),
    ],
)
def test_analyse_refuses_options_that_do_not_suit(arguments, message):
    ended = daedal_command("analyse", *arguments)
    assert ended.code == 2 and message in ended.err


def test_analyse_takes_multistep_formulas():
    ended = daedal_command("analyse", "bdf3")
    assert ended.code == 0 and row(ended.out, "error constant") == "-1/4"
    assert row(ended.out, "zero-stable").startswith("yes (proved)") and "86.03°" in ended.out


def test_analyse_takes_coefficients_from_a_file(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import daedal\n"
        'theta = daedal.methods.RungeKuttaTableau([["2/3"]], [1], name="theta")\n'
        "a, b = [[0, 0], [1, 0]], [0.5, 0.5]\npair = (a, b)\n",
        encoding="utf-8",
    )
    assert daedal_command("analyse", file).out.startswith("theta\n")
    assert row(daedal_command("analyse", f"{file}:pair").out, "order k_d").startswith("2")
    assert "does not define 'other'" in daedal_command("analyse", f"{file}:other").err
    file.write_text("", encoding="utf-8")
    ended = daedal_command("analyse", file)
    assert ended.code == 1 and "must define exactly one RungeKuttaTableau" in ended.err


@pytest.mark.parametrize(
    ("name", "code", "message"), [("radua5", 1, "did you mean 'radau5'"), ("nowhere.py", 2, "there is no file")]
)
def test_analyse_answers_what_it_does_not_know(name, code, message):
    ended = daedal_command("analyse", name)
    assert ended.code == code and message in ended.err and ended.out == ""


# --- demo, doctor, start ---


@pytest.mark.slow
def test_demo_solves_four_problems_and_leaves_their_plots(tmp_path):
    ended = daedal_command("demo", "--out", tmp_path / "plots")
    assert ended.code == 0
    plots = sorted((tmp_path / "plots").glob("*.png"))
    assert [path.stem for path in plots] == ["crank_slider", "pendulum", "robertson", "transistor_amplifier"]
    assert all(path.stat().st_size > 20_000 for path in plots)
    errors = [float(error) for error in re.findall(r"^  error +(\S+)", ended.out, re.MULTILINE)]
    assert len(errors) == 4 and max(errors) < 1e-4
    assert "z1² + z2² = 1 holds to" in ended.out


def test_doctor_reports_versions_cache_and_a_right_self_test():
    ended = daedal_command("doctor")
    assert ended.code == 0 and ended.out.splitlines()[-1] == "All is well."
    assert row(ended.out, "numpy") == np.__version__
    assert int(row(ended.out, "cores")) >= 1
    files, size = re.match(r"(\d+) files, (\S+) MB, ", row(ended.out, "cache")).groups()
    assert int(files) > 0 and float(size) > 0.1
    assert re.match(r"(\d+) of \1 units built, for ", row(ended.out, "kernels"))
    assert row(ended.out, "called").endswith(": right") and row(ended.out, "traced").endswith(": right")


def test_doctor_notices_a_wrong_result(monkeypatch):
    monkeypatch.setattr(cli.showing, "_SELF_TEST_ERROR", 1e-16)
    ended = daedal_command("doctor")
    assert ended.code == 1 and "WRONG" in ended.out and "self-test failed" in ended.err


def test_doctor_finishes_its_report_when_the_solver_is_broken(monkeypatch):
    def broken(*arguments, **options):
        raise ImportError("no LAPACK")

    monkeypatch.setattr(daedal, "solve", broken)
    ended = daedal_command("doctor")
    assert ended.code == 1 and "ImportError: no LAPACK" in ended.out and row(ended.out, "scipy")


def test_python_m_daedal_lists_without_loading_matplotlib():
    code = (
        "import runpy, sys; sys.argv = ['daedal', 'list']\n"
        "try: runpy.run_module('daedal', run_name='__main__')\n"
        "except SystemExit as end: assert not end.code\n"
        "print(*sorted({'matplotlib'} & set(sys.modules)), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "robertson" in run.stdout and run.stderr.strip() == ""


# The whole gallery and the whole book: test_gallery and test_reproduce run these commands, and look at what they leave.
ELSEWHERE = ["reproduce --summary --json out/cells.json", "gallery"]
LONG = ["reproduce stability/4.4 half-explicit", "gallery --only seven_body --only robertson --out out/two"]


def documented() -> list[str]:
    """The commands of the page that are shown with a prompt."""
    return re.findall(r"^\$ daedal (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=pytest.mark.slow) if command in LONG else command
        for command in documented()
        if command not in ELSEWHERE
    ],
)
def test_commands_of_the_manual_work(command, reproduced):
    [file] = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    Path("swing.py").write_text(file, encoding="utf-8")
    ended = daedal_command(*shlex.split(command))
    assert ended.code == 0, ended.err


def test_every_option_of_run_is_in_the_manual():
    offered = set(re.findall(r"--[a-z-]+", daedal_command("run", "--help").out)) - {"--help"}
    assert {"--rtol", "--plot", "--save"} <= offered
    page = PAGE.read_text(encoding="utf-8")
    assert [option for option in offered if f"`{option}" not in page] == []
