"""Circuits by modified nodal analysis: their matrices, index and exact solutions, small and large."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import expm, null_space

import daedal
from daedal import library
from daedal.analysis.index import local_index
from daedal.index.structure.signature import StructuralSignature
from daedal.library.nodal_analysis import matrices, natural_mode

SINE = library.Source(amplitude=1.0, frequency=2.0)
NETWORKS = {
    "RLC": [
        ("E", 1, 0, SINE),
        ("R", 1, 2, 2.0),
        ("L", 2, 3, 0.5),
        ("C", 3, 0, 0.3),
        ("S", 0, 3, 0.1),
        ("R", 3, 0, 5.0),
    ],
    "CV-loop": [("E", 1, 0, SINE), ("C", 1, 2, 0.5), ("C", 2, 0, 1.5), ("R", 2, 0, 1.0)],
    "LI-cutset": [("S", 0, 1, SINE), ("L", 1, 2, 0.5), ("R", 2, 0, 1.0)],
}


@pytest.mark.parametrize("name", NETWORKS)
def test_both_ways_to_state_a_circuit_have_the_same_modes(name):
    """The roots of det(s H + G) are those of the sparse tableau."""

    def roots(problem):
        zero = np.zeros(problem.n)
        base = problem.evaluate(0.0, zero, zero)
        G = np.array([problem.evaluate(0.0, e, zero) - base for e in np.eye(problem.n)]).T
        H = np.array([problem.evaluate(0.0, zero, e) - base for e in np.eye(problem.n)]).T
        inverse = np.linalg.eigvals(np.linalg.solve(G + 1.7 * H, H))
        return np.sort_complex(1.7 - 1.0 / inverse[np.abs(inverse) > 1e-6])

    nodal, tableau = library.mna(NETWORKS[name]), library.sparse_tableau(NETWORKS[name])
    np.testing.assert_allclose(roots(nodal), roots(tableau), rtol=1e-8)


@pytest.mark.parametrize("name", ["lc_ladder", "capacitor_loops", "inductor_cutsets"])
def test_natural_part_of_a_circuit_is_that_of_the_matrix_exponential(name):
    """On the range of a power of M = (G + s H)^-1 H a solution of H x' + G x = 0 is exp(t (s - M^-1)) x0."""
    model = library.get(name, **({"cells": 3} if name == "lc_ladder" else {"nodes": 6}))
    H, G = (matrix.toarray() for matrix in model.extra["matrices"])
    freedom = model.indices.degrees_of_freedom
    basis = np.linalg.svd(np.linalg.matrix_power(np.linalg.solve(G + H, H), 2))[0][:, :freedom]
    rate = np.eye(freedom) - np.linalg.inv(basis.T @ np.linalg.solve(G + H, H) @ basis)
    circuit = matrices(model.extra["branches"])
    root, mode = natural_mode(circuit, {"lc": -0.05 + 1.0j, "ca": -0.5, "in": -0.3}[name[:2]])
    np.testing.assert_allclose(basis @ expm(2.0 * rate) @ basis.T @ mode, np.exp(2.0 * root) * mode, atol=1e-10)
    np.testing.assert_allclose((root * H + G) @ mode, 0.0, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_index_of_a_circuit_follows_from_its_loops_and_cutsets(seed):
    """Tischendorf 1999: at most 2, and 1 if there are neither CV-loops nor LI-cutsets.

    By incidence matrices: no vector in the kernel of A_V^T restricted to that of A_C^T, and no voltage that capacitors,
    resistors and voltage sources do not feel.
    """
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 6))
    branches = [("R", k, int(rng.integers(0, k)), float(rng.uniform(0.5, 2.0))) for k in range(1, nodes + 1)]
    for k in range(len(branches)):  # a tree of resistors, some of which become inductors or capacitors
        branches[k] = (rng.choice(["R", "L", "C"]), *branches[k][1:])
    for kind in rng.choice(["E", "S", "C", "L", "R"], int(rng.integers(1, 5))):
        ends = rng.choice(nodes + 1, 2, replace=False)
        branches.append((str(kind), int(ends[0]), int(ends[1]), float(rng.uniform(0.5, 2.0))))
    columns = {kind: np.zeros((nodes + 1, 0)) for kind in "ESCLR"}
    for kind, positive, negative, _ in branches:
        column = np.zeros((nodes + 1, 1))
        column[positive], column[negative] = 1.0, -1.0
        columns[kind] = np.hstack([columns[kind], column])
    A = {kind: columns[kind][1:] for kind in columns}
    sources = A["E"].shape[1]
    if np.linalg.matrix_rank(A["E"]) < sources or np.linalg.matrix_rank(np.hstack([A[k] for k in "ECLR"])) < nodes:
        return  # a loop of voltage sources or a cutset of current sources: contradictory
    free = null_space(A["C"].T) if A["C"].size else np.eye(nodes)
    has_loop = np.linalg.matrix_rank(free.T @ A["E"]) < sources if sources else False
    has_cutset = np.linalg.matrix_rank(np.hstack([A[k] for k in "CRE"])) < nodes
    problem = library.mna(branches)
    zero = np.zeros(problem.n)
    expected = 2 if has_loop or has_cutset else (0 if np.linalg.matrix_rank(A["C"]) == nodes and not sources else 1)
    assert local_index(problem, 0.0, zero, zero).index == expected


