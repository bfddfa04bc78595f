"""``python -m benchmarks.fields``: processor time against unknowns for the cavity, until its flow is steady."""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.worker import limit_threads


def measure(cells: int, reynolds: float, t1: float) -> str:
    """One row of the table."""
    import daedal

    model = daedal.library.cavity(cells=cells, reynolds=reynolds, t1=t1)
    begin = time.process_time()
    sol = daedal.solve(model.problem, model.t_span, model.initial, t_eval=[t1], **model.options)
    seconds = time.process_time() - begin
    grid, end = model.extra["grid"], sol.y[:, -1]
    (y, u), (x, v) = grid.centre_lines(end)
    differences = [
        np.abs(np.interp(places, *line) - values).max()
        for line, (places, values) in zip(((y, u), (x, v)), model.extra["published"].values())
    ]
    divergence = np.abs(grid.divergence @ end[: model.problem.n_y]).max()
    columns = [f"{cells} × {cells}", model.problem.n, sol.stats.steps, sol.stats.factorisations, f"{seconds:.1f}"]
    columns += [f"{grid.stream_function(end).min():.5f}", f"{divergence:.0e}", *(f"{d:.4f}" for d in differences)]
    return "| " + " | ".join(map(str, columns)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fields", description=__doc__)
    parser.add_argument("cells", nargs="*", type=int, default=[16, 32, 64], help="even numbers (default 16 32 64)")
    parser.add_argument("--reynolds", type=float, default=100.0, help="100 (default), 400 or 1000")
    parser.add_argument("--until", type=float, default=30.0, help="end time (default 30)")
    options = parser.parse_args()
    limit_threads()
    heads = ("cells", "unknowns", "steps", "factorisations", "seconds", "stream function", "divergence", "u", "v")
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for cells in options.cells:
        print(measure(cells, options.reynolds, options.until), flush=True)


if __name__ == "__main__":
    main()
