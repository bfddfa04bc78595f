"""Short runs of every method and formulation, printed to the last bit: by ``test_kernels_interpreted``.

Kernels run interpreted if ``DAEDAL_KERNELS=python`` is set, with bounds checked by NumPy.
"""

import sys
import time
import warnings

import numpy as np

import daedal
from daedal import library

warnings.simplefilter("ignore")


def short(name, fraction=0.02, /, form=None, **options):
    """A library problem over the beginning of its interval."""
    model = library.get(name) if form is None else library.get(name, form=form)
    t0, t1 = model.t_span
    return model.problem, (t0, t0 + fraction * (t1 - t0)), model.initial, {**model.options, **options}


def linear(t, y, yp):
    return [yp[0] + y[0] - y[1], y[0] + y[1] - np.cos(t)]


def oscillator(t, y):
    return [y[1], -y[0]]


def index2(t, y, z):
    return [-y[0] + z[0], z[0] * y[1]]


ROD = daedal.MechanicalSystem(
    mass=lambda t, q: 2.0 * np.eye(2),
    force=lambda t, q, v: [0.0, -19.62],
    constraint=lambda t, q: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)],
    n_q=2,
    n_constraints=1,
)
START = [1.0, 0.0], [0.0, 0.0]
DAE = daedal.ImplicitDAE(linear, 2)
STRING = daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[0] - np.sin(2 * t)], 1)
BANDED = daedal.ImplicitDAE(
    lambda t, y, yp: yp + 2.0 * y - np.concatenate([y[1:], [0.0]]) - np.concatenate([[0.0], y[:-1]]),
    6,
    bandwidth=(1, 1),
)


def dae(method, **options):
    return DAE, (0.0, 0.3), ([1.0, 0.0], None), {"method": method, **options}


def rod(method="auto", formulation="auto", **options):
    return ROD, (0.0, 0.2), START, {"method": method, "formulation": formulation, **options}


RUNS = {
    **{f"dae {name}": dae(name) for name in ("auto", "dassl", "radau", "rosenbrock", "extrapolation")},
    "dae irk": dae(daedal.methods.ImplicitRungeKutta("gauss2")),
    "dae gmres": (
        BANDED,
        (0.0, 0.3),
        (np.ones(6), None),
        {"method": daedal.methods.DASSL(linear_solver=daedal.linear_solvers.GMRES())},
    ),
    "dae banded": (BANDED, (0.0, 0.3), (np.ones(6), None), {"method": "dassl"}),
    "dae banded radau": (BANDED, (0.0, 0.3), (np.ones(6), None), {"method": "radau"}),
    "dae untraced": dae("dassl", compile="never"),
    "dae events": dae("dassl", events=lambda t, y, yp: y[0] - 0.9),
    "dae radau events": dae("radau", events=lambda t, y, yp: y[0] - 0.9),
    "dae fixed": dae("dassl", fixed_step=0.05),
    "dae multistep": dae(daedal.methods.Multistep("bdf2"), fixed_step=0.05),
    **{
        f"rod {method}": rod(method)
        for method in ("auto", "dopri5", "dop853", "phem56", "hem4", "hem5", "hedop5", "mexx", "collocation")
    },
    "rod rattle": rod("rattle", fixed_step=0.02),
    "rod rk4": rod("rk4", fixed_step=0.02),
    "rod modified bdf": rod("modified_bdf"),
    **{
        f"rod {form}": rod("dassl", form)
        for form in (
            *("ggl", "baumgarte", "index1", "index2", "overdetermined", "fuehrer_leimkuhler", "minimal_extension"),
            *("state_space", "projected_invariants", "essential", "hanke", "knorrenschild", "loetstedt"),
        )
    },
    "rod radau": rod("radau", "ggl"),
    "rod untraced": rod("dopri5", compile="never"),
    "rod events": rod(events=lambda t, q, v: q[1] + 0.1),
    "rod sensitivities": (
        daedal.MechanicalSystem(
            lambda t, q, p: p[0] * np.eye(2),
            lambda t, q, v, p: [0.0, -9.81 * p[0]],
            lambda t, q, p: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)],
            n_q=2,
            n_constraints=1,
            params=[2.0],
        ),
        (0.0, 0.1),
        START,
        {"sensitivities": [0]},
    ),
    "string": (STRING, (0.0, 0.3), ([1.0], [0.0]), {}),
    "string collocation": (STRING, (0.0, 0.3), ([1.0], [0.0]), {"method": "collocation"}),
    "seven body": short("seven_body"),
    "seven body stiff": short("seven_body", 0.005, method="radau", formulation="ggl"),
    "transistor": short("transistor_amplifier", 0.01),
    "pendulum of index 3": short("pendulum", 0.02, form="index3"),
    "robertson": short("robertson", 1e-9),
    **{
        name: short(name, fraction)
        for name, fraction in {
            **{"bouncing_ball": 0.3, "stick_slip_block": 0.05, "sliding_ladder": 0.3, "truck": 0.01, "food_web": 1e-3},
            **{"fekete": 1e-5, "gas_network": 1e-4, "cavity": 1e-4, "hessenberg_index2": 0.1, "index3_chain": 0.1},
            **{"differentiator_cascade": 0.01, "wheelset": 1e-3, "violin_slip": 0.01, "heavy_top": 0.01},
            **{"rolling_disc": 0.01, "elastic_beam": 1e-4, "four_bars": 0.01},
        }.items()
    },
    "index 2 by HEM4": short("jay_index2", 0.1, method="hem4"),
    "machine by MEXX": short("four_bars", 0.01, method="mexx"),
    "ode": (daedal.ODE(oscillator, 2), (0.0, 0.5), [1.0, 0.0], {}),
    "ode rosenbrock": (daedal.ODE(oscillator, 2), (0.0, 0.5), [1.0, 0.0], {"method": "rosenbrock"}),
}


