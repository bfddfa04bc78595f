"""Other packages that solve one problem many times on two cores, for :mod:`benchmarks.ensembles`.

Each gets mechanisms reduced to ordinary differential equations, by hand (:mod:`benchmarks.by_hand`) or by Daedal
(:mod:`benchmarks.rates`), in its best form: compiled by Numba for SciPy and numbalsoda, by XLA for diffrax, through C
for CasADi, which also gets the differential-algebraic equations of index 1 that one has before the multipliers are
eliminated. What they do once, processes, compiling and generating code, is not timed.
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
from benchmarks.by_hand import ByHand, by_hand
from benchmarks.rates import Equations, rate_of
from benchmarks.stick_slip import stick_slip_end

WORKERS = 2
STIFF = ("robertson",)
STICK_SLIP = "stick_slip_block"
BATCH, STIFF_BATCH = 128, 32  # members of a call of diffrax
MOST_STEPS = 50_000


@dataclass(frozen=True)
class Setting:
    """What all members have in common: a problem of the library, the start of its state and its interval.

    `from_graph` says whether the equations of a mechanism are Daedal's own.
    """

    name: str
    start: np.ndarray
    t_span: tuple[float, float]
    from_graph: bool = False

    @property
    def equations(self) -> Equations:
        return rate_of(self.name) if self.from_graph else by_hand(self.name)

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
    least: int = 64  # members of a call that is timed

    def __init__(self, setting: Setting):
        self.setting = setting

    @classmethod
    def is_installed(cls) -> bool:
        return find_spec(cls.package) is not None

    @classmethod
    def can_state(cls, name: str) -> bool:
        """Whether there is a way to state the problem; only SciPy has events after which a run goes on by hand."""
        return name != STICK_SLIP

    def prepare(self, rtol: float) -> None:
        """What is done once for a tolerance, before it is timed."""

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
    rate = _array_rate(setting.name, setting.from_graph)
    return solve_ivp(rate, setting.t_span, setting.start, method, [end], args=(params,), **tolerances).y[:, -1]


@cache
def _array_rate(name: str, from_graph: bool) -> Callable[..., np.ndarray]:
    """The right-hand side (t, y, p) as an array, compiled."""
    import numba

    fill = (rate_of(name) if from_graph else by_hand(name)).compiled()

    def rate(t, y, p):
        slope = np.empty(y.size)
        fill(t, y, slope, p)
        return slope

    return numba.njit(rate)


class ScipyPool(Peer):
    label, package, words = "SciPy, 2 processes", "scipy", ("DOP853", "LSODA")
    least = 16

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.pool = ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn"))

    @classmethod
    def can_state(cls, name: str) -> bool:
        return True

    def solve(self, params: np.ndarray, rtol: float) -> np.ndarray:
        chunk = min(8, -(-len(params) // WORKERS))
        runs = self.pool.map(scipy_run, [self.setting] * len(params), params, [rtol] * len(params), chunksize=chunk)
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

    def __init__(self, setting: Setting):
        import diffrax
        import jax
        from jax import numpy as jnp

        super().__init__(setting)
        self.batch = STIFF_BATCH if setting.is_stiff else BATCH
        self.least = WORKERS * self.batch
        jax.config.update("jax_enable_x64", True)
        term = diffrax.ODETerm(setting.equations.in_jax())
        solver = diffrax.Kvaerno5() if setting.is_stiff else diffrax.Dopri8()
        (t0, t1), start = setting.t_span, jnp.asarray(setting.start)

        def run(params: Any, rtol: Any, atol: Any) -> Any:
            control = diffrax.PIDController(rtol=rtol, atol=atol)
            first = 1e-6 if setting.is_stiff else None
            limits = {"stepsize_controller": control, "max_steps": MOST_STEPS, "throw": False}
            return diffrax.diffeqsolve(term, solver, t0, t1, first, start, params, **limits).ys[-1]

        self.run = jax.jit(jax.vmap(run, (0, None, None)))

    def half(self, params: np.ndarray, rtol: float) -> np.ndarray:
        batches = np.resize(params, (-(-len(params) // self.batch), self.batch, params.shape[1]))
        atol = self.setting.atol(rtol)
        return np.concatenate([np.asarray(self.run(batch, rtol, atol)) for batch in batches])[: len(params)]


class Numbalsoda(Threaded):
    label, package, words = "numbalsoda, 2 threads", "numbalsoda", ("DOP853", "LSODA")

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.batch = _numbalsoda_batch(setting.is_stiff)
        self.callback = _numbalsoda_callback(setting.equations, setting.start.size, _parameters(setting.name))

    def half(self, params: np.ndarray, rtol: float) -> np.ndarray:
        found = np.empty((len(params), self.setting.start.size))
        times, address = np.array(self.setting.t_span), self.callback.address
        params = np.ascontiguousarray(params)
        self.batch(address, self.setting.start, times, params, rtol, self.setting.atol(rtol), found)
        return found


@cache
def _numbalsoda_batch(is_stiff: bool) -> Callable[..., None]:
    import numba
    import numbalsoda

    one = numbalsoda.lsoda if is_stiff else numbalsoda.dop853

    @numba.njit(nogil=True)
    def batch(address, start, times, params, rtol, atol, found):
        for i in range(params.shape[0]):
            states, is_done = one(address, start, times, params[i], rtol, atol, MOST_STEPS)
            if is_done:
                found[i] = states[-1]
            else:
                found[i] = np.nan

    return batch


def _numbalsoda_callback(equations: Equations, n: int, m: int) -> Any:
    """The right-hand side as a function in C."""
    import numba
    import numbalsoda

    fill = equations.compiled()

    @numba.cfunc(numbalsoda.lsoda_sig)
    def callback(t, y, slope, p):
        fill(t, numba.carray(y, (n,)), numba.carray(slope, (n,)), numba.carray(p, (m,)))

    return callback


def _parameters(name: str) -> int:
    return np.size(daedal.library.get(name).problem.params)


# --- CasADi -----------------------------------------------------------------------------------------------------------


class Casadi(Peer):
    """`map` with threads over an integrator whose code, its loop included, was generated in C."""

    label, package, words = "CasADi, map with 2 threads", "casadi", ("erk, C", "rosenbrock, C")

    def __init__(self, setting: Setting):
        import casadi

        super().__init__(setting)
        t, y = casadi.SX.sym("t"), casadi.SX.sym("y", setting.start.size)
        p = casadi.SX.sym("p", _parameters(setting.name))
        self.system = self.stated(t, y, p)
        self.runs: dict[tuple[float, int], Any] = {}  # by tolerance and number of members
        self.folder = tempfile.TemporaryDirectory(prefix="daedal-bench-")

    def stated(self, t: Any, y: Any, p: Any) -> dict[str, Any]:
        """What the integrator is told."""
        return {"t": t, "x": y, "p": p, "ode": self.setting.equations.in_casadi()(t, y, p)}

    @property
    def plugin(self) -> str:
        return "rosenbrock" if self.setting.is_stiff else "erk"

    def integrator(self, rtol: float, compiled: bool) -> Any:
        import casadi

        options: dict[str, Any] = {"reltol": rtol, "abstol": self.setting.atol(rtol), "max_num_steps": 10**7}
        if compiled:
            options |= {"jit": True, "compiler": "shell", "jit_options": {"flags": ["-O3"], "verbose": False}}
        here = os.getcwd()
        os.chdir(self.folder.name)  # CasADi writes its C sources into the current directory
        try:
            return casadi.integrator("run", self.plugin, self.system, *self.setting.t_span, options)
        finally:
            os.chdir(here)

    def prepare(self, rtol: float) -> None:
        """Code in C; until then, CasADi's virtual machine runs the same operations."""
        self.runs = {key: run for key, run in self.runs.items() if key[0] != rtol}
        self.runs[rtol, 1] = self.integrator(rtol, compiled=True)

    def solve(self, params: np.ndarray, rtol: float) -> np.ndarray:
        if (rtol, 1) not in self.runs:
            self.runs[rtol, 1] = self.integrator(rtol, compiled=False)
        key = rtol, len(params)
        if key not in self.runs:
            self.runs[key] = self.runs[rtol, 1].map(len(params), "thread", WORKERS)
        start = np.tile(self.setting.start[:, None], (1, len(params)))
        return np.array(self.runs[key](x0=start, p=params.T)["xf"]).T

    def close(self) -> None:
        del self.system
        self.runs.clear()  # the integrators remove their own files
        self.folder.cleanup()


class CasadiIdas(Casadi):
    """IDAS with accelerations and multipliers as unknowns: 0 = M a + G^T lam - f, 0 = G a - gamma."""

    label, words = "CasADi, IDAS on index 1", ("idas, C", "")
    plugin = "idas"

    @classmethod
    def can_state(cls, name: str) -> bool:
        return super().can_state(name) and isinstance(by_hand(name), ByHand)

    def stated(self, t: Any, y: Any, p: Any) -> dict[str, Any]:
        import casadi

        equations = self.setting.equations
        assert isinstance(equations, ByHand)
        matrix, right = equations.augmented(y, p)
        z = casadi.SX.sym("z", equations.size)
        ode = casadi.vertcat(y[equations.n_q :], z[: equations.n_q])
        return {"t": t, "x": y, "p": p, "z": z, "ode": ode, "alg": casadi.mtimes(matrix, z) - right}


BY_HAND: tuple[type[Peer], ...] = (ScipyPool, Diffrax, Casadi, CasadiIdas, Numbalsoda)
FROM_GRAPH: tuple[type[Peer], ...] = (ScipyPool, Diffrax, Casadi, Numbalsoda)
