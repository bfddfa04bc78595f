"""How the name of a variable is set in a figure."""

import math
import re

GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
).split()
# A symbol as in a formula: one letter, perhaps with a number or, after an underscore, another subscript
_SYMBOL = re.compile(rf"({'|'.join(GREEK)}|[A-Za-z])(?:(\d+)|_([A-Za-z0-9]+))?")
_DEGREES_PER_RADIAN = 180.0 / math.pi


def label(name: str, factor: float = 1.0) -> str:
    """The name as Matplotlib text: symbols such as ``y1``, ``v_C2`` or ``lambda`` as in a formula, others as they are.

    A `factor` stands in front, except the one that turns radians into degrees, which becomes the unit.
    """
    match = _SYMBOL.fullmatch(name)
    if match is None:
        text = plain(name)
    else:
        letter, number, subscript = match.groups()
        symbol = "\\" + letter if letter in GREEK else letter
        index = f"_{{{number}}}" if number else rf"_{{\mathrm{{{subscript}}}}}" if subscript else ""
        text = f"${symbol}{index}$"
    if factor == 1.0:
        return text
    if math.isclose(factor, _DEGREES_PER_RADIAN, rel_tol=1e-12):
        return f"{text} [°]"
    return f"{_number(factor)} {text}"


def plain(name: str) -> str:
    """A name as it was given, as Matplotlib text. Dollars that are not those of a formula stand for themselves."""
    if "$" in name:
        from matplotlib.mathtext import MathTextParser

        try:
            MathTextParser("path").parse(name)
        except ValueError:
            name = name.replace("$", r"\$")
    return " " + name if name.startswith("_") else name  # Matplotlib leaves out what begins with an underscore


def _number(value: float) -> str:
    mantissa, _, exponent = f"{value:.6g}".partition("e")
    power = math.log10(value) if value > 0.0 else math.nan
    if power.is_integer() and abs(power) > 1.0:
        return f"$10^{{{int(power)}}}$"
    if not exponent:
        return mantissa
    return rf"${mantissa}\cdot 10^{{{int(exponent)}}}$"
