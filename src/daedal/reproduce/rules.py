"""What a cell of a data file must say, so that its verdict can be believed; the loader refuses others."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from daedal.reproduce.verdict import BASES, DOUBTFUL, FAILED, OPEN, ORIGINS, is_number, kind_of, limits, number

TAGS = (DOUBTFUL, FAILED, OPEN)
WIDEST = 10.0  # the largest ratio of sizes that a band may span to either side
_SLACK = 1.0 + 1e-12
_KEYS = {"printed", "tag", "origin", "band", "basis", "reason", "recomputed", "truncated", "missing"}
_BANDS = {"relative", "absolute", "units", "factor", "range"}


def broken_rules(entry: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a cell.

    Examples
    --------
    >>> list(broken_rules({"printed": "43", "band": {"relative": 0.35}}))
    ['a band without basis']
    >>> list(broken_rules({"printed": "0.5", "band": {"absolute": 1.0}, "basis": "observed: another code"}))
    ['a band that reaches zero, where the print gives a size']
    """
    if unknown := entry.keys() - _KEYS:
        yield f"unknown entries {sorted(unknown)}"
    if entry.get("origin", ORIGINS[0]) not in ORIGINS:
        yield f"unknown origin {entry['origin']!r}"
    yield from _broken_by_tag(entry)
    if "band" in entry:
        yield from _broken_by_band(entry)
    elif "basis" in entry:
        yield "a basis without band"


def _broken_by_tag(entry: Mapping[str, Any]) -> Iterator[str]:
    tag, reason = entry.get("tag"), entry.get("reason", "")
    if tag is None:
        if reason:
            yield "a reason without tag: a band has a basis"
        return
    if tag not in TAGS:
        yield f"unknown tag {tag!r}"
    if not reason or "unknown cause" in reason:
        yield f"{tag} without a reason"
    if tag == DOUBTFUL and "band" not in entry and "recomputed" not in entry:
        yield "a doubtful print without the value that should stand there"
    if tag == FAILED and "band" in entry:
        yield "not reproduced, and yet a band"


def _broken_by_band(entry: Mapping[str, Any]) -> Iterator[str]:
    band, basis = entry["band"], entry.get("basis", "")
    kind, _, detail = basis.partition(":")
    if not basis:
        yield "a band without basis"
    elif kind not in BASES:
        yield f"unknown basis {basis!r}"
    elif kind == "algorithm" and not detail.strip():
        yield "a band by algorithm that does not say what differs"
    if len(band) != 1 or not band.keys() <= _BANDS:
        yield f"unknown band {dict(band)}"
    elif not is_number(entry["printed"]) or math.isinf(number(entry["printed"])):
        yield "a band around what is no number"
    else:
        yield from _broken_by_limits(entry, *limits(band, entry["printed"]))


def _broken_by_limits(entry: Mapping[str, Any], low: float, high: float) -> Iterator[str]:
    """Both ends are finite, the print is inside, and a size has no band that reaches zero, but for
    round-off and for prints of a single digit."""
    size = number(entry["printed"])
    size = abs(size) if "factor" in entry["band"] else size
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        yield "a band without two ends"
        return
    doubtful = entry.get("tag") == DOUBTFUL
    if not doubtful and not low <= size <= high:
        yield "a band that does not hold the print"
    kind = kind_of(entry.get("basis", ""))
    by_units = kind == "printed digits" and "units" in entry["band"]
    if kind == "machine constants" or by_units or size == 0.0 or doubtful:
        return
    ratios = [abs(end / size) for end in (low, high)]
    if low * high <= 0.0:
        yield "a band that reaches zero, where the print gives a size"
    elif max(ratios) > WIDEST * _SLACK or min(ratios) * WIDEST * _SLACK < 1.0:
        yield f"a band wider than a factor of {WIDEST:g}"
