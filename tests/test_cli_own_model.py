"""``daedal run FILE.py:NAME``."""

import numpy as np
import pytest

import daedal
from daedal.cli import main

FILE = """
import daedal

pendulum = daedal.MechanicalSystem(
    1.0,
    lambda t, q, v, p: [0.0, -p["g"]],
    lambda t, q, p: [q[0] ** 2 + q[1] ** 2 - 1.0],
    n_q=2,
    n_constraints=1,
    names=["x", "y"],
    params={"g": 9.81},
)
number = 3.0


def model(g=9.81):
    return daedal.library.Model(
        title="My pendulum", problem=pendulum.with_params({"g": g}), t_span=(0.0, 0.5), initial=[1.0, 0.0], index=3
    )


def nothing():
    return None


def needs(length):
    return pendulum
"""


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    (tmp_path / "swing.py").write_text(FILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["run", *arguments])
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


def test_a_problem_with_span_initial_values_and_parameters(command):
    code, out, _ = command(
        *("swing.py:pendulum", "--t-span", "0,0.5", "--initial", "[1.0, 0.0]", "--set", "g=1.62", "--save", "moon.npz")
    )
    assert code == 0 and "pendulum: 4 unknowns" in out
    sol = daedal.load("moon.npz")
    assert (
        sol.params == {"g": 1.62} and sol.t[-1] == 0.5 and sol["y"][-1] == pytest.approx(-0.5 * 1.62 * 0.25, rel=0.02)
    )


def test_a_function_that_returns_a_model(command):
    code, out, _ = command("swing.py:model", "--set", "g=5.0", "--t-end", "0.25", "--save", "out/run.csv")
    assert code == 0 and "My pendulum: 4 unknowns, index 3" in out
    rows = np.loadtxt("out/run.csv", delimiter=",", skiprows=1)
    assert rows[-1, 0] == 0.25 and rows.shape[1] == 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent.py:x"], "there is no file absent.py"),
        (["swing.py:pendulm"], "swing.py defines no 'pendulm'; did you mean 'pendulum'?"),
        (["swing.py"], "name the object to run, swing.py:NAME"),
        (["swing.py:number"], "is a float; expected a problem"),
        (["swing.py:nothing"], "returns a NoneType; expected"),
        (["swing.py:needs"], "cannot be called with nothing"),
        (["swing.py:pendulum"], "give --t-span 0,10 and --initial"),
        (["swing.py:pendulum", "--t-span", "0,1", "--initial", "[1.0, 0.0]", "--set", "G=1.0"], "did you mean 'g'?"),
    ],
)
def test_what_is_missing_is_named(command, arguments, words):
    code, _, err = command(*arguments)
    assert code == 1 and words in err


def test_values_that_cannot_be_read_are_wrong_usage(command):
    code, _, err = command("swing.py:pendulum", "--t-span", "0;1")
    assert code == 2 and "give a list of numbers" in err.replace("\n", " ").replace("│ ", "")
