"""What looks like numbers, masses or coefficients and is not: refused by name, never computed with."""

import numba
import numpy as np
import pytest
from scipy.sparse import csr_array

import daedal

# --- what NumPy would take for numbers ---

TEXT = np.array(["0.0", "1.0"], dtype=object)
MASKED = np.ma.array([0.0, 1.0], mask=[True, False])
NOT_NUMBERS = [["0.0", "1.0"], TEXT, MASKED, [b"0", b"1"], [0.0, "1.0"]]


def decay(t, y, yp):
    return [yp[0] + y[0], yp[1] + y[1]]


@pytest.mark.parametrize("values", NOT_NUMBERS, ids=["list of text", "objects", "masked", "bytes", "mixed"])
@pytest.mark.parametrize("place", ["y0", "yp0", "t_span", "t_eval", "rtol", "atol", "mass"])
def test_strings_and_masked_entries_are_not_numbers(values, place):
    arguments = {"t_span": (0.0, 1.0), "y0": [1.0, 1.0], "yp0": [-1.0, -1.0]}
    with pytest.raises(daedal.InvalidProblemError, match=place):
        if place == "mass":
            daedal.MechanicalSystem(values, lambda t, q, v: [0.0, 0.0], n_q=2)
        else:
            arguments[place] = values
            t_span, y0, yp0 = (arguments.pop(name) for name in ("t_span", "y0", "yp0"))
            daedal.solve(daedal.ImplicitDAE(decay, 2), t_span, (y0, yp0), **arguments)


@pytest.mark.parametrize("values", NOT_NUMBERS, ids=["list of text", "objects", "masked", "bytes", "mixed"])
def test_functions_that_return_strings_or_masked_entries_are_refused(values):
    with pytest.raises(daedal.InvalidProblemError, match="residual returned"):
        daedal.solve(daedal.ImplicitDAE(lambda t, y, yp: values, 2), (0.0, 1.0), ([1.0, 1.0], None))
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: values, n_q=2)
    with pytest.raises(daedal.InvalidProblemError, match="force returned"):
        daedal.solve(system, (0.0, 1.0), ([1.0, 1.0], [0.0, 0.0]))


def test_a_masked_array_without_masked_entries_is_an_array():
    sol = daedal.solve(daedal.ImplicitDAE(decay, 2), (0.0, 1.0), (np.ma.array([1.0, 2.0]), None))
    assert sol.y[:, -1] == pytest.approx(np.exp(-1.0) * np.array([1.0, 2.0]), rel=1e-5)


# --- mass matrices that belong to no kinetic energy ---


def on_a_circle(mass, **changes):
    return daedal.MechanicalSystem(
        mass,
        lambda t, q, v: [0.0, -9.81],
        lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=2,
        n_constraints=1,
        **changes,
    )


UNSYMMETRIC, NEGATIVE = np.array([[1.0, 0.5], [0.0, 1.0]]), np.diag([1.0, -2.0])


@pytest.mark.parametrize("given", ["constant", "function", "compiled", "sparse"])
@pytest.mark.parametrize(
    ("mass", "message"),
    [(UNSYMMETRIC, r"not symmetric.*M\[0, 1\] = 0.5.*M\[1, 0\] = 0"), (NEGATIVE, r"negative.*q\[1\]")],
)
@pytest.mark.parametrize("v0", [[0.0, 0.0], None])
def test_unsymmetric_and_negative_masses_are_refused(given, mass, message, v0):
    system = {
        "constant": lambda: on_a_circle(mass),
        "function": lambda: on_a_circle(lambda t, q: mass),
        "compiled": lambda: on_a_circle(numba.njit(lambda t, q: 1.0 * mass)),
        "sparse": lambda: on_a_circle(
            csr_array(mass), constraint_jacobian=lambda t, q: csr_array([[2.0 * q[0], 2.0 * q[1]]])
        ),
    }[given]()
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.solve(system, (0.0, 1.0), ([1.0, 0.0], v0))


def test_masses_may_be_negative_only_by_round_off():
    almost = np.array([[1.0, 1.0 - 1e-13, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # singular, and q[0] = q[1] held
    system = daedal.MechanicalSystem(
        almost, lambda t, q, v: [0.0, 0.0, -1.0], lambda t, q: [q[0] - q[1]], n_q=3, n_constraints=1
    )
    sol = daedal.solve(system, (0.0, 1.0), ([0.0, 0.0, 0.0], [1.0, 1.0, 0.0]))
    assert sol.q[:, -1] == pytest.approx([1.0, 1.0, -0.5], abs=1e-6)


# --- coefficients that do not add up ---


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"b": ("1/2", "1/4")}, "the weights b add up to 0.75, not to 1"),
        ({"b": (0.5, 0.5 + 1e-9)}, "the weights b add up to 1.000000001"),
        ({"bhat": (1, 1)}, "the weights bhat add up to 2"),
        ({"c": (0, "1/2")}, "row 2 of a add up to 1, not to 0.5"),
        ({"dense": ((1, 1), (0, 0))}, r"theta\^2 in dense add up to 1, not to 0"),
    ],
)
def test_a_method_whose_coefficients_do_not_add_up_does_not_run(changes, message):
    heun = {"a": ((), (1,)), "b": ("1/2", "1/2"), "order": 2}
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.methods.HalfExplicit(daedal.analysis.order_conditions.HalfExplicitTableau("wrong", **(heun | changes)))
    daedal.methods.HalfExplicit(daedal.analysis.order_conditions.HalfExplicitTableau("Heun", **heun))
