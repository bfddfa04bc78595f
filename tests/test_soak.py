"""The soak run: parts share the time, failures are reported, and its tests exist."""

import re
import sys

import pytest

from soak import __main__ as soak
from soak.case import Script, Verdict
from soak.families import FAMILIES
from soak.runner import Tally, numbered

SAMPLES = {
    "problems": (),  # in test_differential.py
    "functions": range(40),
    "pulses": (*range(0, 1000, 83), 10283, 20031, 20363),
    "squares": range(0, 40, 3),
    "sliding": (3, 42, 43, 51),
    "clocks": range(4),
    "guards": range(4),
    "stale": (),  # in test_surroundings.py
    "mistakes": range(0, 100, 7),
    "events": range(11),
    "derivatives": range(10),
    "remedies": (*range(13), 38),
    "mixing": range(0, 18, 3),
    "index_two": (201, 249, 275),
    "networks": range(0, 12, 3),
    "machines": (16, 57, 60, 69, 71, 73, 74, 88, 91, 117),
    "linkages": (1, 3, 6, 17),
}
"""Numbers of cases of each family that run here; all others are drawn by `make soak`."""


@pytest.mark.parametrize("family", [name for name in FAMILIES if SAMPLES[name]])
def test_a_few_cases_of_each_family_are_right(family):
    verdicts = [FAMILIES[family](number).judged(number) for number in SAMPLES[family]]
    assert [v for v in verdicts if v.kind not in ("right", "named")] == []


VERDICTS = {
    "right": "def found(): return 1.0\nexpected, allowed = 1.0 + 1e-6, 1e-6",
    "wrong": "def found(): return 1.0\nexpected, allowed = 1.1, 1e-6",
    "missed": "import warnings\ndef found():\n    warnings.warn('a')\n    return 1.0\nexpected, allowed = 1.1, 1e-6",
    "warned": "import warnings\ndef found():\n    warnings.warn('a')\n    return 1.0\nexpected, allowed = 1.0, 1e-6",
    "refused": "def found():\n    assert False, 'no success'\nexpected, allowed = 1.0, 1e-6",
    "crashed": "def found(): return [][0]\nexpected, allowed = 1.0, 1e-6",
    "named": "def found(): raise ValueError('valve 7')\nmust_say = 'valve'",
}


@pytest.mark.parametrize("kind", VERDICTS)
def test_a_case_is_judged_by_what_it_gives_and_says(kind):
    assert Script("a case", VERDICTS[kind]).judged(0).kind == kind


def test_a_mistake_of_which_nothing_is_said_is_wrong():
    silent = "def found(): return 1.0\nmust_say = 'valve'"
    assert Script("a case", silent).judged(0).kind == "wrong"
    assert Script("a case", silent.replace("return 1.0", "return [][0]")).judged(0).kind == "crashed"


@pytest.mark.parametrize(
    ("kind", "count", "status"), [("wrong", 1, 1), ("hung", 1, 1), ("refused", 1, 0), ("warned", 3, 1)]
)
def test_the_exit_status_follows_the_shares(kind, count, status, tmp_path, capsys):
    tally = Tally(["pulses"], 0, tmp_path)
    for number in range(200):
        verdict = Verdict(number, "a pulse", kind if number < count else "right", 0.1)
        tally.count({**vars(verdict), "family": "pulses", "memory": 100.0})
    assert tally.close() == status
    assert (tmp_path / "pulses_0.py").read_text().startswith(f"# {kind}")
    assert ("--first 0 --cases 1" in capsys.readouterr().out) == (kind in ("wrong", "hung"))


def test_families_take_turns_and_cases_keep_their_numbers():
    assert [numbered(k, ["a", "b"], 5) for k in range(3)] == [("a", 5), ("b", 5), ("a", 6)]
    for name, drawn in FAMILIES.items():
        assert drawn(3).label == drawn(3).label, name


@pytest.fixture
def parts(monkeypatch):
    """Parts with commands that end at once; notes the minutes and seeds that they get."""
    given = []

    def part(name, weight, code, rounds=False):
        def commands(run):
            given.append((name, run.minutes, run.seed))
            return [[sys.executable, "-c", code]]

        return soak.Part(name, weight, commands, rounds)

    made = {"long": part("a", 1.0, ""), "races": part("b", 1.0, "raise SystemExit(3)"), "mutants": part("c", 2.0, "")}
    monkeypatch.setattr(soak, "PARTS", made)
    return given


def test_a_part_that_fails_prints_what_repeats_it_and_others_go_on(parts, capfd):
    assert soak.main(["--minutes", "4", "--seed", "7"]) == 1
    said = capfd.readouterr().out
    assert said.startswith("soak: seed 7, 4 minutes")
    assert re.search(r'to repeat this part: make soak SOAK_ARGS="--only races --minutes [\d.]+ --seed 7"', said)
    assert "races      failed with status 3" in said and "mutants    ok, 1 round" in said
    shares = {name: minutes for name, minutes, _ in parts}
    assert shares["a"] == pytest.approx(1.0, rel=0.01)
    assert shares["c"] > 3.8  # with what the others have left


def test_the_seed_is_printed_when_it_is_drawn(parts, capfd):
    assert soak.main(["--minutes", "1", "--only", "long"]) == 0
    [drawn] = {seed for _, _, seed in parts}
    assert capfd.readouterr().out.startswith(f"soak: seed {drawn}, ")


def test_a_part_that_does_not_end_is_stopped(monkeypatch):
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    assert soak._status([sys.executable, "-c", code], 0.01, patience=1.0) == "none: it was stopped"


def test_files_of_the_parts_exist():
    assert len(soak.files_with(r"^@given")) > 90
    assert len(soak.files_with(r"^@pytest.mark.race$")) > 4
