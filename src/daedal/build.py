"""Build the kernels: ``python -m daedal.build``.

Without options, the units that default methods need are compiled for this processor and stored in the user's cache,
unless they are already there.
"""

from __future__ import annotations

import argparse
import sys
import time

DEFAULT = (
    *("kernels.calls", "kernels.dense", "kernels.interpolation", "kernels.intervals", "kernels.linear"),
    *("kernels.patterns", "events.isolation"),
    *("methods.advance", "methods.evaluation", "methods.one_step", "methods.step_size"),
    *(
        "methods.bdf.dassl_step",
        "methods.implicit_rk.stages",
        "methods.implicit_rk.radau_step",
        "methods.rosenbrock.rosenbrock_step",
    ),
    *("methods.half_explicit.half_explicit_step", "methods.explicit.runge_kutta_step"),
    *("mechanics.augmented", "mechanics.differences", "mechanics.evaluation", "mechanics.inspection"),
    *("mechanics.manifold", "mechanics.readiness"),
    *(
        "mechanics.formulations.monitor",
        "mechanics.formulations.residuals",
        "mechanics.formulations.newton_matrices",
    ),
    "index.reduction.step_hooks",
    *("multibody.closure", "multibody.kinematics", "multibody.closed_loops", "multibody.dynamics"),
    *("ensembles.batch_kernel", "ensembles.first_order_kernel", "ensembles.lane_kernel"),
    "ensembles.mechanism_kernel",
)
"""Units needed by default methods: Rosenbrock, Radau IIA and DASSL for index 1; explicit and half-explicit methods with
projection, and GGL, for mechanisms; higher index; events; machines; ensembles."""


def main(arguments: list[str] | None = None) -> int:
    """Build the selected units; returns the exit status."""
    from daedal.kernels.building import KernelBuildError, build, missing
    from daedal.kernels.levels import known_levels, level_of_unit, shipped_levels
    from daedal.kernels.units import all_units

    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.level or options.host) and not options.into:
        parser.error("--level and --host require --into")
    if options.level and options.level not in known_levels():
        parser.error(f"--level {options.level} is unknown; known: {', '.join(known_levels())}")
    if options.units and (options.all or options.into):
        parser.error("units cannot be named with --all or --into")
    every = all_units()
    if options.all or options.into:
        chosen = list(every)
    elif options.units:
        chosen = [unit if unit.startswith("daedal.") else f"daedal.{unit}" for unit in options.units]
        unknown = [unit for unit in chosen if unit not in every]
        if unknown:
            print(f"unknown unit {unknown[0]}; `python -m daedal.build --list` lists the units", file=sys.stderr)
            return 2
    else:
        chosen = [f"daedal.{unit}" for unit in DEFAULT]
    if options.list:
        absent = set(missing(every))
        print("\n".join(f"{unit}{'' if unit in absent else '  (built)'}" for unit in every))
        return 0
    if not options.into and not options.again:
        chosen = missing(chosen)
    if not chosen:
        print("all requested kernels are built")
        return 0
    begun = time.perf_counter()
    from tqdm import tqdm

    def levels(unit: str) -> list[str]:
        if options.host:
            return [level_of_unit(unit)]
        return [options.level] if options.level else shipped_levels(unit)

    try:
        with tqdm(total=len(chosen), unit="unit", desc="compiling kernels", disable=options.quiet) as bar:

            def tell(unit: str, seconds: float):
                bar.set_postfix_str(f"{unit.removeprefix('daedal.')} {seconds:.1f} s")
                bar.update()
                if options.verbose:
                    bar.write(f"{unit.removeprefix('daedal.'):44}{seconds:6.1f} s")

            wanted = levels if options.into else None
            build(chosen, levels=wanted, into=options.into, jobs=options.jobs, again=options.again, tell=tell)
    except KernelBuildError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(chosen)} unit{'s' * (len(chosen) != 1)} in {time.perf_counter() - begun:.0f} s")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m daedal.build", description=__doc__.splitlines()[0])
    parser.add_argument("units", nargs="*", help="units to build; by default those that default methods need")
    parser.add_argument("--all", action="store_true", help="all units")
    parser.add_argument("--list", action="store_true", help="list the units, and which of them are compiled")
    parser.add_argument("--again", action="store_true", help="recompile and replace existing units")
    parser.add_argument("--into", metavar="FOLDER", help="write all units, for all levels, to a folder, as in a wheel")
    parser.add_argument("--level", help="with --into, only this level: x86-64, x86-64-v3 or x86-64-v4")
    parser.add_argument("--host", action="store_true", help="with --into, only the level of this machine")
    parser.add_argument("--jobs", type=int, help="number of parallel processes; by default the number of cores")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.add_argument("--verbose", action="store_true", help="one line for each unit, with its time")
    return parser


if __name__ == "__main__":
    sys.exit(main())
