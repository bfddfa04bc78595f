"""The soak run: parts share the time, failures are reported, and its tests exist."""

import re
import sys

import pytest

from soak import __main__ as soak


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
    assert soak._status([sys.executable, "-c", code], 0.01) == "none: it was stopped"


def test_files_of_the_parts_exist():
    assert len(soak.files_with(r"^@given")) > 90
    assert len(soak.files_with(r"^@pytest.mark.race$")) > 4
