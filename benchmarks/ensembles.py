"""Runs a second of ensembles: ``python -m benchmarks.ensembles [--quick] [problem ...]``; part of `make bench`.

``python -m benchmarks.ensembles --threads [2 4 ...]`` shows what threads gain, without what a start costs.

One problem with many values of its parameters: Daedal, from the index-3 statement of mechanisms, on one thread, on two,
and on two processes of a pool or of a Dask cluster that wait for work; beside other packages on the same two cores
(:mod:`benchmarks.ensemble_peers`), which get mechanisms reduced to ordinary differential equations: by hand from the
same statement, and once more by the code that Daedal has derived from it, which no user of theirs has.

Rates are those at equal error: tolerances are tightened until the error is small enough, and the time is interpolated
(log-log) between that run and the one before. The error is the largest at the end of the interval, of members from the
whole range of parameters, against runs with rtol = 1e-11 or a closed solution: of reactions beside the largest value of
each component, of mechanisms beside the largest position and the largest velocity. All programs take turns, in
alternating order, and the shortest times count; each call has as many members as fill a part of a second.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import inf, nan
from multiprocessing import get_context
from typing import Any, Protocol

import numpy as np

import daedal
from benchmarks.ensemble_peers import BY_HAND, FROM_GRAPH, STICK_SLIP, WORKERS, Peer, Setting
from benchmarks.results import keep
from benchmarks.worker import limit_threads

PLACES = ("1 thread", "2 threads", "2 processes", "Dask, 2 workers")
HEADS = (
    "runs a second",
    "error",
    *PLACES,
    *(peer.label for peer in BY_HAND),
    "Daedal's best / best peer by hand",
    "Daedal's best / best peer with Daedal's code",
)
GENERATED_HEADS = ("runs a second", *(peer.label for peer in FROM_GRAPH))
RTOLS = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7, 3e-8, 1e-8, 3e-9, 1e-9, 3e-10, 1e-10)
_JUDGED = 16  # members whose error is looked at
_MOST_MEMBERS = 200_000


@dataclass(frozen=True)
class Case:
    """A problem of the library with parameters that vary, and the error at which rates are compared."""

    name: str
    params: Callable[[Any, np.ndarray], Any]  # of the model and numbers between 0.9 and 1.1
    at: float = 1e-5
    few: int = 0  # members where a run takes long: of those that are judged, and of the shortest call

    @property
    def model(self) -> Any:
        return daedal.library.get(self.name)

    def rows(self, members: int) -> np.ndarray:
        """The parameters of all members (N, m)."""
        return self.params(self.model, np.linspace(0.9, 1.1, members))

    @property
    def is_mechanism(self) -> bool:
        """Whether peers need it reduced to an ordinary differential equation."""
        return self.name not in ("robertson", STICK_SLIP)

    @property
    def setting(self) -> Setting:
        """What the peers are told."""
        start = self.model.initial
        if self.name == STICK_SLIP:
            return Setting(self.name, np.array([start[1][0][0], 0.0]), self.model.t_span)
        return Setting(self.name, start[0] if self.name == "robertson" else np.concatenate(start), self.model.t_span)


def _weights(model: Any, factors: np.ndarray) -> np.ndarray:
    """Other weights; the lengths stay, so that the start is consistent."""
    rows = np.tile(np.asarray(model.problem.params, dtype=float), (factors.size, 1))
    rows[:, -2:] *= factors[:, None]
    return rows


def _rates(model: Any, factors: np.ndarray) -> np.ndarray:
    return np.asarray(model.problem.params) * np.column_stack([factors, factors[::-1], np.ones(factors.size)])


CASES = (
    Case("planar_pendulum", lambda m, f: np.column_stack([np.ones(f.size), f]) * m.problem.params),
    Case("double_pendulum", _weights),
    Case("crank_slider", _weights),
    Case("seven_body", lambda m, f: 0.033 * f[:, None]),
    Case("robertson", _rates),
    Case(STICK_SLIP, lambda m, f: 0.3 * f[:, None], few=4),
)


class Program(Protocol):
    """Daedal in one of its places, or a peer."""

    @property
    def least(self) -> int:
        """Members of the shortest call that is timed."""

    def prepare(self, rtol: float) -> None:
        """What is done once for a tolerance, before it is timed."""

    def solve(self, params: np.ndarray, rtol: float) -> np.ndarray:
        """Final states (N, n) for parameters (N, m)."""


@dataclass(frozen=True)
class Daedal:
    """`solve_many` in one place."""

    case: Case
    on: Any
    workers: int
    least: int = 64

    def prepare(self, rtol: float) -> None:
        """Nothing: a solver is prepared in every call."""

    def solve(self, params: np.ndarray, rtol: float) -> np.ndarray:
        model, where = self.case.model, {"on": self.on, "workers": self.workers}
        atol = model.options["atol"] if self.case.name == "robertson" else rtol
        options = {"rtol": rtol, "atol": atol, **where}
        if self.case.is_mechanism:
            options["method"] = "dop853"  # of order 8, as those of the peers are
        if self.case.name == STICK_SLIP:
            varied = {"mu": params[:, 0]}  # from one start for all; of the library, it depends on mu
            return daedal.solve_many(model.problem, model.t_span, model.initial, params=varied, **options).final.y
        start = model.initial
        if self.case.name == "robertson":
            slopes = np.column_stack([-params[:, 0], params[:, 0], np.zeros(len(params))])
            start = start[0], slopes
        return daedal.solve_many(model.problem, model.t_span, start, params=params, **options).final.y


# --- errors -----------------------------------------------------------------------------------------------------------


def reference(case: Case, rows: np.ndarray) -> np.ndarray:
    """Final states that are right to nine digits or more."""
    if case.name == STICK_SLIP:
        from benchmarks.stick_slip import exact_end

        return np.array([exact_end(*case.setting.t_span, case.setting.start, row) for row in rows])
    return Daedal(case, "threads", 1).solve(rows, 1e-11)


def error(case: Case, values: np.ndarray, right: np.ndarray) -> float:
    """The largest error; infinite where a run has failed."""
    errors, sizes = np.abs(values - right), np.abs(right).max(axis=0)
    if case.name != "robertson":
        half = right.shape[1] // 2
        sizes = np.repeat([sizes[:half].max(), sizes[half:].max()], half)
    return float(np.max(np.where(np.isfinite(errors), errors / sizes, inf)))


@dataclass
class Rung:
    """A tolerance, the error that it gives, and the shortest time of a member so far."""

    rtol: float
    error: float
    members: int = 0
    seconds: float = inf


def bracket(case: Case, program: Program, rows: np.ndarray, right: np.ndarray) -> list[Rung]:
    """The first tolerance with an error that is small enough, and the one before."""
    found: list[Rung] = []
    for rtol in RTOLS:
        try:
            found.append(Rung(rtol, error(case, program.solve(rows, rtol), right)))
        except RuntimeError:  # of CasADi, where a member has failed
            found.append(Rung(rtol, inf))
        if found[-1].error <= case.at:
            return [rung for rung in found[-2:] if np.isfinite(rung.error)]
    return []


def seconds_at(at: float, rungs: Sequence[Rung]) -> float:
    """Seconds of a member at an error, between two runs on logarithmic scales; nan where it was not reached."""
    if not rungs:
        return nan
    line = np.log(sorted((rung.error, rung.seconds) for rung in rungs))
    return float(np.exp(np.interp(np.log(at), line[:, 0], line[:, 1])))


# --- times ------------------------------------------------------------------------------------------------------------


def timed(case: Case, program: Program, rung: Rung, fill: float) -> None:
    """One more run; the first finds out how many members take `fill` seconds."""
    if not rung.members:
        program.prepare(rung.rtol)
        rung.members = case.few or program.least
        while (spent := _spent(program, case.rows(rung.members), rung.rtol)) < fill and rung.members < _MOST_MEMBERS:
            rung.members = min(int(min(max(1.3 * fill / spent, 2.0), 16.0) * rung.members), _MOST_MEMBERS)
    else:
        spent = _spent(program, case.rows(rung.members), rung.rtol)
    rung.seconds = min(rung.seconds, spent / rung.members)


def _spent(program: Program, rows: np.ndarray, rtol: float) -> float:
    began = time.perf_counter()
    program.solve(rows, rtol)
    return time.perf_counter() - began


def measured(case: Case, programs: dict[Any, Program], fill: float, rounds: int) -> dict[Any, float]:
    """Runs a second of every program at the error of the case; nan where it does not get there."""
    rows = case.rows(case.few or _JUDGED)
    right = reference(case, rows)
    ladders: dict[Any, list[Rung]] = {}
    for name, program in programs.items():
        same = next((ladders[p] for p in ladders if isinstance(program, Daedal)), None)
        # Daedal gives the same bits everywhere.
        ladders[name] = bracket(case, program, rows, right) if same is None else [Rung(r.rtol, r.error) for r in same]
    for turn in range(rounds):
        order = list(programs) if turn % 2 == 0 else list(programs)[::-1]
        for name in order:
            for rung in ladders[name]:
                timed(case, programs[name], rung, fill)
    return {name: 1.0 / seconds_at(case.at, rungs) for name, rungs in ladders.items()}


@dataclass(frozen=True)
class Row:
    """What was measured of one problem: two lines for two tables."""

    by_hand: list[str]
    generated: list[str]

    @property
    def tables(self) -> dict[str, list[list[str]]]:
        """The lines by the names of their tables; only mechanisms are in the second."""
        is_mechanism = any(cell != "-" for cell in self.generated[1:])
        return {"ensembles": [self.by_hand], "ensembles_generated": [self.generated] if is_mechanism else []}


def row_of(case: Case, places: dict[str, tuple[Any, int]], fill: float, rounds: int) -> Row:
    """Measure one problem."""
    own: dict[Any, Program] = {name: Daedal(case, *place) for name, place in places.items()}
    by_hand, generated = _peers(case, BY_HAND, False), _peers(case, FROM_GRAPH, True) if case.is_mechanism else {}
    try:
        rates = measured(case, own | by_hand | generated, fill, rounds)
    finally:
        for peer in (by_hand | generated).values():
            peer.close()
    ours, theirs, with_code = (_best(rates, group) for group in (own, by_hand, generated))
    ratios = [_text(ours / theirs), _text(ours / with_code) if generated else "-"]
    cells = [_text(rates.get(key)) for key in (*PLACES, *_keys(BY_HAND, False))]
    others = [_text(rates.get(key)) for key in _keys(FROM_GRAPH, True)]
    return Row([case.name, f"{case.at:.0e}", *cells, *ratios], [case.name, *others])


def _keys(peers: Sequence[type[Peer]], from_graph: bool) -> list[tuple[str, bool]]:
    return [(peer.label, from_graph) for peer in peers]


def _peers(case: Case, peers: Sequence[type[Peer]], from_graph: bool) -> dict[Any, Peer]:
    """Those peers that are installed and can state the problem."""
    setting = replace(case.setting, from_graph=from_graph)
    able = [peer for peer in peers if peer.is_installed() and peer.can_state(case.name)]
    return {key: peer(setting) for key, peer in zip(_keys(able, from_graph), able)}


def _best(rates: dict[Any, float], group: Iterable[Any]) -> float:
    return max((rates[key] for key in group if rates[key] == rates[key]), default=nan)


def _text(value: float | None) -> str:
    """A number; a line where there is none, and nothing where a program did not get to the error."""
    if value is None:
        return "-"
    return "" if value != value else f"{value:.3g}" if value < 100.0 else f"{value:.0f}"


def tables(
    quick: bool = False, names: Sequence[str] = (), rounds: int = 0, say: Callable[[Row], None] = lambda row: None
) -> dict[str, list[list[str]]]:
    """The tables under `HEADS` and `GENERATED_HEADS` by their names; rows are told as they come."""
    fill, rounds = 0.2 if quick else 1.0, rounds or (2 if quick else 4)
    found: dict[str, list[list[str]]] = {"ensembles": [], "ensembles_generated": []}
    with ExitStack() as stack:
        pool = stack.enter_context(ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")))
        places: dict[str, tuple[Any, int]] = {"1 thread": ("threads", 1), "2 threads": ("threads", WORKERS)}
        places["2 processes"] = (pool, WORKERS)
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            pass
        else:
            cluster = LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None)
            places["Dask, 2 workers"] = (stack.enter_context(Client(stack.enter_context(cluster))), WORKERS)
        for case in CASES:
            if not names or case.name in names:
                row = row_of(case, places, fill, rounds)
                say(row)
                for table, lines in row.tables.items():
                    found[table] += lines
    return found


def rate_of_threads(case: Case, workers: int, each: int, repeats: int = 4) -> float:
    """Runs a second on threads, with `each` members for every one of them, so that all take equally long."""
    program, params = Daedal(case, "threads", workers), case.rows(each * workers)
    return each * workers / min(_seconds(program, params) for _ in range(repeats))


def _seconds(program: Daedal, params: np.ndarray) -> float:
    start = time.perf_counter()
    program.solve(params, 1e-5)
    return time.perf_counter() - start


def show_threads(workers: list[int]) -> None:
    """How many times as many runs a second threads give as one thread; the machine should have nothing else to do.

    Every thread has work for about a second, beside which a start does not count.
    """
    for case in CASES:
        alone = Daedal(case, "threads", 1)
        _seconds(alone, case.rows(2))
        each = round(1000 / _seconds(alone, case.rows(1000)))
        one, *more = [rate_of_threads(case, count, each) for count in (1, *workers)]
        gains = "".join(f"   {count} threads: {rate / one:.2f} times" for count, rate in zip(workers, more))
        print(f"{case.name:>18}   1 thread: {one:.4g} runs/s{gains}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ensembles", description=__doc__)
    parser.add_argument("problems", nargs="*", help=f"of {', '.join(case.name for case in CASES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="shorter calls, two rounds")
    parser.add_argument("--rounds", type=int, default=0, help="turns of every program; 2 with --quick, else 4")
    parser.add_argument("--save", action="store_true", help="keep the tables for `python -m benchmarks.page`")
    parser.add_argument("--threads", nargs="*", type=int, help="what so many threads gain, and nothing else")
    options = parser.parse_args()
    if unknown := set(options.problems) - {case.name for case in CASES}:
        parser.error(f"no problem is called {', '.join(sorted(unknown))}; there are {', '.join(c.name for c in CASES)}")
    limit_threads()
    if options.threads is not None:
        show_threads(options.threads or [2])
        return
    began = time.perf_counter()

    def say(row: Row) -> None:
        print(f"{row.by_hand[0]}, at an error of {row.by_hand[1]}, after {time.perf_counter() - began:.0f} s")
        heads = [*HEADS[2:], *(f"{head}, with Daedal's code" for head in GENERATED_HEADS[1:])]
        for head, cell in zip(heads, row.by_hand[2:] + row.generated[1:]):
            print(f"{cell:>12}  {head}", flush=True)
        if options.save:
            keep(**row.tables)

    tables(options.quick, options.problems, options.rounds, say)


if __name__ == "__main__":
    main()
