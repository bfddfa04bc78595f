"""Ten problems with an installed Daedal: nothing is compiled, Numba is not needed, and the answers are right.

Run it in an environment that has only the wheel and what it depends on.
"""

import contextlib
import importlib.util
import io
import sys

import numpy as np

import daedal


def pendulum():
    return daedal.MechanicalSystem(
        mass=2.0,
        force=lambda t, q, v: [0.0, -2.0 * 9.81],
        constraint=lambda t, q: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)],
        n_q=2,
        n_constraints=1,
        names=["x", "y"],
    )


def readme_pendulum():
    sol = daedal.solve(pendulum(), (0, 10), ([1.0, 0.0], [0.0, 0.0]))
    return abs(np.hypot(*sol.q).max() - 1.0) < 1e-14


def readme_residual():
    def residual(t, y, yp):
        return [yp[0] + y[0] - y[1], y[0] + y[1] - np.cos(t)]

    sol = daedal.solve_dae(residual, (0, 10), y0=[1.0, 0.0], yp0=None)
    return sol.success and abs(sol.y.sum(axis=0) - np.cos(sol.t)).max() < 1e-9


def library(name, **options):
    model = daedal.library.get(name)
    sol = daedal.solve(model.problem, model.t_span, model.initial, **{**model.options, **options})
    values = model.reference.y if hasattr(model.reference, "y") else model.reference.values
    found = sol.y[: len(values), -1] if hasattr(sol, "y") else sol.q[: len(values), -1]
    return np.allclose(found, values, rtol=1e-2, atol=1e-4 * np.max(np.abs(values)))


def ensemble():
    starts = [([np.cos(a), np.sin(a)], [0.0, 0.0]) for a in np.linspace(0.0, 1.0, 20)]
    many = daedal.solve_many(pendulum(), (0.0, 1.0), starts)
    alone = daedal.solve(pendulum(), (0.0, 1.0), starts[3]).q[:, -1]
    return not np.any(many.failed) and np.array_equal(many.final.q[3], alone)


def hybrid():
    model = daedal.library.get("bouncing_ball")
    return daedal.solve(model.problem, (0.0, 1.0), model.initial).success


def machine():
    from daedal.multibody import Body, Model, Revolute, ground

    crank, coupler = Body.rod("crank", length=1.0, mass=1.0), Body.rod("coupler", length=3.0, mass=1.0)
    rocker = Body.rod("rocker", length=2.0, mass=1.0)
    four_bar = Model(
        Revolute("A", ground, crank.start),
        Revolute("B", crank.end, coupler.start),
        Revolute("C", rocker.end, coupler.end),
        Revolute("D", ground.at(3.0, 0.0), rocker.start),
        gravity=(0.0, -9.81),
        planar=True,
    )
    sol = daedal.solve(four_bar.system(), (0.0, 0.5), four_bar.assemble(A=0.7))
    return sol.success and sol.drift["position"] < 1e-12


PROBLEMS = {
    "pendulum of the README": readme_pendulum,
    "residual of the README": readme_residual,
    "Robertson": lambda: library("robertson"),
    "Robertson by Radau": lambda: library("robertson", method="radau"),
    "transistor amplifier by DASSL": lambda: library("transistor_amplifier", method="dassl"),
    "seven bodies": lambda: library("seven_body"),
    "seven bodies by HEM5": lambda: library("seven_body", method="hem5"),
    "ensemble": ensemble,
    "hybrid model": hybrid,
    "machine with a loop": machine,
}


def main():
    """Solve all of them; the exit status is 0 if all are right and silent."""
    if importlib.util.find_spec("numba") is not None:
        sys.exit("Numba is installed: this shows nothing about an environment without it")
    wrong = []
    for name, run in PROBLEMS.items():
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            right = bool(run())
        compiled = "compiling" in said.getvalue()
        print(f"{name:32}{'right' if right else 'WRONG'}{', compiled a kernel' if compiled else ''}")
        if compiled or not right:
            wrong.append(name)
    sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
