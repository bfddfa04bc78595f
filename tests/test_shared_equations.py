"""Equations on one graph that are shared: by modified equations, by other parameters and by several threads."""

import sys
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from threading import Barrier

import numpy as np
import pytest

import daedal
from daedal.index.structure.derivative_array import NonlinearDerivativeArray
from daedal.index.structure.equations import SystemEquations
from daedal.index.structure.structural_analysis import StructuralAnalysis
from derivative_array_problems import implicit


def test_the_array_of_modified_equations_is_not_that_of_the_given_ones():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + yp[1] - y[0], 2 * yp[0] + 2 * yp[1] + y[1]], 2)
    equations, jet = SystemEquations(problem), np.arange(1.0, 7.0).reshape(3, 2)
    given = NonlinearDerivativeArray(equations, 1).residual(0.0, jet)
    assert given.tolist() == [6.0, 16.0, 8.0, 26.0]
    modified = NonlinearDerivativeArray(StructuralAnalysis.of(equations).equations, 1)
    assert modified.residual(0.0, jet).tolist() == [6.0, -2.0, 8.0, -5.0]  # (2.) - 2 (1.), without the derivatives


def circle(t, s, sp, p):
    x, y, u, v, lam = s
    return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + p[0], x * x + y * y - p[1] ** 2]


def test_other_parameters_take_the_same_machine_code():
    equations = SystemEquations(implicit(circle, "x", "y", "u", "v", "lam", params=np.array([9.81, 1.0])))
    jet = np.random.default_rng(1).uniform(size=(4, 5))
    first = NonlinearDerivativeArray(equations, 2)
    before, levels = first.residual(0.0, jet), len(equations.levels)
    for length in (2.0, 3.0):
        other = copy(equations)
        other.params = np.array([0.0, length])
        change = NonlinearDerivativeArray(other, 2).residual(0.0, jet) - before
        assert change[[3, 4]] == pytest.approx([-9.81, 1.0 - length**2], rel=1e-13)
        assert np.all(np.delete(change, [3, 4]) == 0.0)
    assert len(equations.levels) == levels
    assert np.all(first.residual(0.0, jet) == before)


def chain(t, x, xp):
    ahead, behind = np.roll(x, 1), np.roll(x, -1)
    return xp * np.cos(ahead) - np.sin(x * behind) - np.exp(-ahead * xp) * t


def test_threads_share_equations():
    problem, orders = daedal.ImplicitDAE(chain, 6), [[0, 1, 2, 3], [3, 2, 1, 0], [0, 1, 2, 3], [2, 3, 0, 1]]
    jet = np.random.default_rng(2).uniform(size=(5, 6))

    def values(equations, own):
        nodes = {k: [equations.equation(i, k) for i in range(6)] for k in own}
        arrays = {k: NonlinearDerivativeArray(equations, k) for k in own if k < 2}
        found = {k: equations.values(nodes[k], 0.5, jet) for k in nodes}
        return found, {k: array.jacobian(0.5, jet).toarray() for k, array in arrays.items()}

    expected = values(SystemEquations(problem), range(4))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            equations, together = SystemEquations(problem), Barrier(4)

            def work(own, equations=equations, together=together):
                together.wait()
                return values(equations, own)

            with ThreadPoolExecutor(4) as threads:
                for found in threads.map(work, orders):
                    for part, right in zip(found, expected, strict=True):
                        assert part.keys() == right.keys()
                        assert all(part[k] == pytest.approx(right[k], rel=1e-12) for k in right)
            assert len(equations.levels) == 2  # orders 0 and 1, of all equations
    finally:
        sys.setswitchinterval(interval)
