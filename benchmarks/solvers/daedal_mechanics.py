"""Daedal on mechanisms in their index-3 statement, plain functions M, f and g: its own choice, and other ways."""

from __future__ import annotations

from typing import Any, ClassVar

from benchmarks.solvers.daedal import Daedal


class DaedalAuto(Daedal):
    name = "daedal-auto"
    label = "Daedal auto"
    family = "Runge-Kutta"
    form = "as it is"
    formulation: ClassVar[str] = "auto"
    method: ClassVar[str] = "auto"

    def __init__(self, case: Any, counting: bool = False) -> None:
        self.case = case

    def stated(self) -> tuple[Any, Any, dict[str, Any]]:
        mechanism = self.case.mechanism
        options = {"formulation": self.formulation, "method": self.method}
        return mechanism.statement(), mechanism.model(False).initial, options


class DaedalAutoNumba(DaedalAuto):
    name = "daedal-auto-numba"
    label = "Daedal auto, Numba functions"
    callbacks = "compiled"


class DaedalProjection(DaedalAuto):
    name = "daedal-dopri5"
    label = "Daedal DOPRI5 with projection"
    marker = "d"
    formulation = "projection"
    method = "dopri5"


class DaedalHalfExplicit(DaedalAuto):
    name = "daedal-phem56"
    label = "Daedal PHEM56"
    marker = "h"
    method = "phem56"


class DaedalGGL(DaedalAuto):
    name = "daedal-ggl"
    label = "Daedal GGL with DASSL"
    family = "BDF"
    formulation = "ggl"
    method = "dassl"


class DaedalInvariants(DaedalGGL):
    name = "daedal-invariants"
    label = "Daedal projected invariants with DASSL"
    marker = "X"
    formulation = "projected_invariants"


class DaedalModifiedBDF(DaedalAuto):
    name = "daedal-modified-bdf"
    label = "Daedal modified BDF"
    family = "BDF"
    marker = "P"
    method = "modified_bdf"


class DaedalCollocation(DaedalAuto):
    name = "daedal-collocation"
    label = "Daedal collocation (Radau, 3 stages)"
    marker = "s"
    method = "collocation"
