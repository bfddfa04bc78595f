r"""The two halves of a step of RATTLE on the graph (Hairer, Lubich, Wanner, section VII.1.4).

With the momenta :math:`p = M v` the equations of motion are :math:`\dot p = F - G^T \lambda` with

.. math::

    F(t, q, v) = f(t, q, v) + \dot M v,

which is :math:`-H_q` of the Hamiltonian if :math:`f` consists of inertia terms and a potential force.
"""

from __future__ import annotations

from collections.abc import Sequence

from daedal.symbolic.derivative import directional
from daedal.symbolic.elimination import Solved, solve
from daedal.symbolic.mechanism_dynamics import Dynamics


def momentum_force(dynamics: Dynamics) -> list[int]:
    """F = f + (dM/dt along v) v."""
    graph, mass = dynamics.graph, dynamics.mass
    along = {dynamics.t: graph.one, **dict(zip(dynamics.q, dynamics.v))}
    places = [(i, j) for i, row in enumerate(mass) for j in row]
    result = list(dynamics.force)
    for (i, j), rate in zip(places, directional(graph, [mass[i][j] for i, j in places], along)):
        result[i] = graph.add(result[i], graph.multiply(rate, dynamics.v[j]))
    return result


def first_half(
    dynamics: Dynamics, t_1: int, x: Sequence[int], u: Sequence[int], h: int, push: int
) -> tuple[Solved, list[int]]:
    r"""One iteration of the first half: w and d with the new :math:`u = v + w`, :math:`x = q + h u + h d / 2`.

    .. math::

        M(q)\, w + G(q)^T \nu = \tfrac h2 F(t, q, u), \qquad d = M(x)^{-1} M(q)\, u - u, \qquad
        g(t_1, x) + G(x)\, (q + h (v + w) + \tfrac h2 d - x) = 0

    `push` is h/2, or h if the impulse of the preceding second half step is included (SHAKE).
    """
    graph, n = dynamics.graph, dynamics.n_q
    there = {dynamics.t: t_1, **dict(zip(dynamics.q, x))}
    force = dynamics.at(momentum_force(dynamics), dict(zip(dynamics.v, u)))
    mass = dynamics.rows_at(dynamics.mass, there)
    change, worst = [graph.zero] * n, None
    if mass != dynamics.mass:
        momentum = [graph.zero] * n
        for i, row in enumerate(dynamics.mass):
            for j, entry in row.items():
                momentum[i] = graph.add(momentum[i], graph.multiply(entry, u[j]))
        after = solve(graph, mass, [momentum], n)
        change, worst = [graph.subtract(a, b) for a, b in zip(after.solutions[0], u)], after.quality
    half = graph.multiply(graph.constant(0.5), h)
    way = [
        graph.subtract(graph.add(a, graph.add(graph.multiply(h, b), graph.multiply(half, c))), d)
        for a, b, c, d in zip(dynamics.q, dynamics.v, change, x)
    ]
    gradients = dynamics.rows_at(dynamics.jacobian, there)
    right = [graph.multiply(push, entry) for entry in force]
    for value, row in zip(dynamics.at(dynamics.constraint, there), gradients):
        for j, entry in row.items():
            value = graph.add(value, graph.multiply(entry, way[j]))
        right.append(graph.negative(graph.divide(value, h)))
    solved = dynamics.solve(right, gradients)
    if worst is not None:
        solved = Solved(solved.solutions, graph.apply("minimum", solved.quality, worst), solved.order)
    return solved, [*solved.solutions[0][:n], *change]


def second_half(dynamics: Dynamics, push: int) -> Solved:
    r"""Velocity increments of the second half, :math:`M w + G^T \nu = \frac h2 F`, :math:`G (v + w) + g_t = 0`."""
    graph = dynamics.graph
    force = [graph.multiply(push, entry) for entry in momentum_force(dynamics)]
    return dynamics.solve([*force, *map(graph.negative, dynamics.rate)])
