"""Verdicts on computed values: equal to the printed value in its digits, within a justified band, or neither.

A printed value is reproduced if the computed one rounds to it. If the source does not determine the value (another
machine, another version of a code), the data file contains a two-sided band and its basis. If the printed value is
doubtful, the data file contains the reason and the corrected value. If it contains the value of an independent
computation in addition to the printed one, both must agree.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

REPRODUCED, BAND, OBSERVED, FAILED, DOUBTFUL, OPEN = VERDICTS = (
    "reproduced",
    "within band",
    "observed band",
    "not reproduced",
    "doubtful print",
    "open",
)
PRINTED, DERIVED, INDEPENDENT = ORIGINS = ("printed", "derived", "independent")
SEEN_AFTERWARDS = "observed"  # basis of a band that was chosen after the value was computed
BASES = ("printed digits", "machine constants", "algorithm", SEEN_AFTERWARDS)

_SLACK = 1.0 + 1e-6  # tolerance for round-off in half a unit


def number(text: str) -> float:
    """Value of a printed number; fractions and ∞ are allowed.

    Examples
    --------
    >>> number(".26e+79"), number("-1/4"), number("∞")
    (2.6e+78, -0.25, inf)
    """
    if "/" in text:
        return float(Fraction(text))
    return float(text.replace("∞", "inf"))


def is_number(text: str) -> bool:
    """Whether a printed text is a number, not a word or formula.

    Examples
    --------
    >>> is_number("1/3"), is_number("crash")
    (True, False)
    """
    try:
        number(text)
    except ValueError:
        return False
    return True


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
    """Whether `computed` rounds or truncates to the printed number.

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
    """Whether `computed` agrees with an independent computation to a relative error of 1e-4.

    Very large and very small values result from growth or cancellation; for these the error may be 1e-3.

    Examples
    --------
    >>> meets("1.7614e-03", 1.76145e-3), meets("1.7614e-03", 1.7624e-3), meets("3.1982e+149", 3.2e149)
    (True, False, True)
    """
    value = number(independent)
    return math.isclose(computed, value, rel_tol=1e-4 if 1e-7 < abs(value) < 1e3 else 1e-3)


def limits(band: Mapping[str, Any], text: str) -> tuple[float, float]:
    """Both ends of a band around a printed number.

    A band is one of ``relative`` and ``absolute`` (deviation), ``units`` (of the last printed digit), ``factor`` (ratio
    of absolute values) and ``range`` (two values).

    Examples
    --------
    >>> limits({"factor": 2}, "-10"), limits({"units": 2}, "0.13")
    ((5.0, 20.0), (0.11, 0.15))
    """
    printed = number(text)
    ((kind, value),) = band.items()
    if kind == "range":
        return value[0], value[1]
    if kind == "factor":
        return abs(printed) / value, abs(printed) * value
    width = {"relative": abs(printed), "absolute": 1.0, "units": unit(text)}[kind] * value
    return printed - width, printed + width


def in_band(band: Mapping[str, Any], text: str, computed: float) -> bool:
    """Whether `computed` is in a band around the printed number; see :func:`limits`.

    Examples
    --------
    >>> in_band({"relative": 0.35}, "43", 40), in_band({"factor": 3}, "1e-3", -4e-3)
    (True, False)
    """
    low, high = limits(band, text)
    value = abs(computed) if "factor" in band else computed
    slack = 1e-12 * max(abs(low), abs(high))
    return low - slack <= value <= high + slack


def describe(band: Mapping[str, Any]) -> str:
    """Describe a band.

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
        "units": f"within {value:g} unit{'' if value == 1 else 's'} of the last digit",
        "factor": f"within a factor of {value:g}",
    }[kind]


def kind_of(basis: str) -> str:
    """Kind of a basis, without its explanation.

    Examples
    --------
    >>> kind_of("algorithm: another version of DASSL")
    'algorithm'
    """
    return basis.partition(":")[0]


def judge(entry: Mapping[str, Any], computed: float | str | None) -> tuple[str, str]:
    """Determine the verdict on a cell, with its reason.

    Parameters
    ----------
    entry : dict
        The cell of the data file: ``printed`` and, if applicable, ``tag``, ``band`` and ``basis``, ``reason``,
        ``recomputed``, ``truncated``.
    computed : float, str or None
        The computed value; None if nothing is computed, a text if the printed value is a text.

    Returns
    -------
    verdict, reason : str

    Examples
    --------
    >>> judge({"printed": "2.6E-3"}, 2.61e-3)
    ('reproduced', '')
    >>> judge({"printed": ".81e-2", "tag": "doubtful print", "reason": "exchanged", "recomputed": "1.8e-3"}, 1.8e-3)
    ('doubtful print', 'exchanged')
    """
    reason = entry.get("reason", "")
    if computed is None:
        return OPEN, reason
    if not _is_what_it_should_be(entry, computed):
        return FAILED, f"not {entry['recomputed']}, the result of an independent computation"
    if _is_printed(entry, computed):
        return REPRODUCED, "" if _is_printed(entry, computed, cut=False) else "printed value truncated, not rounded"
    band, basis, tag = entry.get("band"), entry.get("basis", ""), entry.get("tag")
    inside = band is not None and isinstance(computed, float | int) and in_band(band, entry["printed"], computed)
    if tag == DOUBTFUL and (inside or (band is None and "recomputed" in entry)):
        return DOUBTFUL, reason
    if tag is None and band is not None and inside:
        verdict = OBSERVED if kind_of(basis) == SEEN_AFTERWARDS else BAND
        return verdict, f"{describe(band)}: {basis}"
    if tag == FAILED:
        return FAILED, reason
    return FAILED, f"not {describe(band)}" if band is not None else f"differs from {entry['printed']} in its digits"


def _is_what_it_should_be(entry: Mapping[str, Any], computed: float | str) -> bool:
    """Whether the value agrees with an independent computation, if there is one."""
    expected = entry.get("recomputed")
    if expected is None:
        return True
    return computed == expected if isinstance(computed, str) else meets(expected, computed)


def _is_printed(entry: Mapping[str, Any], computed: float | str, cut: bool = True) -> bool:
    if isinstance(computed, str):
        return computed == entry["printed"]
    if not is_number(entry["printed"]):
        return False
    ways = (False, True) if cut and entry.get("truncated") else (False,)
    return any(has_printed_digits(entry["printed"], computed, truncated) for truncated in ways)
