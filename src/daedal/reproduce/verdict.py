"""Whether a computed value is the printed one: to its digits, within a band, or not.

A printed value is reproduced if the computed one rounds to it. Where the source leaves something open (another
machine, tolerances that are not stated), the data file gives a band. Where the print itself is doubtful, it gives the
reason. The value of an independent computation, where the data file has one beside the print, must be met as well.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

REPRODUCED, BAND, DOUBTFUL, FAILED, OPEN = VERDICTS = (
    "reproduced",
    "within band",
    "doubtful print",
    "not reproduced",
    "open",
)

_SLACK = 1.0 + 1e-6  # for the rounding of half a unit itself


def number(text: str) -> float:
    """The value of a printed number; fractions and ∞ are allowed.

    Examples
    --------
    >>> number(".26e+79"), number("-1/4"), number("∞")
    (2.6e+78, -0.25, inf)
    """
    if "/" in text:
        return float(Fraction(text))
    return float(text.replace("∞", "inf"))


def unit(text: str) -> float:
    """One unit of the last printed digit; 0 for fractions, which are exact.

    Examples
    --------
    >>> unit("2.6E-3"), unit("13"), unit("1/3")
    (0.0001, 1.0, 0.0)
    """
    if "/" in text or "∞" in text:
        return 0.0
    mantissa, _, exponent = text.lower().partition("e")
    return float(f"1e{int(exponent or 0) - len(mantissa.partition('.')[2])}")


def has_printed_digits(text: str, computed: float, truncated: bool = False) -> bool:
    """Whether `computed` rounds to the printed number, or is cut off to it.

    Examples
    --------
    >>> has_printed_digits(".49e-2", 4.9652e-3), has_printed_digits(".49e-2", 4.9652e-3, truncated=True)
    (False, True)
    """
    printed, last = number(text), unit(text)
    if printed == 0.0 or math.isinf(printed):
        return computed == printed
    if last == 0.0:
        return abs(computed - printed) <= 1e-13 * max(1.0, abs(printed))
    if truncated:
        return 0.0 <= (abs(computed) - abs(printed)) * _SLACK <= last * _SLACK and computed * printed > 0.0
    return abs(computed - printed) <= 0.5 * last * _SLACK


def meets(independent: str, computed: float) -> bool:
    """Whether `computed` is what an independent computation gives with five digits.

    Very large and very small errors have passed through cancellation or growth and are known with a digit less.

    Examples
    --------
    >>> meets("1.7614e-03", 1.76145e-3), meets("1.7614e-03", 1.7624e-3), meets("3.1982e+149", 3.2e149)
    (True, False, True)
    """
    value = number(independent)
    return math.isclose(computed, value, rel_tol=1e-4 if 1e-7 < abs(value) < 1e3 else 1e-3)


def in_band(band: Mapping[str, Any], text: str, computed: float) -> bool:
    """Whether `computed` is in a band around the printed number.

    A band is one of ``relative``, ``absolute`` (distance), ``factor`` (ratio of the sizes), ``at_most`` (that many
    times as large, or smaller), ``below``, ``above`` (sizes), ``range`` (two values).

    Examples
    --------
    >>> in_band({"relative": 0.35}, "43", 40), in_band({"above": 1e3}, ".93e+74", 2e80)
    (True, True)
    """
    printed, size = number(text), abs(computed)
    ((kind, value),) = band.items()
    if kind == "range":
        return value[0] <= computed <= value[1]
    return {
        "relative": lambda: abs(computed - printed) <= value * abs(printed),
        "absolute": lambda: abs(computed - printed) <= value,
        "factor": lambda: abs(printed) / value <= size <= value * abs(printed),
        "at_most": lambda: size <= value * abs(printed),
        "below": lambda: size <= value,
        "above": lambda: size >= value,
    }[kind]()


def describe(band: Mapping[str, Any]) -> str:
    """A band in words.

    Examples
    --------
    >>> describe({"relative": 0.35}), describe({"factor": 10})
    ('within 35 %', 'within a factor of 10')
    """
    ((kind, value),) = band.items()
    if kind == "range":
        return f"between {value[0]:g} and {value[1]:g}"
    return {
        "relative": f"within {100 * value:g} %",
        "absolute": f"within {value:g}",
        "factor": f"within a factor of {value:g}",
        "at_most": "not larger than printed" if value == 1 else f"at most {value:g} times the printed value",
        "below": f"below {value:g}",
        "above": f"above {value:g}",
    }[kind]


def judge(entry: Mapping[str, Any], computed: float | str | None) -> tuple[str, str]:
    """The verdict on a cell, with its reason.

    Parameters
    ----------
    entry : dict
        The cell of the data file: ``printed`` and, where they apply, ``tag``, ``band``, ``reason``, ``recomputed``,
        ``truncated``.
    computed : float, str or None
        What Daedal computes; None where it computes nothing, a text where the print is one.

    Returns
    -------
    verdict, reason : str

    Examples
    --------
    >>> judge({"printed": "2.6E-3"}, 2.61e-3)
    ('reproduced', '')
    >>> judge({"printed": ".81e-2", "tag": "doubtful", "reason": "digits exchanged", "recomputed": "1.76e-3"}, 1.76e-3)
    ('doubtful print', 'digits exchanged')
    """
    reason, printed = entry.get("reason", ""), entry["printed"]
    if entry.get("tag") == OPEN or computed is None:
        return (DOUBTFUL if entry.get("tag") == "doubtful" else OPEN), reason
    if isinstance(computed, str):
        same = computed == printed
        return (REPRODUCED, "") if same else (DOUBTFUL if entry.get("tag") == "doubtful" else FAILED, reason)
    independent, band = entry.get("recomputed"), entry.get("band")
    if independent is not None and not meets(independent, computed):
        return FAILED, f"not {independent}, which an independent computation gives"
    if has_printed_digits(printed, computed):
        return REPRODUCED, ""
    if entry.get("truncated") and has_printed_digits(printed, computed, truncated=True):
        return REPRODUCED, "printed cut off, not rounded"
    if entry.get("tag") == "doubtful" and (band is None or in_band(band, printed, computed)):
        return DOUBTFUL, reason
    if band is not None and math.isfinite(computed) and in_band(band, printed, computed):
        return BAND, f"{describe(band)}: {reason}" if reason else describe(band)
    return FAILED, f"not {describe(band)}" if band is not None else f"not {printed} to its digits"
