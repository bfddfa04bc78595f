"""Pryce's signature method on textbook problems, its invariances, and what it says of singular structures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.system_equations import SystemEquations
from daedal.index.structure.system_jacobian import SystemJacobian
from daedal.studies.pantelides import Pantelides


def pendulum(t, x, xp, xpp):
    return [xpp[0] + x[0] * x[2], xpp[1] + x[1] * x[2] + 9.81, x[0] ** 2 + x[1] ** 2 - 1.0]


def analysed(residual, n, kind=daedal.ImplicitDAE, **options):
    equations = SystemEquations(kind(residual, n, **options))
    return equations, StructuralSignature.of(equations)


def test_pendulum_of_second_order_as_in_pryce():
    """Pryce 2001, example 1: c = (0, 0, 2), d = (2, 2, 0), index 3, two degrees of freedom."""
    equations, signature = analysed(pendulum, 3, daedal.SecondOrderDAE)
    assert signature.sigma == [{0: 2, 2: 0}, {1: 2, 2: 0}, {0: 0, 1: 0}]
    assert signature.c.tolist() == [0, 0, 2] and signature.d.tolist() == [2, 2, 0]
    assert (signature.index, signature.degrees_of_freedom) == (3, 2)
    x = [0.6, -0.8, 3.0]
    jacobian = SystemJacobian(equations, signature).matrix(0.0, [x, np.zeros(3), np.zeros(3)])
    np.testing.assert_allclose(jacobian.toarray(), [[1, 0, x[0]], [0, 1, x[1]], [2 * x[0], 2 * x[1], 0]])
    assert np.linalg.det(jacobian.toarray()) == pytest.approx(-2 * (x[0] ** 2 + x[1] ** 2))


def two_pendula(t, x, xp, xpp):
    """Pryce 2001, example 2: the length of the second pendulum is ruled by the tension of the first."""
    first = pendulum(t, x[:3], xp[:3], xpp[:3])
    u, v, mu = x[3:]
    return [*first, xpp[3] + u * mu, xpp[4] + v * mu + 9.81, u**2 + v**2 - (1.0 + 0.1 * x[2]) ** 2]


def test_two_pendula_as_in_pryce():
    equations, signature = analysed(two_pendula, 6, daedal.SecondOrderDAE)
    assert signature.c.tolist() == [2, 2, 4, 0, 0, 2] and signature.d.tolist() == [4, 4, 2, 2, 2, 0]
    assert (signature.index, signature.degrees_of_freedom) == (5, 4)
    jacobian = SystemJacobian(equations, signature)
    assert jacobian.generic
    blocks = [(block.rows, block.columns) for block in jacobian.decomposition.blocks]
    assert blocks == [([0, 1, 2], [0, 1, 2]), ([3, 4, 5], [3, 4, 5])]


def test_hidden_cancellations_do_not_raise_the_order():
    def residual(t, y, yp):
        turned = np.cos(y[1]) ** 2 * yp[0] + np.sin(y[1]) ** 2 * yp[0]
        return [turned - yp[0] + y[0] - t, (yp[0] + yp[1]) - yp[0] - y[0]]

    _, signature = analysed(residual, 2)
    assert signature.sigma[0].get(0) == 0 and signature.sigma[1] == {0: 0, 1: 1}
    assert (0, 0, 1) in signature.vanished


def test_a_branch_that_random_points_do_not_take_counts():
    _, signature = analysed(lambda t, y, yp: [np.where(y[0] > 5.0, yp[0], 0.0) + y[0]], 1)
    assert signature.sigma == [{0: 1}]


def test_a_singular_system_jacobian_is_noticed():
    """x' + y' and its double: the structure says index 0, the matrix is singular everywhere."""
    equations, signature = analysed(lambda t, y, yp: [yp[0] + yp[1] - y[0], 2 * yp[0] + 2 * yp[1] + y[1]], 2)
    assert signature.index == 0
    found = SystemJacobian(equations, signature).generic
    assert not found and found.verdict == "singular" and found.equations == [0, 1] and found.unknowns == [0, 1]


def test_too_many_equations_for_an_unknown_are_named():
    problem = daedal.ImplicitDAE(
        lambda t, y, yp: [y[0] - t, y[0] - 2 * t, yp[1] + y[2]], 3, names=["level", "flow", "p"]
    )
    with pytest.raises(daedal.errors.StructurallySingularError, match="equations 0 and 1 contain only level") as caught:
        StructuralSignature.of(SystemEquations(problem))
    assert "flow and p occur only in equation 2" in str(caught.value)
    assert caught.value.equations == (0, 1) and caught.value.unknowns == (1, 2)


def test_an_equation_without_unknowns_is_named():
    with pytest.raises(daedal.errors.StructurallySingularError, match="equation 1 contains no unknown"):
        analysed(lambda t, y, yp: [yp[0] - y[1], t - 1.0], 2)


@st.composite
def structures(draw):
    """Orders of derivatives with a full transversal."""
    n = draw(st.integers(1, 7))
    matching = draw(st.permutations(range(n)))
    sigma = [{matching[i]: draw(st.integers(0, 3))} for i in range(n)]
    for i, j, k in draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(0, 3)))):
        sigma[i].setdefault(j, k)
    return sigma


@given(structures())
@settings(max_examples=150, deadline=None)
def test_offsets_are_dual_to_the_transversal(sigma):
    found = StructuralSignature.of_orders(sigma)
    assert sorted(found.transversal) == list(range(len(sigma)))
    assert found.c.min() == 0 and found.d.min() >= 0
    for i, row in enumerate(sigma):
        assert all(found.d[j] - found.c[i] >= k for j, k in row.items())
        assert found.d[found.transversal[i]] - found.c[i] == row[found.transversal[i]]
    assert found.degrees_of_freedom == sum(row[j] for row, j in zip(sigma, found.transversal, strict=True)) >= 0


@given(structures(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_offsets_do_not_depend_on_the_order_of_equations_and_unknowns(sigma, random):
    n = len(sigma)
    rows, columns = random.sample(range(n), n), random.sample(range(n), n)
    one = StructuralSignature.of_orders(sigma)
    other = StructuralSignature.of_orders([{columns[j]: k for j, k in sigma[i].items()} for i in rows])
    assert other.c.tolist() == one.c[rows].tolist()
    assert other.d[columns].tolist() == one.d.tolist()
    assert (other.index, other.degrees_of_freedom) == (one.index, one.degrees_of_freedom)


@given(structures())
@settings(max_examples=150, deadline=None)
def test_pantelides_finds_the_same_offsets(sigma):
    signature, found = StructuralSignature.of_orders(sigma), Pantelides.of_orders(sigma)
    assert found.c.tolist() == signature.c.tolist() and found.d.tolist() == signature.d.tolist()
    assert sorted(found.assignment) == list(range(len(sigma)))
    assert all(found.d[j] - found.c[i] == sigma[i][j] for i, j in enumerate(found.assignment))
    counted = np.bincount([i for step in found.differentiated for i in step], minlength=len(sigma))
    assert counted.tolist() == found.c.tolist()


def test_pantelides_refuses_singular_structures():
    with pytest.raises(daedal.errors.StructurallySingularError, match="equations 0 and 1 contain only unknown 0"):
        Pantelides.of_orders([{0: 0}, {0: 1}, {1: 0, 2: 0}])
