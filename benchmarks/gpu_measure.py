"""Measure ensembles on a GPU from what `benchmarks/gpu.py` has prepared; needs NumPy and CuPy only.

    python3 gpu_measure.py FOLDER [--quick]

Times are the shortest of several runs, from the call to the end of the kernel, arguments and results on the GPU; NVRTC
is timed apart. Errors are the largest over eight members at the end, of positions |q - reference| / (1 + |reference|),
of Robertson's problem relative ones of all three variables.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

SIZES = (10**3, 10**5, 10**6, 10**7)
BLOCKS_PER_PROCESSOR = 32


def load_runner(folder: Path):
    """`gpu_run.py` of Daedal, without the rest of it."""
    package, errors = types.ModuleType("daedal"), types.ModuleType("daedal.errors")
    errors.InvalidProblemError = type("InvalidProblemError", (ValueError,), {})
    sys.modules.setdefault("daedal", package)
    sys.modules.setdefault("daedal.errors", errors)
    sys.path.insert(0, str(folder))
    import gpu_order
    import gpu_run

    gpu_run.order_of_runs = gpu_order.order_of_runs
    return gpu_run


class Measurement:
    """All that is measured of the cases in a folder."""

    def __init__(self, folder: Path):
        import cupy

        self.cupy, self.folder, self.runner = cupy, folder, load_runner(folder)
        self.cases = json.loads((folder / "cases.json").read_text())
        self.results: dict = {}

    def members(self, case: dict, count: int):
        """Random parameters within the spread of a case; the first ones are those with references."""
        draws = self.cupy.random.default_rng(20).random((count, len(case["params"])))
        rows = self.cupy.tile(self.cupy.asarray(case["params"]), (count, 1))
        for place, (low, high) in case["spread"].items():
            rows[:, int(place)] *= low + (high - low) * draws[:, int(place)]
        samples = np.array(case["samples"])[: min(count, len(case["samples"]))]
        rows[: len(samples)] = self.cupy.asarray(samples)
        return rows

    def task(self, case: dict, tolerance):
        rtol, atol = (np.full(case["n"], float(x)) for x in tolerance)
        span = tuple(case["t_span"])
        return self.runner.Task(span, np.zeros(0), rtol, atol, first_step=case["first_step"], largest_correction=np.inf)

    def timed(self, case: dict, kernel, tolerance, params, repeats: int = 3, order="neighbours", start=None, **options):
        """The shortest time of a run, the search for an order included, and its results."""
        problem, task = types.SimpleNamespace(n=case["n"]), self.task(case, tolerance)
        start = self.cupy.asarray([case["start"]]) if start is None else start
        best, found = np.inf, None
        for _ in range(repeats):
            found = None
            self.cupy.cuda.Device().synchronize()
            begin = time.perf_counter()
            known = order
            if isinstance(order, str):
                known = self.runner.order_of_runs(self.cupy, types.SimpleNamespace(**case), [start, params])
            found = self.runner.execute(self.cupy, kernel, problem, task, start, params, order=known, **options)
            self.cupy.cuda.Device().synchronize()
            best = min(best, time.perf_counter() - begin)
        return best, found

    def error(self, case: dict, found) -> float:
        reference = np.array(case["references"])
        y = self.cupy.asnumpy(found.y[: len(reference)])
        reference = reference[: len(y)]
        if case["positions"]:  # as test sets do: positions
            y, reference = y[:, : case["positions"]], reference[:, : case["positions"]]
        return float(np.max(np.abs(y - reference) / (bool(case["positions"]) + np.abs(reference))))

    def kernel(self, source: str, block: int):
        return self.runner.gpu_kernel((self.folder / source).read_text(), 0, block)

    def compile_all(self) -> None:
        """All variants with nvcc, side by side, as cubins."""
        sources = [self.folder / path for case in self.cases.values() for path, _ in case["sources"].values()]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_cubin, sources))

    def variant(self, source: str, block: int):
        """The kernel of a variant, and its registers and local memory."""
        module = self.cupy.RawModule(path=str((self.folder / source).with_suffix(".cubin")))
        function = module.get_function("run")
        processors = self.cupy.cuda.Device().attributes["MultiProcessorCount"]

        def launch(*arguments):
            blocks = min(-(-int(arguments[-1]) // block), processors * BLOCKS_PER_PROCESSOR)
            function((max(blocks, 1),), (block,), tuple(np.uint64(0) if x is None else x for x in arguments))

        return launch, (function.num_regs, function.local_size_bytes)

    def check(self) -> None:
        """Output and events of single runs against the driver, in units of the tolerance."""
        print("\nchecks: end by an event, largest difference of the output before it", flush=True)
        for name, case in self.cases.items():
            known = case["check"]
            kernel = self.kernel(known["source"], 64)
            n, times = case["n"], np.array(known["times"])
            rtol, atol = np.full(n, known["rtol"]), np.full(n, known["atol"])
            task = self.runner.Task(tuple(case["t_span"]), times, rtol, atol)
            params, start = self.cupy.asarray([case["params"]]), self.cupy.asarray([case["start"]])
            problem = types.SimpleNamespace(n=n)
            found = self.runner.execute(self.cupy, kernel, problem, task, start, params)
            y, expected = self.cupy.asnumpy(found.outputs[0]), np.array(known["y"])
            before = times < known["t_end"]
            difference = np.max(np.abs(y - expected)[before] / (atol + rtol * np.abs(expected[before])))
            late = "nan" if np.isnan(y[times > float(found.t[0])]).all() else "NOT nan"
            print(
                f"{name:16} status {int(found.statuses[0])} t {float(found.t[0]):.9g} expected {known['t_end']:.9g}; "
                f"output off by {difference:.2g} tolerances, {late} behind the end",
                flush=True,
            )

    # --- tables -------------------------------------------------------------------------------------------------------

    def compare_variants(self, count: int) -> None:
        """Every variant of every case at its first tolerance."""
        print(f"\nvariants, {count} runs: ms, registers, bytes of local memory", flush=True)
        for name, case in self.cases.items():
            params = self.members(case, count)
            for variant, (source, block) in case["sources"].items():
                try:
                    kernel, size = self.variant(source, block)
                    best, found = self.timed(case, kernel, case["tolerances"][0], params)
                    print(f"{name:16} {variant:24} {best * 1e3:9.2f} ms {size[0]:4d} {size[1]:6d}", flush=True)
                    self.results[f"{name}/{variant}"] = best
                except Exception as error:  # a variant that does not fit leaves the others
                    print(f"{name:16} {variant:24} {error}", flush=True)
            kernel, _ = self.variant(*case["sources"]["default"])
            _, found = self.timed(case, kernel, case["tolerances"][0], params, 1)
            self._orders(name, case, kernel, params, found)

    def _orders(self, name: str, case: dict, kernel, params, found) -> None:
        """The same runs in the order of their steps, known from a run before, and of a parameter."""
        xp, place = self.cupy, int(next(iter(case["spread"])))
        attempts = found.steps + found.rejections
        orders = {"as given": xp.arange(len(params)), "by steps": xp.argsort(-attempts)}
        orders["by parameter"] = xp.argsort(params[:, place])
        for title, order in orders.items():
            best, _ = self.timed(case, kernel, case["tolerances"][0], params, order=order.astype(xp.int32))
            print(f"{name:16} order {title:18} {best * 1e3:9.2f} ms", flush=True)
        rtol, atol = case["tolerances"][0]
        pilot, found = self.timed(case, kernel, (min(100 * rtol, 1e-2), min(100 * atol, 1e-2)), params)
        order = xp.argsort(-(found.steps + found.rejections)).astype(xp.int32)
        best, _ = self.timed(case, kernel, case["tolerances"][0], params, order=order)
        print(f"{name:16} order by a pilot run      {best * 1e3:9.2f} ms and {pilot * 1e3:.2f} ms for it", flush=True)
        spread = [int(f(attempts)) for f in (xp.min, xp.median, xp.max)]
        print(f"{name:16} attempts (least, median, most) {spread}", flush=True)

    def several_quantities(self, count: int) -> None:
        """Seven-body mechanisms with different torques and velocities at the start, from -1 to 1 for three angles."""
        case = self.cases["seven-body"]
        params, n = self.members(case, count), case["positions"]
        start = self.cupy.tile(self.cupy.asarray(case["start"]), (count, 1))
        start[:, n : n + 2] = 2.0 * self.cupy.random.default_rng(21).random((count, 2)) - 1.0
        print("\nseven-body mechanisms, three quantities vary", flush=True)
        for variant in ("default", "loop, called", "written out, inlined", "refill 1", "refill 8"):
            if variant in case["sources"]:
                kernel, _ = self.variant(*case["sources"][variant])
                for title, order in (("neighbours", "neighbours"), ("as given", None)):
                    best, found = self.timed(case, kernel, case["tolerances"][0], params, start=start, order=order)
                    good = int((found.statuses == 2).sum())
                    print(f"{variant:24} {title:12} {best * 1e3:9.2f} ms, {good} successful", flush=True)

    def sizes(self, sizes) -> None:
        """Times and errors for numbers of runs."""
        print("\ncase, tolerance, runs: time, runs per second, error, statuses, NVRTC", flush=True)
        for name, case in self.cases.items():
            begin = time.perf_counter()
            kernel = self.kernel(*case["sources"]["default"])
            compiled = time.perf_counter() - begin
            for tolerance in case["tolerances"]:
                for count in sizes:
                    params = self.members(case, count)
                    best, found = self.timed(case, kernel, tolerance, params, 2 if count > 10**6 else 4)
                    self._row(name, tolerance, count, best, found, case, f"{compiled:.1f} s")
                    params = found = None
                    self.cupy.get_default_memory_pool().free_all_blocks()

    def single(self, count: int) -> None:
        """Mechanisms in single precision; chemical kinetics to t = 1e11 has no digits in it."""
        print("\nsingle precision", flush=True)
        for name, case in self.cases.items():
            if not case["positions"]:
                continue
            try:
                kernel, params = self.kernel(case["single"], 64), self.members(case, count)
                for tolerance in ((1e-3, 1e-4), (1e-4, 1e-5)):
                    best, found = self.timed(case, kernel, tolerance, params, single=True)
                    self._row(name, tolerance, count, best, found, case, "single")
            except Exception as error:  # the other cases are measured all the same
                print(name, error, flush=True)

    def _row(self, name, tolerance, count, best, found, case, note) -> None:
        statuses = {int(s): int((found.statuses == s).sum()) for s in self.cupy.unique(found.statuses).tolist()}
        error, steps = self.error(case, found), float(found.steps.mean())
        rate = count / best
        print(
            f"{name:16} {tolerance[0]:7.0e} {count:9d} {best * 1e3:10.2f} ms {rate:9.3g}/s error {error:8.1e} "
            f"steps {steps:6.1f} {statuses} {note}",
            flush=True,
        )
        self.results[f"{name}/{tolerance[0]}/{count}/{note}"] = [best, error, statuses]


def _cubin(source: Path) -> None:
    target = source.with_suffix(".cubin")
    subprocess.run(["nvcc", "-std=c++17", "-arch=sm_90", "-cubin", "-w", str(source), "-o", str(target)], check=False)


def jax_pendulum(case: dict, counts, tolerance: float = 1e-5) -> None:
    """The underlying ODE of the pendulum, without projection, under vmap: JAX's own odeint and diffrax."""
    try:
        import jax
        import jax.numpy as jnp
        from jax.experimental.ode import odeint
    except ImportError as error:
        print("JAX:", error, flush=True)
        return
    jax.config.update("jax_enable_x64", True)

    def rate(t, y, weight):
        q, v = y[:2], y[2:]
        force = jnp.array([0.0, -weight])
        multiplier = (v @ v + q @ force) / (q @ q)
        return jnp.concatenate([v, force - multiplier * q])

    def by_jax(weight):
        times = jnp.array([0.0, 10.0])
        return odeint(lambda y, t, w: rate(t, y, w), start, times, weight, rtol=tolerance, atol=tolerance)[-1]

    start = jnp.array(case["start"])
    methods = {"JAX odeint": by_jax}
    try:
        import diffrax

        def by_diffrax(weight):
            control = diffrax.PIDController(rtol=tolerance, atol=tolerance)
            term, method, saved = diffrax.ODETerm(rate), diffrax.Dopri5(), diffrax.SaveAt(t1=True)
            return diffrax.diffeqsolve(
                term, method, 0.0, 10.0, 0.01, start, weight, stepsize_controller=control, saveat=saved, max_steps=None
            ).ys[-1]

        methods[f"diffrax {diffrax.__version__}"] = by_diffrax
    except ImportError as error:
        print("diffrax:", error, flush=True)
    samples, references = np.array(case["samples"])[:, 1], np.array(case["references"])
    for name, end in methods.items():
        run = jax.jit(jax.vmap(end))
        for count in counts:
            weights = 0.5 + np.random.default_rng(20).random(count)
            weights[: len(samples)] = samples
            weights = jnp.asarray(weights)
            begin = time.perf_counter()
            run(weights).block_until_ready()
            first, best = time.perf_counter() - begin, np.inf
            for _ in range(3):
                begin = time.perf_counter()
                found = run(weights).block_until_ready()
                best = min(best, time.perf_counter() - begin)
            difference = np.abs(np.asarray(found[: len(samples)]) - references)[:, :2]
            error = np.max(difference / (1.0 + np.abs(references[:, :2])))
            print(
                f"{name:16} pendulum {tolerance:7.0e} {count:9d} {best * 1e3:10.2f} ms {count / best:9.3g}/s "
                f"error {error:.1e} first call {first:.1f} s",
                flush=True,
            )


def main() -> None:
    folder, quick = Path(sys.argv[1]), "--quick" in sys.argv
    measurement = Measurement(folder)
    begin = time.perf_counter()
    measurement.compile_all()
    print(f"nvcc, all variants: {time.perf_counter() - begin:.1f} s", flush=True)
    measurement.check()
    measurement.compare_variants(10**5 if quick else 10**6)
    if "seven-body" in measurement.cases:
        measurement.several_quantities(10**5 if quick else 10**6)
    measurement.sizes(SIZES[:2] if quick else SIZES)
    measurement.single(10**6)
    for tolerance in (1e-5, 2e-7) if "pendulum" in measurement.cases else ():  # the second for the error above
        jax_pendulum(measurement.cases["pendulum"], SIZES[:2] if quick else SIZES, tolerance)
    out = os.environ.get("OUT")
    if out:
        Path(out, "gpu.json").write_text(json.dumps(measurement.results, indent=1))


if __name__ == "__main__":
    main()
