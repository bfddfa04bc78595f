"""The three tiers of the suite: which tests belong to each, and in which order they run.

========== ============================================================ ==========================
tier       what it is for                                               what it has
========== ============================================================ ==========================
``quick``  while one works: public functions, methods and formulations      one short case of each test
``test``   decides whether a change may land                            all that is not ``soak``
``soak``   what takes an hour: all pages made twice, all compilations   only what is ``soak``
========== ============================================================ ==========================

``durations.json`` has what tests took that are not short, measured on one core; ``pytest --write-durations`` of a whole
run writes it anew. It may be out of date: then tests are in another order, and a few of ``quick`` take longer.
"""

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

TIERS = ("quick", "test", "soak")
DURATIONS = Path(__file__).parent / "durations.json"
SHORT = 0.35
"""Seconds that a test of the quick tier may take."""


def sampled(cases: Iterable, chosen: Iterable | int, marks=()) -> list:
    """Parameters of which those not chosen run in the soak tier alone: every so-manieth is, or those that are named."""
    values = list(cases)
    members = values[::chosen] if isinstance(chosen, int) else list(chosen)
    assert members and all(member in values for member in members), "a chosen case is none of the cases"
    rest = (*(marks if isinstance(marks, Sequence) else (marks,)), pytest.mark.soak)
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks if value in members else rest)
        for value in values
    ]


def known_durations() -> dict[str, float]:
    """Seconds by the name of the test, of those that are not short."""
    return json.loads(DURATIONS.read_text(encoding="utf-8"))


def write_durations(seconds: dict[str, float]) -> None:
    long = {name: round(took, 1) for name, took in sorted(seconds.items()) if took > SHORT}
    DURATIONS.write_text(json.dumps(long, indent=0) + "\n", encoding="utf-8")


def quick(items: Sequence[pytest.Item], durations: dict[str, float]) -> list[pytest.Item]:
    """Of each test function the first case that is neither slow nor long; all cases of what is marked ``quick``."""
    seen, chosen = set(), []
    for item in items:
        function = item.nodeid.partition("[")[0]
        if item.get_closest_marker("quick") is None:
            if function in seen or item.nodeid in durations or not _is_decided_by("test", item):
                continue
            if item.get_closest_marker("slow") is not None:
                continue
            seen.add(function)
        chosen.append(item)
    return chosen


def of_tier(tier: str, items: Sequence[pytest.Item], durations: dict[str, float]) -> list[pytest.Item]:
    """The tests of a tier, in the order in which they are collected."""
    if tier == "quick":
        return quick(items, durations)
    return [item for item in items if _is_decided_by(tier, item)]


def _is_decided_by(tier: str, item: pytest.Item) -> bool:
    return (item.get_closest_marker("soak") is not None) == (tier == "soak")


def longest_files_first(items: Sequence[pytest.Item], durations: dict[str, float]) -> list[pytest.Item]:
    """Files in the order of their longest test, so that no worker begins one when the others have ended."""
    longest: dict[Path, float] = {}
    for item in items:
        longest[item.path] = max(longest.get(item.path, 0.0), durations.get(item.nodeid, 0.0))
    return sorted(items, key=lambda item: -longest[item.path])


def shuffled(items: Sequence[pytest.Item], seed: int) -> list[pytest.Item]:
    """Tests in random order, the same in all processes of a run."""
    return random.Random(seed).sample(list(items), len(items))