@pytest.mark.parametrize("name", ["lc_ladder", "capacitor_loops", "inductor_cutsets"])
def test_a_thousand_nodes_have_exact_solutions_and_sparse_matrices(name):
    model = library.get(name, **({"cells": 999} if name == "lc_ladder" else {"nodes": 1000}), compiled=False)
    exact, sparsity = model.extra["exact"], model.problem.sparsity
    assert model.problem.n >= 1001 and sparsity.nnz < 5 * model.problem.n
    for t in (0.0, 5.0):
        np.testing.assert_allclose(model.problem.evaluate(t, exact(t), exact(t, 1)), 0.0, atol=1e-12)
    signature = StructuralSignature.of_orders(_orders(*model.extra["matrices"]))
    assert (signature.index, signature.degrees_of_freedom) == (model.index, model.indices.degrees_of_freedom)


def _orders(H, G):
    rows = [dict.fromkeys(row.indices.tolist(), 0) for row in map(sparse.csr_array, G)]
    for i, row in enumerate(rows):
        row |= dict.fromkeys(H.indices[H.indptr[i] : H.indptr[i + 1]].tolist(), 1)
    return rows


@pytest.mark.parametrize(
    ("branches", "message"),
    [
        ([("R", 1, 3, 1.0)], "no branch ends at node 0"),
        ([("R", 1, 0, 1.0), ("R", 3, 0, 1.0)], "no branch ends at node 2"),
        ([("Q", 1, 0, 1.0)], "kind of branch 1='Q' is not known"),
        ([("R", 1, 0, 1.0), ("C", 1, 0, 0.0)], "capacitance of branch 2=0.0 must be a positive number"),
        ([("VCCS", 1, 0, 2.0)], r"the value of branch 1 \(VCCS\) must be a Control"),
        ([("VCVS", 1, 0, library.Control(2.0, 5))], "is controlled by the nodes 5 and 0; nodes are numbered"),
        ([("R", 1, 0, 1.0), ("CCCS", 1, 0, library.Control(2.0, branch=1))], "put a voltage source of 0 V in series"),
    ],
)
def test_wrong_circuits_are_refused(branches, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        library.mna(branches)


def test_controlled_sources_enter_with_the_signs_of_their_definitions():
    """A current of 2 A through 3 Ohm gives 6 V; each kind of source multiplies what controls it by 0.5."""
    half = library.Control
    network = [
        ("S", 0, 1, 2.0),
        ("R", 1, 2, 3.0),
        ("E", 2, 0, 0.0),
        ("VCVS", 3, 0, half(0.5, 1, 0)),
        ("R", 3, 0, 1.0),
        ("CCVS", 4, 0, half(0.5, branch=3)),
        ("R", 4, 0, 1.0),
        ("VCCS", 0, 5, half(0.5, 1, 0)),
        ("R", 5, 0, 1.0),
        ("CCCS", 0, 6, half(0.5, branch=3)),
        ("R", 6, 0, 1.0),
    ]
    _, G, sources, names = matrices(network)
    f = np.zeros(len(names))
    for row, source in sources:
        f[row] += source(0.0)
    x = dict(zip(names, np.linalg.solve(G.toarray(), f), strict=True))
    assert [x[f"v{k}"] for k in range(1, 7)] == pytest.approx([6.0, 0.0, 3.0, 1.0, 3.0, 1.0])
    assert x["i_E3"] == pytest.approx(2.0)
