"""The same equations in the languages of CasADi and DiffSL, for the solvers that take no residual.

Both want the semi-explicit form ``x' = f(t, x, z), 0 = g(t, x, z)``. A statement here is written once, as text in the
few operations both languages share, and translated to either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Statement:
    """A semi-explicit DAE as text.

    Parameters
    ----------
    states, algebraic : dict
        Name and start of every differential and algebraic variable.
    odes, constraints : tuple of str
        Right-hand sides, in the order of ``states``, and residuals, in the order of ``algebraic``.
    constants, local : dict
        Numbers and intermediate expressions the equations refer to.
    restore : callable
        The unknowns of the benchmark's residual from the vector ``(states, algebraic)``.
    """

    states: dict[str, float]
    algebraic: dict[str, float]
    odes: tuple[str, ...]
    constraints: tuple[str, ...]
    constants: dict[str, float]
    local: dict[str, str]
    restore: Callable[[Array], Array] = lambda x: x

    def casadi(self) -> tuple[dict[str, Any], list[float], list[float]]:
        """The dictionary ``casadi.integrator`` takes, and the starts of its ``x`` and ``z``."""
        import casadi

        scope: dict[str, Any] = {name: casadi.SX.sym(name) for name in (*self.states, *self.algebraic, "t")}
        functions = {"sin": casadi.sin, "cos": casadi.cos, "exp": casadi.exp, "sqrt": casadi.sqrt}
        names = {**scope, **self.constants, **functions}
        for name, text in self.local.items():
            names[name] = eval(text, {"__builtins__": {}}, names)
        system = {
            "t": scope["t"],
            "x": casadi.vertcat(*(scope[name] for name in self.states)),
            "z": casadi.vertcat(*(scope[name] for name in self.algebraic)),
            "ode": casadi.vertcat(*(eval(text, {"__builtins__": {}}, names) for text in self.odes)),
            "alg": casadi.vertcat(*(eval(text, {"__builtins__": {}}, names) for text in self.constraints)),
        }
        return system, list(self.states.values()), list(self.algebraic.values())

    def diffsl(self) -> str:
        """The model in DiffSL."""
        lines = [f"{name} {{ {value!r} }}" for name, value in self.constants.items()]
        unknowns = {**self.states, **self.algebraic}
        lines.append("u_i { " + ", ".join(f"{name} = {float(value)!r}" for name, value in unknowns.items()) + " }")
        lines.append("dudt_i { " + ", ".join(f"d{name}dt = 0" for name in unknowns) + " }")
        lines.extend(f"{name} {{ {text} }}" for name, text in self.local.items())
        lines.append("M_i { " + ", ".join([f"d{name}dt" for name in self.states] + ["0"] * len(self.algebraic)) + " }")
        lines.append("F_i { " + ", ".join((*self.odes, *self.constraints)) + " }")
        return "\n".join(lines)


def robertson() -> Statement:
    return Statement(
        states={"x": 1.0, "y": 0.0},
        algebraic={"z": 0.0},
        odes=("-k1*x + k2*y*z", "k1*x - k2*y*z - k3*y*y"),
        constraints=("x + y + z - 1.0",),
        constants={"k1": 0.04, "k2": 1e4, "k3": 3e7},
        local={},
    )


def transistor() -> Statement:
    """The charges of the coupling capacitors as states: d1 = y1 - y2, d2 = y4 - y5, d3 = y7 - y8."""

    def restore(x: Array) -> Array:
        d1, y3, d2, y6, d3, y1, y4, y7 = x
        return np.array([y1, y1 - d1, y3, y4, y4 - d2, y6, y7, y7 - d3])

    return Statement(
        states={"d1": -3.0, "y3": 3.0, "d2": 3.0, "y6": 3.0, "d3": 6.0},
        algebraic={"y1": 0.0, "y4": 6.0, "y7": 6.0},
        odes=("-f1/1e-6", "-f3/2e-6", "-f4/3e-6", "-f6/4e-6", "-f7/5e-6"),
        constraints=("f1 + f2", "f4 + f5", "f7 + f8"),
        constants={"ub": 6.0, "uf": 0.026, "alpha": 0.99, "beta": 1e-6, "r0": 1000.0, "r": 9000.0},
        local={
            "y2": "y1 - d1",
            "y5": "y4 - d2",
            "y8": "y7 - d3",
            "ue": "0.1*sin(628.31853071795865*t)",
            "g23": "beta*(exp((y2 - y3)/uf) - 1.0)",
            "g56": "beta*(exp((y5 - y6)/uf) - 1.0)",
            "f1": "(y1 - ue)/r0",
            "f2": "-ub/r + y2*2.0/r - (alpha - 1.0)*g23",
            "f3": "y3/r - g23",
            "f4": "(y4 - ub)/r + alpha*g23",
            "f5": "-ub/r + y5*2.0/r - (alpha - 1.0)*g56",
            "f6": "y6/r - g56",
            "f7": "(y7 - ub)/r + alpha*g56",
            "f8": "y8/r",
        },
        restore=restore,
    )


def _pendulum(constraint: str) -> Statement:
    return Statement(
        states={"x": 1.0, "y": 0.0, "vx": 0.0, "vy": 1.0},
        algebraic={"lam": 1.0},
        odes=("vx", "vy", "-x*lam", "1.0 - y*lam"),
        constraints=(constraint,),
        constants={},
        local={},
    )


def pendulum_ggl() -> Statement:
    return Statement(
        states={"x": 1.0, "y": 0.0, "vx": 0.0, "vy": 1.0},
        algebraic={"lam": 1.0, "mu": 0.0},
        odes=("vx + x*mu", "vy + y*mu", "-x*lam", "1.0 - y*lam"),
        constraints=("x*vx + y*vy", "x*x + y*y - 1.0"),
        constants={},
        local={},
    )


def akzo() -> Statement:
    return Statement(
        states={"a": 0.444, "b": 0.00123, "c": 0.0, "d": 0.007, "e": 0.0},
        algebraic={"f": 115.83 * 0.444 * 0.007},
        odes=(
            "-2.0*r1 + r2 - r3 - r4",
            "-0.5*r1 - r4 - 0.5*r5 + inflow",
            "r1 - r2 + r3",
            "-r2 + r3 - 2.0*r4",
            "r2 - r3 + r5",
        ),
        constraints=("ks*a*d - f",),
        constants={"k1": 18.7, "k2": 0.58, "k3": 0.09, "k4": 0.42, "kk": 34.4, "kla": 3.3, "ks": 115.83},
        local={
            "r1": "k1*a*a*a*a*sqrt(b)",
            "r2": "k2*c*d",
            "r3": "k2/kk*a*e",
            "r4": "k3*a*d*d",
            "r5": "k4*f*f*sqrt(b)",
            "inflow": "kla*(0.9/737.0 - b)",
        },
    )


def tppc() -> Statement:
    """The index-1 form; the constants are those of ``daedal.library.control``."""
    from daedal.library import control

    earth = dict(zip(("ae", "mug", "om", "rho", "hs"), control.EARTH, strict=True))
    vehicle = dict(zip(("mass", "area", "c0", "c1", "d0", "d1"), control.VEHICLE2, strict=True))
    degree = control.DEGREE
    return Statement(
        states={"h": 100000.0, "xi": 0.0, "lat": 0.0, "v": 12000.0, "gam": -degree, "az": 45.0 * degree},
        algebraic=dict(zip(("att", "bank"), control.CONTROLS2, strict=True)),
        odes=(
            "v*sin(gam)",
            "v*cos(gam)*sin(az)/(rad*cos(lat))",
            "v/rad*cos(gam)*cos(az)",
            "-drag - gg*sin(gam) - spin*(sin(lat)*cos(az)*cos(gam) - cos(lat)*sin(gam))",
            "dgam",
            "daz",
        ),
        constraints=("dgam + 0.06*(t/300.0)*deg", "daz - 0.6*(t/300.0)*deg"),
        constants={**earth, **vehicle, "deg": degree},
        local={
            "rad": "h + ae",
            "gg": "mug/(rad*rad)",
            "spin": "om*om*rad*cos(lat)",
            "press": "0.5*rho*exp(-h/hs)*v*v*area/mass",
            "cl": "c0 + c1*att",
            "lift": "press*cl",
            "drag": "press*(d0 + d1*cl*cl)",
            "dgam": "lift*cos(bank)/v + cos(gam)/v*(v*v/rad - gg) + 2.0*om*cos(lat)*sin(az)"
            " + spin/v*(sin(lat)*cos(az)*sin(gam) + cos(lat)*cos(gam))",
            "daz": "lift*sin(bank)/(v*cos(gam)) + v/rad*cos(gam)*sin(az)*sin(lat)/cos(lat)"
            " - 2.0*om*(cos(lat)*cos(az)*sin(gam)/cos(gam) - sin(lat)) + spin*sin(lat)*sin(az)/(v*cos(gam))",
        },
    )


def _mechanism(name: str) -> Statement:
    from benchmarks.tracing import statement

    return statement(name)


STATEMENTS: dict[str, Callable[[], Statement]] = {
    "robertson": robertson,
    "transistor": transistor,
    "akzo": akzo,
    "tppc": tppc,
    "pendulum-index1": lambda: _pendulum("vx*vx + vy*vy - lam + y"),
    "pendulum-index2": lambda: _pendulum("x*vx + y*vy"),
    "pendulum-ggl": pendulum_ggl,
    "planar-pendulum": lambda: _mechanism("planar_pendulum"),
    "double-pendulum": lambda: _mechanism("double_pendulum"),
    "crank-slider": lambda: _mechanism("crank_slider"),
    "car-axis": lambda: _mechanism("car_axis"),
    "seven-body": lambda: _mechanism("seven_body"),
}
