"""Other packages that solve one problem many times on two cores, for :mod:`benchmarks.ensembles`.

Each gets mechanisms reduced to ordinary differential equations (:mod:`benchmarks.rates`) in its best form: compiled by
Numba for SciPy and numbalsoda, by XLA for diffrax, through C for CasADi. What they do once, processes, compiling and
generating code, is not timed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any, ClassVar

import numpy as np

import daedal
from benchmarks.rates import numba_rate, rate_of
from benchmarks.stick_slip import stick_slip_end

WORKERS = 2
STIFF = ("robertson",)
STICK_SLIP = "stick_slip_block"
BATCH = 256  # members of a call of diffrax


@dataclass(frozen=True)
class Setting:
    """What all members have in common: a problem of the library, the start of its state and its interval."""

    name: str
    start: np.ndarray
    t_span: tuple[float, float]

    @property
    def is_stiff(self) -> bool:
        return self.name in STIFF

    def atol(self, rtol: float) -> float:
        """One number, since not all packages take more: of Robertson's reaction below its smallest final value."""
        return 1e-18 if self.is_stiff else rtol


class Peer:
    """A package that is asked for the final states of many members."""

    label: ClassVar[str]
    package: ClassVar[str]
    words: ClassVar[tuple[str, str]]  # its method for mechanisms, and for stiff problems
    least: ClassVar[int] = 64  # members of a call that is timed

    def __init__(self, setting: Setting):
        self.setting = setting

    @classmethod
    def is_installed(cls) -> bool:
        return find_spec(cls.package) is not None

    @classmethod
    def can_state(cls, name: str) -> bool:
        """Whether there is a way to state the problem; only SciPy has events after which a run goes on by hand."""
        return name != STICK_SLIP

    def solve(self, params: np.ndarray, rtol: float) -> np.ndarray:
        """Final states (N, n) for parameters (N, m)."""
        raise NotImplementedError

    def close(self) -> None:
        """End what was started."""


# --- SciPy ------------------------------------------------------------------------------------------------------------


def scipy_run(setting: Setting, params: np.ndarray, rtol: float) -> np.ndarray:
    """The final state of one member."""
    from scipy.integrate import solve_ivp

    if setting.name == STICK_SLIP:
        return stick_slip_end(setting.start, setting.t_span, params, rtol)
    method, end = "LSODA" if setting.is_stiff else "DOP853", setting.t_span[1]
    tolerances = {"rtol": rtol, "atol": setting.atol(rtol)}
    rate = numba_rate(setting.name)
    return solve_ivp(rate, setting.t_span, setting.start, method, [end], args=(params,), **tolerances).y[:, -1]


class ScipyPool(Peer):
    label, package, words = "SciPy, 2 processes", "scipy", ("DOP853", "LSODA")

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.pool = ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn"))

    @classmethod
    def can_state(cls, name: str) -> bool:
        return True

    def solve(self, params: np.ndarray, rtol: float) -> np.ndarray:
        runs = self.pool.map(scipy_run, [self.setting] * len(params), params, [rtol] * len(params), chunksize=8)
        return np.array(list(runs))

    def close(self) -> None:
        self.pool.shutdown()


# --- in threads -------------------------------------------------------------------------------------------------------


class Threaded(Peer):
    """Two threads, each with half of the members; `half` must let go of the interpreter."""

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.pool = ThreadPoolExecutor(WORKERS)

    def half(self, params: np.ndarray, rtol: float) -> np.ndarray:
        raise NotImplementedError

    def solve(self, params: np.ndarray, rtol: float) -> np.ndarray:
        halves = np.array_split(params, WORKERS)
        return np.concatenate(list(self.pool.map(self.half, halves, [rtol] * WORKERS)))

    def close(self) -> None:
        self.pool.shutdown()


