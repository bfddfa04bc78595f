"""How values and verdicts are written, on the terminal and on the page."""

import math

from daedal.reproduce.reproduction import Cell
from daedal.reproduce.verdict import BAND, DOUBTFUL, FAILED, OBSERVED, OPEN, REPRODUCED

SYMBOLS = {REPRODUCED: "✓", BAND: "≈", OBSERVED: "∼", FAILED: "✗", DOUBTFUL: "?", OPEN: "○"}
MEANINGS = {
    REPRODUCED: "the computed value has the printed digits",
    BAND: "within a band around the print whose basis is stated: digits, machine, algorithm",
    OBSERVED: "within a band that was set after looking at the computed value",
    FAILED: "the computed value is another one, for the reason given",
    DOUBTFUL: "the print contradicts its own document or is illegible, by the argument given",
    OPEN: "not computed, for the reason given",
}


def written(cell: Cell) -> str:
    """The computed value, in the notation of the print with two more digits.

    Examples
    --------
    >>> like(".26e+79", 2.5818e78), like("2.6E-3", 2.6123e-3), like("43", 40.0), like("0", 2.5e-16)
    ('.2582e+79', '2.612E-3', '40', '2.5e-16')
    """
    if cell.computed is None:
        return "–"
    return cell.computed if isinstance(cell.computed, str) else like(cell.printed, cell.computed)


def like(printed: str, value: float) -> str:
    """A number in the notation of a printed one."""
    if not math.isfinite(value):
        return str(value).replace("inf", "∞")
    mantissa, letter, exponent = printed.partition("e") if "e" in printed else printed.partition("E")
    scaled = value / 10.0 ** int(exponent) if exponent else value
    if "." not in mantissa and not exponent and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    if not 1e-3 <= abs(scaled) < 1e4 or "/" in printed or "∞" in printed:
        return f"{value:.4g}"
    decimals = min(len(mantissa.partition(".")[2]) + 2, 16)
    text = f"{scaled:.{decimals}f}"
    if mantissa.lstrip("-").startswith("."):
        text = text.replace("0.", ".", 1)
    return text + letter + exponent
