"""The runner of mutants: its changes are errors in the sense of the syntax, and leave everything else alone."""

import ast
import re
from pathlib import Path

import pytest

import daedal
from mutants.changes import mutants
from mutants.resting import Resting

PACKAGE = Path(daedal.__file__).parent
SOURCE = '''"""What it does."""

import math

LIMIT: int = 3


def f(x: int = 4, y=-1.0):
    """Words with 1 + 1."""
    if x < LIMIT and not y:
        y += 2.5  # Grün bleibt, was nicht gemeint ist: ä + 1
    elif x == 7:
        g(y)
    for k in range(5):
        y = y * k
    if y > 1e6:
        raise ValueError(f"{x + 1} is 2 * {y}")
    return True
'''


def changed(tmp_path, text=SOURCE):
    """The line of each mutant of a text, what kind it is, and what the line becomes."""
    (tmp_path / "some.py").write_text(text, encoding="utf-8")
    before = text.splitlines()
    found = []
    for mutant in mutants(tmp_path, "some.py"):
        after = mutant.applied(text.encode()).decode().splitlines()
        ast.parse("\n".join(after))
        different = [i for i in range(len(before)) if after[i] != before[i]]
        assert different == [mutant.line - 1], "one line changes, the one that is named"
        found.append((mutant.line, mutant.kind, after[mutant.line - 1].strip()))
    return found


def test_every_kind_of_change_is_made(tmp_path):
    found = changed(tmp_path)
    assert (10, "comparison", "if (x <= LIMIT) and not y:") in found
    assert (10, "comparison", "if (x >= LIMIT) and not y:") in found
    assert (10, "and, or", "if (x < LIMIT or not y):") in found
    assert (10, "negation", "if x < LIMIT and (y):") in found
    assert (10, "condition", "if (not (x < LIMIT and (not y))):") in found
    assert (11, "arithmetic", "y -= 2.5  # Grün bleibt, was nicht gemeint ist: ä + 1") in found
    assert (11, "constant", "y += (5.0)  # Grün bleibt, was nicht gemeint ist: ä + 1") in found
    assert (11, "deleted", "pass  # Grün bleibt, was nicht gemeint ist: ä + 1") in found
    assert (12, "comparison", "elif (x != 7):") in found
    assert (13, "deleted", "pass") in found
    assert (14, "off by one", "for k in (range(5 - 1)):") in found
    assert (15, "arithmetic", "y = (y / k)") in found
    assert (8, "sign", "def f(x: int = 4, y=(1.0)):") in found
    assert (18, "constant", "return (False)") in found


def test_words_annotations_and_messages_are_left_alone(tmp_path):
    assert {line for line, _, _ in changed(tmp_path)} == {5, 8, 10, 11, 12, 13, 14, 15, 16, 18}
    assert [after for line, _, after in changed(tmp_path) if line == 5] == ["LIMIT: int = (4)"]


@pytest.mark.parametrize("file", ["methods/implicit_rk/stages.py", "events/roots.py", "symbolic/derivative.py"])
def test_mutants_of_the_package_can_be_parsed(file):
    source = (PACKAGE / file).read_bytes()
    found = mutants(PACKAGE, file)
    assert len(found) > 50 and len({(m.begin, m.end, m.after) for m in found}) == len(found)
    plain = ast.dump(ast.parse(source))
    for mutant in found[::10]:
        assert ast.dump(ast.parse(mutant.applied(source))) != plain, str(mutant)


def test_the_tests_of_a_file_are_found_by_imports_and_names():
    resting = Resting(PACKAGE, Path(__file__).parent)
    nearest = {
        "methods/implicit_rk/stages.py": "test_stage_systems.py",
        "events/roots.py": "test_root_location.py",
        "symbolic/instructions.py": "test_sines.py",
        "initial/jet.py": "test_consistent_jet.py",
        "kernels/gmres.py": "test_gmres.py",
    }
    for file, test in nearest.items():
        assert test in resting.on(file)[:4], file
    assert not any(re.search("docs|wheel|mutations", name) for file in nearest for name in resting.on(file))
