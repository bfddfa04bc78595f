"""The first solve of a new process: what is imported, what is announced, and that the cache changes nothing."""

import os
import subprocess
import sys

import pytest

TINY = """
from daedal.kernels.compilation import announce, kernel

@kernel
def triple(x):
    return 3.0 * x

announce(triple, "the tiny kernel")
print(triple(0.1).hex())
"""

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
daedal.DASSL(max_order=2, linear_solver=daedal.GMRES(), preconditioner=daedal.BandedPreconditioner(0, 0))
problem.evaluate(0.0, [1.0], [-1.0])
print(*({"numba", "llvmlite", "matplotlib", "sympy", "tqdm"} & set(sys.modules)))
"""
    assert run("-c", code).stdout.split() == []


def test_solving_does_not_load_matplotlib():
    code = SOLVE + "import sys; solve(); print(*({'matplotlib', 'sympy', 'tqdm'} & set(sys.modules)))"
    assert run("-c", code).stdout.split() == []


def test_a_kernel_is_announced_when_it_is_compiled_and_not_when_it_comes_from_the_cache(tmp_path):
    module = tmp_path / "tiny.py"
    module.write_text(TINY, encoding="utf-8")
    first = run(str(module), NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    second = run(str(module), NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert "daedal: compiling the tiny kernel (once" in first.stderr
    assert second.stderr == ""
    assert first.stdout == second.stdout == f"{(3.0 * 0.1).hex()}\n"


def test_a_kernel_works_where_nothing_can_be_cached(tmp_path):
    module = tmp_path / "tiny.py"
    nowhere = """
from numba.core import caching

# What Numba is left with if no folder can be written:
(getattr(caching, "CacheImpl", None) or caching._CacheImpl)._locator_classes = []
"""
    module.write_text(nowhere + TINY, encoding="utf-8")
    assert run(str(module)).stdout == f"{(3.0 * 0.1).hex()}\n"


@pytest.mark.parametrize(("room", "kernel"), [("dassl_step", "_step"), ("bdf_fixed", "_step")])
def test_the_integrators_are_announced(room, kernel):
    code = f"""
from numba.core import event
from daedal.methods import {room}
event.start_event("numba:compile", data={{"dispatcher": {room}.{kernel}}})
"""
    message = run("-c", code).stderr
    assert message.startswith("daedal: compiling the ")
    assert "DASSL" in message or "BDF" in message
    assert "once" in message


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
    code = """
import daedal
sol = daedal.solve(daedal.ODE(lambda t, y: -(y ** 2), 1), (0.0, 9.0), [1.0], method="dopri5")
print(sol.stats.steps, sol.y[0, -1].hex())
"""
    cold = run("-c", code, NUMBA_CACHE_DIR=str(tmp_path))
    cached = run("-c", code, NUMBA_CACHE_DIR=str(tmp_path))
    assert "daedal: compiling the explicit Runge-Kutta methods (once" in cold.stderr
    assert cached.stderr == ""
    assert cold.stdout == cached.stdout
