"""Numbers as netlists write them: ``1k``, ``10uF``, ``2.2meg``."""

import re

from daedal.errors import InvalidProblemError

EXPONENTS = {"t": 12, "g": 9, "meg": 6, "k": 3, "m": -3, "u": -6, "µ": -6, "n": -9, "p": -12, "f": -15}
MIL = 25.4e-6  # metres

_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:e([+-]?\d+))?([a-zµ]*)", re.ASCII | re.IGNORECASE)


def quantity(text: str) -> float:
    """The value of a number with a suffix; letters behind the suffix are a unit and mean nothing, as in SPICE.

    A suffix and a power of ten are put together before the number is rounded, so that ``10u`` is 1e-5 to the last bit.

    Examples
    --------
    >>> quantity("4.7k"), quantity("10uF"), quantity("2Meg"), quantity("5V")
    (4700.0, 1e-05, 2000000.0, 5.0)
    """
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise InvalidProblemError(f"{text!r} is no number; write numbers like 100, 1e3, 4.7k, 10u, 2meg")
    mantissa, exponent, letters = found[1], int(found[2] or 0), found[3].lower()
    if letters.startswith("mil"):
        return float(f"{mantissa}e{exponent}") * MIL
    suffix = "meg" if letters.startswith("meg") else letters[:1]
    value = float(f"{mantissa}e{exponent + EXPONENTS.get(suffix, 0)}")
    if value in (float("inf"), -float("inf")):
        raise InvalidProblemError(f"{text!r} is larger than any number of the machine")
    return value


def in_engineering(value: float, unit: str = "") -> str:
    """A value with four digits and a suffix.

    Examples
    --------
    >>> in_engineering(0.0047, "A"), in_engineering(-12.0, "V"), in_engineering(0.0)
    ('4.7 mA', '-12 V', '0')
    """
    size = abs(value)
    for suffix, exponent in EXPONENTS.items():
        if suffix not in ("µ", "m") and exponent > 0 and size >= 10.0**exponent:
            return f"{value / 10.0**exponent:.4g} {suffix}{unit}"
    for suffix, exponent in (("", 0), ("m", -3), ("u", -6), ("n", -9), ("p", -12)):
        if size >= 10.0**exponent:
            return f"{value / 10.0**exponent:.4g} {suffix}{unit}".rstrip()
    return f"{value:.4g} {unit}".rstrip()