def many(problem, span, starts):
    """The end of an ensemble in the compiled loop."""
    final = daedal.solve_many(problem, span, starts, on="threads", workers=1).final
    return np.ravel(final.q if hasattr(final, "q") else final.y)


def stiff_members():
    model = library.get("robertson")
    return many(model.problem, (0.0, 1e-3), [model.initial] * 3)


def members_with_modes():
    problem, span, initial, _ = short("stick_slip_block")
    return many(problem, span, [initial] * 2)


def large_machine():
    """A chain in space that is too long to be traced: algorithms and a run."""
    from daedal.multibody import Body, Model, Revolute, aba, crba, ground, rnea

    bodies = [Body.rod(f"b{i}", length=0.3, mass=1.0, radius=0.02) for i in range(14)]
    joints = [Revolute("j0", ground, bodies[0].start, axis="x")]
    joints += [Revolute(f"j{i}", bodies[i - 1].end, bodies[i].start, axis="xyz"[i % 3]) for i in range(1, 14)]
    chain = Model(*joints, gravity=(0, -9.81, 0))
    layout, q, u = chain.layout(), np.linspace(0.1, 0.5, 14), np.linspace(-0.2, 0.3, 14)
    sol = daedal.solve(chain.system(), (0.0, 0.01), chain.assemble(**{f"j{i}": 0.1 * i for i in range(14)}))
    return np.concatenate([rnea(layout, q, u, u), crba(layout, q).ravel(), aba(layout, q, u, u), sol.q[:, -1]])


FURTHER = {
    "ensemble of mechanisms": lambda: many(
        ROD, (0.0, 0.1), [([np.cos(a), np.sin(a)], [0.0, 0.0]) for a in (0.0, 0.1, 0.2)]
    ),
    "ensemble of ODEs": lambda: many(
        daedal.ODE(lambda t, y, p: [y[1], -p[0] * y[0]], 2, params=[1.0]), (0.0, 0.5), [[1.0, 0.0], [0.5, 0.1]]
    ),
    "ensemble of stiff problems": stiff_members,
    "ensemble of models with modes": members_with_modes,
    "large machine": large_machine,
}


def last_bits(sol):
    values = sol.q if hasattr(sol, "q") else sol.x if hasattr(sol, "x") else sol.y
    return " ".join(float(x).hex() for x in [*values[:, -1], sol.t[-1]])


def main():
    chosen = sys.argv[1:] or RUNS
    for name in chosen:
        problem, span, initial, options = RUNS[name]
        begun = time.perf_counter()
        print(f"{name}: {last_bits(daedal.solve(problem, span, initial, **options))}", flush=True)
        print(f"{name} {time.perf_counter() - begun:.2f} s", file=sys.stderr)
    for name, run in FURTHER.items() if not sys.argv[1:] else ():
        print(f"{name}: {' '.join(float(x).hex() for x in run())}", flush=True)


if __name__ == "__main__":
    main()
