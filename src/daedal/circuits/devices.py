"""Semiconductors: parameters of their models with default values, currents and charges."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

BOLTZMANN, ELEMENTARY_CHARGE = 1.380649e-23, 1.602176634e-19  # J/K, C
THERMAL_VOLTAGE = BOLTZMANN * 300.15 / ELEMENTARY_CHARGE  # at 27 degrees Celsius

DIODE = {"is": 1e-14, "n": 1.0, "vt": THERMAL_VOLTAGE, "cjo": 0.0, "vj": 1.0, "m": 0.5, "fc": 0.5, "tt": 0.0}
TRANSISTOR = {
    "is": 1e-16, "bf": 100.0, "br": 1.0, "vt": THERMAL_VOLTAGE, "ies": None, "ics": None, "af": None, "ar": None,
    "cje": 0.0, "vje": 0.75, "mje": 0.33, "cjc": 0.0, "vjc": 0.75, "mjc": 0.33, "fc": 0.5, "tf": 0.0, "tr": 0.0,
}  # fmt: skip
"""Of the transport model ``is``, ``bf``, ``br``; or of Ebers and Moll ``ies``, ``ics``, ``af``, ``ar``, which follow
from these where they are not given."""

Value = Callable[[str], Any]


def junction(v: Any, saturation: Any, voltage: Any) -> Any:
    """Shockley's equation ``I_S (exp(v / V) - 1)``."""
    return saturation * (np.exp(v / voltage) - 1.0)


def depletion_charge(v: Any, capacitance: Any, built_in: Any, grading: Any, forward: Any) -> Any:
    r"""The charge of a junction, whose capacitance is :math:`C_0 (1 - v/V_j)^{-m}` up to :math:`v = f V_j`.

    Beyond it the capacitance goes on along its tangent, as in SPICE, so that the charge has two derivatives.
    """
    edge = forward * built_in
    slope = (1.0 - forward) ** (-1.0 - grading)
    inner = np.where(v < edge, v, edge)
    below = capacitance * built_in / (1.0 - grading) * (1.0 - (1.0 - inner / built_in) ** (1.0 - grading))
    s = np.where(v < edge, 0.0, v - edge)
    straight = (1.0 - forward) ** -grading
    return below + capacitance * (straight * s + 0.5 * grading / built_in * slope * s * s)


def ebers_moll(be: Any, bc: Any, value: Value) -> tuple[Any, Any]:
    r"""The currents from base to emitter and from base to collector of an npn transistor (Ebers and Moll 1954).

    .. math::

        i_{BE} = I_F - \alpha_R I_R, \quad i_{BC} = I_R - \alpha_F I_F, \qquad
        I_F = I_{ES} (e^{v_{BE}/V_T} - 1), \quad I_R = I_{CS} (e^{v_{BC}/V_T} - 1)
    """
    forward, backward = junction(be, value("ies"), value("vt")), junction(bc, value("ics"), value("vt"))
    return forward - value("ar") * backward, backward - value("af") * forward


def complete_transistor(given: Mapping[str, float | None]) -> dict[str, float | None]:
    """With the parameters of Ebers and Moll, from those of the transport model: alpha I = I_S for both junctions."""
    found = dict(given)
    for alpha, beta, saturation in (("af", "bf", "ies"), ("ar", "br", "ics")):
        gain, scale = found.pop(beta), found["is"]
        assert gain is not None and scale is not None
        known = found[alpha]
        found[alpha] = known = gain / (1.0 + gain) if known is None else known
        if found[saturation] is None:
            found[saturation] = scale / known
    del found["is"]
    return found


def used_parameters(given: Mapping[str, float | None]) -> dict[str, float]:
    """Without charges that are zero and what describes them: they do not occur in the equations."""
    unused = [name for name in _CHARGES if name in given and not given[name]]
    unused += [name for charge in unused for name in _CHARGES[charge]]
    if not any(given.get(charge) for charge in ("cjo", "cje", "cjc")):
        unused.append("fc")
    return {name: float(value) for name, value in given.items() if name not in unused and value is not None}


_CHARGES: Mapping[str, tuple[str, ...]] = {
    "cjo": ("vj", "m"), "cje": ("vje", "mje"), "cjc": ("vjc", "mjc"), "tt": (), "tf": (), "tr": ()
}  # fmt: skip
