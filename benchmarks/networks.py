"""``python -m benchmarks.networks``: processor time and steps against unknowns, for gas networks and circuits."""

from __future__ import annotations

import argparse
import time

from benchmarks.worker import limit_threads


def gas(stations: int) -> tuple[int, object]:
    """A day of a gas network."""
    import daedal

    model = daedal.library.gas_network(stations=stations)
    options = {"t_eval": [model.t_span[1]], "dense_output": False, **model.options}
    return model.problem.n, daedal.solve(model.problem, model.t_span, model.initial, **options)


def ladder(nodes: int) -> tuple[int, object]:
    """Two periods of a source at the end of a ladder of resistors, capacitors and diodes."""
    from daedal import circuits

    links = "".join(f"R{k} n{k} n{k + 1} 10\nC{k} n{k + 1} 0 10n\nD{k} n{k + 1} 0 M\n" for k in range(nodes))
    circuit = circuits.parse("V1 n0 0 SIN(0 1 1k)\n" + links + ".model M d(is=1n n=1.8)")
    sol = circuit.solve((0.0, 2e-3), rtol=1e-4, t_eval=[2e-3], dense_output=False)
    return len(sol.names), sol


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description=__doc__)
    parser.add_argument("--stations", nargs="*", type=int, default=[2, 12, 48, 200, 430])
    parser.add_argument("--nodes", nargs="*", type=int, default=[10, 100, 1000, 10_000])
    options = parser.parse_args()
    limit_threads()
    print("| problem | unknowns | steps | seconds |\n|---|---|---|---|")
    for name, run, sizes in (("gas network", gas, options.stations), ("ladder", ladder, options.nodes)):
        for size in sizes:
            begin = time.process_time()
            n, sol = run(size)
            print(f"| {name} | {n} | {sol.stats.steps} | {time.process_time() - begin:.1f} |", flush=True)


if __name__ == "__main__":
    main()
