"""Problems as differentiable functions: what the operators for JAX, PyTorch and PyTensor are tried on."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import daedal


@dataclass
class DifferentiableCase:
    """A problem, what its solution is a function of, and whether adjoint equations exist."""

    problem: Any
    span: tuple[float, float]
    initial: Any
    params: Any = None
    inputs: Any = None
    t_eval: Any = None
    options: dict = field(default_factory=dict)
    outputs: Any = None
    has_adjoint: bool = True
    eps: float = 1e-4  # of differences

    def solver(self, package, **further):
        """The operator of a package."""
        tolerances = {"rtol": 1e-9, "atol": 1e-11}
        given = {"t_eval": self.t_eval, "outputs": self.outputs, **tolerances, **self.options}
        return package.solve(self.problem, self.span, **(given | further))


def robertson():
    def residual(t, y, yp, p):
        a, b, c = y
        slow = p["k1"] * a - p["k3"] * b * c
        return [yp[0] + slow, yp[1] - slow + 1e7 * p["k2"] * b**2, a + b + c - 1.0]

    problem = daedal.ImplicitDAE(residual, 3, params={"k1": 0.04, "k2": 3.0, "k3": 1e4}, names=["a", "b", "c"])
    params = {"k1": 0.04, "k2": 3.0}
    options = {"rtol": 1e-10, "atol": [1e-12, 1e-16, 1e-12]}
    return DifferentiableCase(
        problem, (0.0, 40.0), ([1.0, 0.0, 0.0], None), params, None, [0.4, 40.0], options, ["a", "c"], eps=1e-5
    )


def index_1():
    """A semi-explicit DAE with an input in the constraint, held constant between samples."""
    problem = daedal.SemiExplicitDAE(
        lambda t, y, z, p: [-p["k"] * z[0]],
        lambda t, y, z, p, u: [y[0] - z[0] ** 3 - u],
        1,
        1,
        params={"k": 2.0},
        inputs=["u"],
    )
    samples = ([0.1, 0.5, 0.8], [1.0, 0.9, 0.5])
    return DifferentiableCase(problem, (0.0, 1.0), ([2.0], None), {"k": 2.0}, {"u": samples}, [0.3, 0.5, 1.0])


def index_2():
    problem = daedal.SemiExplicitDAE(
        lambda t, y, z, p: [-p[0] * y[0] + p[1] * z[0], z[0] + y[0] * y[1]],
        lambda t, y, z, p: [y[0] + y[1] - 1.0],
        2,
        1,
        params=[2.0, 0.7],
        names=["a", "b", "z"],
    )
    return DifferentiableCase(
        problem, (0.0, 1.0), ([0.3, 0.7], None), [2.0, 0.7], None, [0.0, 0.4, 1.0], {}, ["a", "b"]
    )


def mechanism():
    """A pendulum on a cart in Cartesian coordinates; start values move along the constraint."""
    problem = daedal.MechanicalSystem(
        [2.0, 0.5, 0.5],
        lambda t, q, v, p, push: [push - p["c"][0] * v[0] - p["c"][1] * v[0] ** 3, 0.0, -0.5 * 9.81],
        lambda t, q, p: [(q[1] - q[0]) ** 2 + q[2] ** 2 - 1.0],
        n_q=3,
        n_constraints=1,
        params={"c": np.array([0.1, 0.05])},
        names=["cart", "x", "y"],
        inputs=["push"],
    )
    return DifferentiableCase(
        problem,
        (0.0, 1.0),
        ([0.0, 0.6, -0.8], [0.1, 0.1, 0.0]),
        {"c": np.array([0.1, 0.05])},
        {"push": ([0.0, 0.4], [2.0, -4.0])},
    )


def bouncing_ball():
    fall = daedal.MechanicalSystem(1.0, lambda t, q, v, p: [-p["g"]], n_q=1, params={"g": 9.81, "e": 0.8}, names=["h"])
    bounce = daedal.hybrid.Transition(
        "air", "air", lambda t, q, v: q[0], direction=-1, reset=lambda t, q, v, p: ([0.0], -p["e"] * v)
    )
    problem = daedal.hybrid.HybridProblem({"air": fall}, [bounce])
    params = {"g": 9.81, "e": 0.8}
    return DifferentiableCase(problem, (0.0, 1.0), ("air", ([1.0], [0.0])), params, None, [0.3, 1.0], has_adjoint=False)


def hidden_switch():
    problem = daedal.ODE(
        lambda t, y, p: [y[1], -y[0] - (p["up"] * y[1] if y[0] > 0.5 else p["down"] * y[1] - 1.0)],
        2,
        params={"up": 0.2, "down": 0.1},
    )
    return DifferentiableCase(
        problem, (0.0, 2.0), [0.0, 1.0], {"up": 0.2, "down": 0.1}, None, [0.5, 2.0], has_adjoint=False
    )


CASES = {make.__name__: make for make in (robertson, index_1, index_2, mechanism, bouncing_ball, hidden_switch)}
