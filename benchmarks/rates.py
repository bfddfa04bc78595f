"""Problems reduced to ordinary differential equations, as text for solvers that know nothing of constraints.

Daedal's graph of M, f and g has the accelerations as straight-line code, the elimination of the multipliers included:
what a user of such a solver would have to derive by hand, in the best form that it can have. The text is in the
operations that Python, Numba, JAX and CasADi share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import daedal
from benchmarks.tracing import WRITTEN, writer
from daedal.symbolic.evaluate import evaluate
from daedal.symbolic.mechanism import Mechanism


@dataclass(frozen=True)
class Rate:
    """y' = f(t, y, p): intermediate results by name, and the text of every component."""

    local: tuple[tuple[str, str], ...]
    components: tuple[str, ...]

    def source(self, last: str) -> str:
        """A function ``rate(t, y, p)``, or ``rate(t, y, slope, p)`` if its last lines write to ``slope``."""
        head = "def rate(t, y, slope, p):" if "slope[" in last else "def rate(t, y, p):"
        return "\n    ".join([head, *(f"{name} = {text}" for name, text in self.local), last]) + "\n"

    def function(self, last: str, names: Mapping[str, Any]) -> Callable[..., Any]:
        """The source with its last line, executed where these names are known."""
        scope = dict(names)
        exec(compile(self.source(last), "<rate>", "exec"), scope)
        return scope["rate"]

    @property
    def listed(self) -> str:
        """All components, with commas between them."""
        return ", ".join(self.components)


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


@cache
def numba_rate(name: str) -> Callable[..., np.ndarray]:
    """The right-hand side as an array, compiled."""
    import numba

    rate = rate_of(name)
    names = {"np": np, **{word: getattr(math, word) for word in ("sin", "cos", "sqrt")}}
    return numba.njit(rate.function(f"return np.array([{rate.listed}])", names))
