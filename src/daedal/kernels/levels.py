"""Processor levels for object code; for x86-64 the baseline, v3 (AVX2, FMA) and v4 (AVX-512)."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import llvmlite.binding as llvm

_NEEDS = {
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64": (),
}
WIDE = frozenset({"daedal.ensembles.lane_kernel"})
"""Units that process eight numbers at a time and benefit from v4; the others run at the same speed with v3."""


@cache
def initialise():
    """Initialise LLVM for this machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def triple() -> str:
    """Processor, system and binary interface, as LLVM names them."""
    return llvm.get_process_triple()


@cache
def host_levels() -> tuple[str, ...]:
    """The levels that run on this machine, best first; ``DAEDAL_LEVEL`` limits them to a lower one."""
    if not triple().startswith("x86_64"):
        return ("generic",)
    features = llvm.get_host_cpu_features()
    found = [level for level, needs in _NEEDS.items() if all(features.get(name) for name in needs)]
    wanted = os.environ.get("DAEDAL_LEVEL")
    if wanted and wanted not in found:
        raise ImportError(f"DAEDAL_LEVEL={wanted!r} is not a level of this processor; available: {', '.join(found)}")
    return tuple(found[found.index(wanted) :]) if wanted else tuple(found)


def levels_of_unit(unit: str) -> tuple[str, ...]:
    """The levels whose code is tried on this machine, best first."""
    return tuple(level for level in host_levels() if level != "x86-64-v4" or unit in WIDE)


def level_of_unit(unit: str) -> str:
    """The level for which a unit is compiled on this machine."""
    return levels_of_unit(unit)[0]


def known_levels() -> tuple[str, ...]:
    """The levels of this platform."""
    return tuple(_NEEDS) if triple().startswith("x86_64") else ("generic",)


def shipped_levels(unit: str) -> list[str]:
    """The levels of a unit in a wheel for this platform."""
    return [level for level in known_levels() if level != "x86-64-v4" or unit in WIDE]


def machine_for(level: str) -> Any:
    """LLVM's target machine for a level, optimised for speed."""
    if level not in known_levels():  # LLVM would terminate the process
        raise ValueError(f"the level {level!r} is unknown; known: {', '.join(known_levels())}")
    initialise()
    cpu = "" if level == "generic" else level
    return llvm.Target.from_triple(triple()).create_target_machine(cpu=cpu, opt=3, jit=True)
