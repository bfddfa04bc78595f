"""The first solve of a new process: what is imported, what is announced, and that the cache changes nothing."""

import os
import shutil
import subprocess
import sys

import pytest

from daedal.common import object_store
from daedal.kernels.levels import host_levels
from daedal.kernels.units import key

SOLVE = """
import daedal

def residual(t, y, yp):
    fast = 1e4 * y[1] * y[2]
    return [yp[0] + 0.04 * y[0] - fast, yp[1] - 0.04 * y[0] + fast + 3e7 * y[1] ** 2, y[0] + y[1] + y[2] - 1.0]

def solve():
    sol = daedal.solve_dae(residual, (0.0, 40.0), [1.0, 0.0, 0.0], [-0.04, 0.04, 0.0], rtol=1e-8, atol=1e-12)
    return [sol.stats.steps, *(value.hex() for value in sol.y[:, -1].tolist())]
"""


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )


def test_importing_and_stating_a_problem_needs_neither_numba_nor_matplotlib():
    code = """
import sys
import daedal
problem = daedal.ImplicitDAE(lambda t, y, yp: yp + y, 1, names=["u"], algebraic=[False], bandwidth=(0, 0))
daedal.SemiExplicitDAE(lambda t, y, z: -z, lambda t, y, z: z - y, 1, 1)
solvers = daedal.linear_solvers
daedal.methods.DASSL(linear_solver=solvers.GMRES(), preconditioner=solvers.BandedPreconditioner(0, 0))
problem.evaluate(0.0, [1.0], [-1.0])
print(*({"numba", "llvmlite", "matplotlib", "sympy", "tqdm"} & set(sys.modules)))
"""
    assert run("-c", code).stdout.split() == []


USES = {
    "a DAE": "solve()",
    "a mechanism": "m = daedal.library.get('planar_pendulum'); daedal.solve(m.problem, (0.0, 1.0), m.initial)",
    "an ensemble": "daedal.solve_many(daedal.ODE(lambda t, y: -y, 1), (0.0, 1.0), [[1.0], [2.0]])",
    "a machine": (
        "from daedal.multibody import Body, Model, Revolute, ground, crba\n"
        "rod = Body.rod('rod', length=1.0, mass=1.0)\n"
        "model = Model(Revolute('pivot', ground, rod.start), gravity=(0.0, -9.81))\n"
        "daedal.solve(model.system(), (0.0, 0.1), model.assemble(pivot=0.1)); crba(model, [0.3])"
    ),
    "a hybrid model": "m = daedal.library.get('bouncing_ball'); daedal.solve(m.problem, (0.0, 0.2), m.initial)",
    "a fit": (
        "p = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p['k'] * y[0]], 1, params={'k': 1.0}, names=['y'])\n"
        "t = np.linspace(0.1, 1.0, 8)\n"
        "daedal.fit(p, {'t': t, 'y': np.exp(-2.0 * t)}, ['k'], initial=([1.0], None), t_span=(0.0, 1.0))"
    ),
}


@pytest.mark.parametrize("what", USES)
def test_solving_loads_neither_numba_nor_matplotlib(what):
    code = f"import numpy as np\n{SOLVE}\n{USES[what]}\nimport sys\n"
    assert run("-c", code + "print(*({'matplotlib', 'sympy', 'numba'} & set(sys.modules)))").stdout.split() == []


def test_a_mechanism_is_solved_without_most_of_scipy():
    code = f"import daedal, sys\n{USES['a mechanism']}\n"
    code += "print(*({'scipy.optimize', 'scipy.sparse', 'scipy.linalg', 'scipy.stats'} & set(sys.modules)))"
    assert run("-c", code).stdout.split() == []


def test_nothing_is_printed_when_everything_comes_from_the_cache():
    warm = run("-c", SOLVE + "solve()")
    again = run("-c", SOLVE + "solve()")
    assert warm.stdout == again.stdout == again.stderr == ""


def test_the_same_input_gives_the_same_bits_whatever_ran_before():
    code = """
print(solve())
try:
    daedal.solve_dae(lambda t, y, yp: [yp[0] - y[0] ** 2], (0.0, 2.0), [1.0], [1.0])
except daedal.IntegrationError:
    pass
print(solve())
"""
    lines = (run("-c", SOLVE + code).stdout + run("-c", SOLVE + "print(solve())").stdout).splitlines()
    assert len(lines) == 3
    assert len(set(lines)) == 1


@pytest.mark.slow
def test_compiled_now_and_from_the_cache_give_the_same_bits(tmp_path):
    """All other units are at hand, so that one is compiled and no more."""
    unit = "daedal.methods.explicit.runge_kutta_step"
    own = {key(unit, level) for level in host_levels()}
    for file in object_store.folder().glob("kernel-*.o"):
        if file.stem not in own:
            shutil.copy2(file, tmp_path)
    code = """
import daedal
sol = daedal.solve(daedal.ODE(lambda t, y: -(y ** 2), 1), (0.0, 9.0), [1.0], method="dopri5")
print(sol.stats.steps, sol.y[0, -1].hex())
"""
    cold = run("-c", code, DAEDAL_CACHE_DIR=str(tmp_path))
    cached = run("-c", code, DAEDAL_CACHE_DIR=str(tmp_path))
    notice = "daedal: compiling methods.explicit.runge_kutta_step (once"
    assert notice in cold.stderr and cold.stderr.count("compiling") == 1
    assert cached.stderr == ""
    assert cold.stdout == cached.stdout
