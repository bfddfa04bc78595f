"""Problems reduced to ordinary differential equations, for solvers that know nothing of constraints.

`Equations` are y' = f(t, y, p) in the form that each package likes best. Here they come from Daedal: its graph of M, f
and g has the accelerations as straight-line code, the elimination of the multipliers included, which no user of those
packages has. What users derive themselves is in :mod:`benchmarks.by_hand`. The text is in the operations that Python,
Numba, JAX and CasADi share.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import daedal
from benchmarks.tracing import WRITTEN, writer
from daedal.symbolic.graph import evaluate
from daedal.symbolic.mechanism_dynamics import Mechanism

WORDS = ("sin", "cos", "sqrt")
# For Numba: no checks of divisors; sums and products in the order that is quickest.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"arcp", "contract", "nsz", "reassoc"}}


class Equations(ABC):
    """y' = f(t, y, p) for several packages."""

    @abstractmethod
    def compiled(self) -> Callable[..., None]:
        """A function (t, y, slope, p) through Numba, which writes to ``slope``."""

    @abstractmethod
    def in_jax(self) -> Callable[..., Any]:
        """A function (t, y, p) on arrays of JAX."""

    @abstractmethod
    def in_casadi(self) -> Callable[..., Any]:
        """A function (t, y, p) on symbols of CasADi."""


def words_of(module: Any) -> dict[str, Any]:
    """Sine, cosine and root of a package."""
    return {word: getattr(module, word) for word in WORDS}


@dataclass(frozen=True)
class Rate(Equations):
    """Equations as text: intermediate results by name, and every component."""

    local: tuple[tuple[str, str], ...]
    components: tuple[str, ...]

    def function(self, head: str, last: str, names: Mapping[str, Any]) -> Callable[..., Any]:
        """The function with this head and these last lines, where these names are known."""
        lines = [f"def {head}:", *(f"{name} = {text}" for name, text in self.local), last]
        scope = dict(names)
        exec(compile("\n    ".join(lines) + "\n", "<rate>", "exec"), scope)
        return scope["rate"]

    def listed(self, call: str, names: Mapping[str, Any]) -> Callable[..., Any]:
        """A function (t, y, p) that returns ``call`` of all components."""
        return self.function("rate(t, y, p)", f"return {call}([{', '.join(self.components)}])", names)

    def compiled(self) -> Callable[..., None]:
        import numba

        lines = "\n    ".join(f"slope[{i}] = {text}" for i, text in enumerate(self.components))
        return numba.njit(**OPTIONS)(self.function("rate(t, y, slope, p)", lines, words_of(math)))

    def in_jax(self) -> Callable[..., Any]:
        from jax import numpy as jnp

        return self.listed("stack", {"stack": jnp.stack, **words_of(jnp)})

    def in_casadi(self) -> Callable[..., Any]:
        import casadi

        return self.listed("join", {"join": lambda parts: casadi.vertcat(*parts), **words_of(casadi)})


@cache
def rate_of(name: str) -> Rate:
    """A problem of the library: Robertson's reaction, or a mechanism with q' = v and its accelerations."""
    if name == "robertson":
        local = (("first", "p[0] * y[0]"), ("second", "p[1] * y[1] * y[2]"), ("third", "p[2] * y[1] * y[1]"))
        return Rate(local, ("second - first", "first - second - third", "third"))
    system = daedal.library.get(name).problem
    n = system.n_q
    mechanism = Mechanism(
        system.mass,
        system.force,
        system.constraint,
        n_q=n,
        n_constraints=system.n_constraints,
        params=system.params,
    )
    named: dict[str, str] = {}
    arguments = {
        "t": ["t"],
        "q": [f"y[{i}]" for i in range(n)],
        "v": [f"y[{n + i}]" for i in range(n)],
        "p": [f"p[{i}]" for i in range(len(system.params))],
    }
    operations = {operation: writer(template, named) for operation, template in WRITTEN.items()}
    nodes = mechanism.accelerations.solutions[0][:n]
    accelerations = evaluate(mechanism.graph, nodes, arguments, operations)
    local = tuple((key, text) for text, key in named.items())
    return Rate(local, (*arguments["v"], *(str(text) for text in accelerations)))