class Diffrax(Threaded):
    """`vmap`: members in batches of one size, compiled once; each is one loop, which ends when its last member has."""

    label, package, words = "diffrax, vmap", "diffrax", ("Dopri8", "Kvaerno5")
    least = WORKERS * BATCH

    def __init__(self, setting: Setting):
        import diffrax
        import jax
        from jax import numpy as jnp

        super().__init__(setting)
        jax.config.update("jax_enable_x64", True)
        rate = rate_of(setting.name)
        names = {"jnp": jnp, "sin": jnp.sin, "cos": jnp.cos, "sqrt": jnp.sqrt}
        term = diffrax.ODETerm(rate.function(f"return jnp.stack([{rate.listed}])", names))
        solver = diffrax.Kvaerno5() if setting.is_stiff else diffrax.Dopri8()
        (t0, t1), start = setting.t_span, jnp.asarray(setting.start)

        def run(params: Any, rtol: Any, atol: Any) -> Any:
            control = diffrax.PIDController(rtol=rtol, atol=atol)
            first = 1e-6 if setting.is_stiff else None
            return diffrax.diffeqsolve(
                term, solver, t0, t1, first, start, params, stepsize_controller=control, max_steps=None
            ).ys[-1]

        self.run = jax.jit(jax.vmap(run, (0, None, None)))

    def half(self, params: np.ndarray, rtol: float) -> np.ndarray:
        batches = np.resize(params, (-(-len(params) // BATCH), BATCH, params.shape[1]))
        atol = self.setting.atol(rtol)
        return np.concatenate([np.asarray(self.run(batch, rtol, atol)) for batch in batches])[: len(params)]


class Numbalsoda(Threaded):
    label, package, words = "numbalsoda, 2 threads", "numbalsoda", ("DOP853", "LSODA")

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.batch, self.address = _numbalsoda_batch(setting.is_stiff), _numbalsoda_rate(setting.name).address

    def half(self, params: np.ndarray, rtol: float) -> np.ndarray:
        found = np.empty((len(params), self.setting.start.size))
        times = np.array(self.setting.t_span)
        params = np.ascontiguousarray(params)
        self.batch(self.address, self.setting.start, times, params, rtol, self.setting.atol(rtol), found)
        return found


@cache
def _numbalsoda_batch(is_stiff: bool) -> Callable[..., None]:
    import numba
    import numbalsoda

    one = numbalsoda.lsoda if is_stiff else numbalsoda.dop853

    @numba.njit(nogil=True)
    def batch(address, start, times, params, rtol, atol, found):
        for i in range(params.shape[0]):
            states, is_done = one(address, start, times, params[i], rtol, atol, 100_000)
            if is_done:
                found[i] = states[-1]
            else:
                found[i] = np.nan

    return batch


@cache
def _numbalsoda_rate(name: str) -> Any:
    import math

    import numba
    import numbalsoda

    rate = rate_of(name)
    lines = "\n    ".join(f"slope[{i}] = {text}" for i, text in enumerate(rate.components))
    names = {word: getattr(math, word) for word in ("sin", "cos", "sqrt")}
    return numba.cfunc(numbalsoda.lsoda_sig)(rate.function(lines, names))


class Casadi(Peer):
    """`map` with threads over an integrator whose code, its loop included, was generated in C."""

    label, package, words = "CasADi, map with 2 threads", "casadi", ("erk, C", "rosenbrock, C")

    def __init__(self, setting: Setting):
        import casadi

        super().__init__(setting)
        rate = rate_of(setting.name)
        n, m = setting.start.size, np.size(daedal.library.get(setting.name).problem.params)
        t, y, p = casadi.SX.sym("t"), casadi.SX.sym("y", n), casadi.SX.sym("p", m)
        names = {"casadi": casadi, "sin": casadi.sin, "cos": casadi.cos, "sqrt": casadi.sqrt}
        ode = rate.function(f"return casadi.vertcat({rate.listed})", names)(t, y, p)
        self.system, self.runs = {"t": t, "x": y, "p": p, "ode": ode}, {}
        self.folder = tempfile.TemporaryDirectory(prefix="daedal-bench-")

    def integrator(self, rtol: float) -> Any:
        import casadi

        options = {"reltol": rtol, "abstol": self.setting.atol(rtol), "max_num_steps": 10**7}
        options |= {"jit": True, "compiler": "shell", "jit_options": {"flags": ["-O3"], "verbose": False}}
        here = os.getcwd()
        os.chdir(self.folder.name)  # CasADi writes its C sources into the current directory
        try:
            plugin = "rosenbrock" if self.setting.is_stiff else "erk"
            return casadi.integrator("run", plugin, self.system, *self.setting.t_span, options)
        finally:
            os.chdir(here)

    def solve(self, params: np.ndarray, rtol: float) -> np.ndarray:
        key = len(params), rtol
        if rtol not in self.runs:
            self.runs[rtol] = self.integrator(rtol)
        if key not in self.runs:
            self.runs[key] = self.runs[rtol].map(len(params), "thread", WORKERS)
        start = np.tile(self.setting.start[:, None], (1, len(params)))
        return np.array(self.runs[key](x0=start, p=params.T)["xf"]).T

    def close(self) -> None:
        del self.system
        self.runs.clear()  # the integrators remove their own files
        self.folder.cleanup()


PEERS: tuple[type[Peer], ...] = (ScipyPool, Diffrax, Casadi, Numbalsoda)
