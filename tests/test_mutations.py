"""A wrong sign or coefficient in a method makes cells of the reproduction book fail.

Each mutation changes one line in a copy of the package, and the tables that rest on it are computed there by a process
of their own. The compiled kernels travel with the copy; only those that a mutation touches are compiled anew.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import daedal

WORKER = """
import json, sys
from daedal.studies import reproduce
report = reproduce.run(sys.argv[1:])
print(json.dumps([[cell.document, cell.table, cell.cell] for cell in report.cells if not cell.explained]))
"""


@dataclass(frozen=True)
class Mutation:
    """A line of a file, what becomes of it, and the tables that have to notice."""

    file: str
    line: str
    wrong: str
    tables: tuple[str, ...]
    interpreted: bool = False  # where nearly all kernels would be compiled anew


MUTATIONS = {
    "HEM4: a coefficient": Mutation(
        "methods/half_explicit/half_explicit_tableaux.py",
        '        ("3/10",),\n        (_surd(1, 1, 30), _surd(11, -4, 30)),',
        '        ("3/10",),\n        (_surd(1, 1, 30), _surd(11, -3, 30)),',
        ("half-explicit/methods", "half-explicit/singular-mass"),
    ),
    "HEM3: a weight": Mutation(
        "methods/half_explicit/half_explicit_tableaux.py",
        '    b=(0, "3/4", "1/4"),',
        '    b=(0, "1/4", "3/4"),',
        ("half-explicit/2", "half-explicit/methods"),
    ),
    "Radau IIA: its nodes": Mutation(
        "methods/implicit_rk/implicit_families.py",
        'return _tableau(right_radau_nodes(s), _collocation, _titled("Radau IIA", s))',
        'return _tableau(gauss_nodes(s), _collocation, _titled("Radau IIA", s))',
        ("book/index3-steps", "second-order/6.1"),
    ),
    "Baumgarte: a binomial coefficient": Mutation(
        "mechanics/formulations/constraint_levels.py",
        "result = tuple(comb(m, j) * gamma ** (m - j) for j in range(m))",
        "result = tuple((1 + j) * comb(m, j) * gamma ** (m - j) for j in range(m))",
        ("stability/kappa-0",),
    ),
    "index 2 with damping: a binomial coefficient": Mutation(
        "mechanics/formulations/constraint_levels.py",
        "levels = (*[comb(k, j) * gamma ** (k - j) for j in range(k + 1)], 0.0)",
        "levels = (*[(1 + j) * comb(k, j) * gamma ** (k - j) for j in range(k + 1)], 0.0)",
        ("stability/kappa-0",),
    ),
    "extrapolation: a sign": Mutation(
        "methods/extrapolation/extrapolation_sequences.py",
        "row.append(row[k] + (row[k] - table[j - 1][k]) * low / (n**power - low))",
        "row.append(row[k] - (row[k] - table[j - 1][k]) * low / (n**power - low))",
        ("book/4.6.1", "book/4.6.2"),
    ),
    "order conditions: the factor of a fat vertex": Mutation(
        "analysis/order_conditions/trees.py",
        "own = Fraction(self.order + 1) if self.fat else Fraction(1, self.order)",
        "own = Fraction(self.order) if self.fat else Fraction(1, self.order)",
        ("half-explicit/1", "half-explicit/3", "half-explicit/4"),
    ),
    "pencils: the sign of eigenvalues": Mutation(
        "index/linear/pencil.py", "return eigvals(-B, A)", "return eigvals(B, A)", ("multibody/5.12",)
    ),
    "friction: its sign": Mutation(
        "hybrid/models/friction_modes.py",
        "        return f - sigma * strength * e",
        "        return f + sigma * strength * e",
        ("multibody/7.10",),
    ),
    "impact: the stiffness of unloading": Mutation(
        "hybrid/models/elastoplastic.py",
        "return p_max - self.plastic(p_max) / self.c3 if",
        "return p_max - self.plastic(p_max) / self.c1 if",
        ("multibody/7.9",),
    ),
    "projected invariants: the direction of the multiplier": Mutation(
        "mechanics/formulations/constraint_levels.py",
        "            low=min(k, m - 1),\n            projection=self.projection,",
        '            low=min(k, m - 1),\n            projection="B",',
        ("stability/4.3", "stability/4.5"),
    ),
    "BDF: the leading coefficient": Mutation(
        "kernels/differences.py",
        "        total += 1.0 / j\n",
        "        total += 1.01 / j\n",
        ("second-order/2.1",),
        True,
    ),
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package, with its compiled kernels."""
    copy = tmp_path_factory.mktemp("mutated") / "daedal"
    shutil.copytree(Path(daedal.__file__).parent, copy)
    return copy


def failing(package, tables, interpreted=False):
    """The cells that fail with this copy."""
    # bytecode is told by the second and the size of its source: two mutations of one file may have both in common
    environment = os.environ | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    if interpreted:
        environment["DAEDAL_KERNELS"] = "python"
    command = [sys.executable, "-c", WORKER, *tables]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=package.parent)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def mutate(package, mutation):
    """Change the line in the copy; what stood there before."""
    path = package / mutation.file
    before = path.read_text(encoding="utf-8")
    assert before.count(mutation.line) == 1, f"{mutation.file} has another text now: adapt the mutation"
    path.write_text(before.replace(mutation.line, mutation.wrong), encoding="utf-8")
    return before


@pytest.mark.slow
def test_the_copy_itself_has_no_failing_cells(package):
    assert failing(package, sorted({table for m in MUTATIONS.values() for table in m.tables})) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_makes_cells_fail(package, name):
    mutation = MUTATIONS[name]
    before = mutate(package, mutation)
    try:
        cells = failing(package, mutation.tables, mutation.interpreted)
    finally:
        (package / mutation.file).write_text(before, encoding="utf-8")
    assert {f"{document}/{table}" for document, table, _ in cells} == set(mutation.tables)


def test_there_are_ten_mutations_of_lines_that_exist():
    assert len(MUTATIONS) >= 10
    for mutation in MUTATIONS.values():
        text = (Path(daedal.__file__).parent / mutation.file).read_text(encoding="utf-8")
        assert text.count(mutation.line) == 1 and mutation.line != mutation.wrong, mutation.file
