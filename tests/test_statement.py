"""The equations of every class of problem on a graph, and the structural indices of the library."""

import numpy as np
import pytest

import daedal
from daedal.index.structure.equations import SystemEquations
from daedal.index.structure.structural_analysis import StructuralAnalysis


@pytest.mark.parametrize("name", ["seven_body", "knife_edge_on_paraboloid", "truck"])
def test_mechanical_systems_are_their_equations_of_motion(name):
    """Accelerations and multipliers, which the mechanical code finds by its own matrices, satisfy them."""
    model = daedal.library.get(name)
    system = model.problem
    q, v = (np.asarray(x, dtype=float) + 0.01 * np.arange(1.0, system.n_q + 1.0) for x in model.initial[:2])
    point = system.at(0.1, q, v)
    equations, rest = SystemEquations(system), np.zeros(system.n_lambda)
    jet = [np.r_[q, point.multipliers], np.r_[v, rest], np.r_[point.acceleration, rest]]
    found = equations.values(equations.nodes[: system.n_q], 0.1, jet)
    other = equations.values(equations.nodes[: system.n_q], 0.1, [jet[0], jet[1], 0.0 * jet[2]])
    assert np.abs(found).max() < 1e-9 * np.abs(other).max()
    assert np.abs(point.acceleration).max() > 0.0 and np.abs(point.multipliers).max() > 0.0


def test_linear_problems_are_their_coefficients():
    problem = daedal.LinearDAE(
        A=[[1.0, 2.0], [0.0, 3.0]],
        B=lambda t: [[np.sin(t)], [1.0]],
        C=[[1.0, 0.0]],
        D=[[0.0]],
        p=[1.0, -1.0],
        q=lambda t: [t**2],
        n_x=2,
        n_y=1,
    )
    equations = SystemEquations(problem)
    assert equations.names == ["x[0]", "x[1]", "y[0]"]
    x, xp, t = np.array([2.0, 3.0, 5.0]), np.array([7.0, 11.0, 13.0]), 0.5
    right = [2.0 + 6.0 + 5.0 * np.sin(t) + 1.0, 9.0 + 5.0 - 1.0]
    np.testing.assert_allclose(equations.values(equations.nodes, t, [x, xp]), [*(xp[:2] - right), 2.0 + t**2])


@pytest.mark.parametrize("order", [1, 2, 3])
def test_hessenberg_problems_keep_their_order(order):
    A = np.arange(1.0, 4.0 * order + 1.0).reshape(order, 2, 2)
    problem = daedal.HessenbergDAE(
        A=A, B=[[0.0], [1.0]], C=[[0.0, 1.0]], q=[1.0, 2.0], r=lambda t: [-np.cos(t)], n_x=2, n_y=1, order=order
    )
    equations = SystemEquations(problem)
    found = StructuralAnalysis.of(equations)
    assert found.index == order + 1 and found.degrees_of_freedom == order
    derivatives = np.random.default_rng(1).standard_normal((order + 1, 3))
    right = np.array([1.0, 2.0 + derivatives[0, 2]]) + sum(A[k] @ derivatives[k, :2] for k in range(order))
    expected = [*(derivatives[order, :2] - right), derivatives[0, 1] - np.cos(0.3)]
    np.testing.assert_allclose(equations.values(equations.nodes, 0.3, derivatives), expected)


@pytest.mark.parametrize(
    ("name", "index", "degrees_of_freedom"),
    [
        ("car_axis", 3, 4),  # IVP test set: index 3
        ("seven_body", 3, 2),
        ("fekete", 3, 80),
        ("transistor_amplifier", 1, 5),  # pairs of nodes with one capacitor between them: three combinations
        ("charge_pump", 2, 2),
        ("ring_modulator", 0, 15),
        ("water_tubes", 2, 9),
        ("chemical_akzo_nobel", 1, 5),
        ("index3_chain", 3, 0),
        ("tppc2", 2, 4),  # Brenan, Campbell and Petzold, sections 6.2 and 6.3
        ("tppc3", 3, 4),
        ("rolling_disc", 2, 6),
        ("stability_example1", 2, 1),
        ("linear_index2", 2, 0),
        ("jay_index2", 2, 1),
        ("order_reduction", 3, 0),
    ],
)
def test_structural_indices_of_the_library(name, index, degrees_of_freedom):
    found = StructuralAnalysis.of(SystemEquations(daedal.library.get(name).problem))
    assert (found.index, found.degrees_of_freedom) == (index, degrees_of_freedom)


def test_what_has_no_equations_is_refused():
    with pytest.raises(daedal.InvalidProblemError, match="a UnilateralProblem has no equations"):
        SystemEquations(daedal.library.get("bouncing_ball").problem)
