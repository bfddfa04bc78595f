"""What follows from the conditioning of a problem, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from daedal.problem_conditioning.result import Conditioning

MODERATE = 1e3  # factors up to it are nothing to speak of
_SKEW = 1e2  # norm of P from which errors in the coefficients are worth a warning


def verdict(found: Conditioning) -> str:
    """The result in a line."""
    if found.index is None:
        never = np.all(np.isnan(found.formal_indices))
        return "the equations do not determine a solution" if never else "the kind of the problem changes on the way"
    effect = found.effective_index
    if effect is None:
        return f"index {found.index}, nearly singular"
    return f"index {found.index}" if effect == found.index else f"index {found.index}, in effect index {effect}"


def advice(found: Conditioning) -> list[str]:
    """Sentences, the most important one first."""
    if found.index is None:
        return [_no_index(found)]
    if found.index > 2:
        return [
            f"The constants are those of index 1 and 2, and the index is {found.index}: reduce it first, and look at "
            "the conditioning of the reduced problem."
        ]
    parts = [_unresolved(found), _nearly(found), _gain(found), _robust(found), _growth(found), _unclear(found)]
    parts.append(_varies(found))
    said = [text for text in parts if text]
    return said or ["All factors are moderate: the problem is well conditioned, and can be solved as it stands."]


def _no_index(found: Conditioning) -> str:
    kinds = found.formal_indices
    same = kinds == kinds[0] if np.isfinite(kinds[0]) else np.isnan(kinds)
    if not np.all(same):
        t = found.t[int(np.argmin(same))]
        return (
            f"The index is not the same everywhere: it changes near t = {t:.3g}. Bounds hold only between such points; "
            "look at the conditioning on each side of it."
        )
    if np.isfinite(kinds[0]):
        return (
            "The number of variables that the constraints determine without being differentiated changes on the way: "
            "the problem is singular at some point. Look at the conditioning of parts of the interval."
        )
    return (
        f"The equations do not determine {_names(found, None)}, however often the constraints are differentiated. "
        "Look for an equation that follows from the others."
    )


def _nearly(found: Conditioning) -> str:
    effect = found.effective_index
    if effect is None:
        return (
            f"Without numbers below {found.effective.threshold:g} the equations do not determine "
            f"{_names(found, None)}: the problem is nearly singular, and no derivative of the constraints helps. "
            "Factors grow like one divided by the small number, and small errors of the coefficients change the "
            "character of the solution (examples 4.11 and 5.12). Question the model."
        )
    if found.index is None or effect <= found.index:
        return ""
    names = _names(found, effect)
    if np.isinf(found["layer_k2_hat"]) if "layer_k2_hat" in found.constants else False:
        return (
            f"{names} behaves like a variable of index {effect}, but the solution runs away from that of the "
            f"index-{effect} problem, exponentially and fast: the initial layer is unstable. Check the signs in the "
            "constraint."
        )
    if effect == 2:
        return (
            f"Integrate it as index 2. Errors of the constraint that change from step to step, as those of Newton's "
            f"method do, reach {names} divided by the step size h, or multiplied by {found['layer_bare']:.2g} once h "
            f"is shorter than {found['layer_thickness']:.2g}; smooth errors only by their rate, times "
            f"{found['layer_k2_hat']:.2g}. {_remedy(found)} A start that does not satisfy the constraint without y "
            f"has an initial layer of length {found['layer_thickness']:.2g}."
        )
    return (
        f"{names} behaves like a variable of index {effect}: smooth errors of the constraint reach it by derivatives "
        f"of order {effect - 1}, errors that change from step to step divided by h^{effect - 1}. {_remedy(found)}"
    )


def _gain(found: Conditioning) -> str:
    if not found.has_long_layer:
        return ""
    return (
        "Some algebraic variables hardly occur in their constraints beside others, but the problem does not behave "
        "like one of the next index: it is a large gain, and the constraints determine them all the same. Small errors "
        "of the other variables are large ones in them."
    )


def _unresolved(found: Conditioning) -> str:
    if not found.unresolved:
        return ""
    return (
        f"The coefficients change too fast for the grid from t = {found.unresolved[0]:.3g} on, and the factors are "
        "uncertain. Look at a shorter interval, or give more `points`."
    )


def _remedy(found: Conditioning) -> str:
    scaling = "method='dassl', variable_index=found.variable_index scales the error test accordingly"
    if found.has_stabilised_reduction and found.effective_index == 2:
        return (
            "formulation='stabilised_reduction' takes such errors out of y, whatever h is (tables 6.1 to 6.3 of the "
            f"source); {scaling}."
        )
    return f"{scaling[0].upper()}{scaling[1:]}."


def _robust(found: Conditioning) -> str:
    if found.index != 2 or found["P"] <= _SKEW:
        return ""
    reach = min(found.perturbed(at=float(t)).reach for t in found.t)
    return (
        f"|P| = {found['P']:.2g}: the constraints are nearly parallel to the directions in which y enforces them. "
        f"Relative errors of {reach:.1g} in B or C can change growth into decay or back (Theorem 5.10); "
        "found.perturbed(dA=..., dB=..., dC=...) shows what given errors do."
    )


def _growth(found: Conditioning) -> str:
    names = {"x(0)": "the initial values", "p": "the differential equations", "q": "the constraints"}
    length = float(abs(found.t[-1] - found.t[0]))  # an error of p adds up over time anyway
    explained = found.effective_index is not None and found.index is not None and found.effective_index > found.index
    large = [
        (effect, source, found.factor(effect, source) / (length if source == "p" else 1.0))
        for effect, source in found.amplification
        if source in names and not (explained and (source == "q" or effect == "y"))
    ]
    effect, source, factor = max(large, key=lambda one: one[2], default=("", "", 0.0))
    if factor <= MODERATE:
        return ""
    size = "without bound" if np.isinf(factor) else f"by a factor of {factor:.2g}"
    return (
        f"Errors in {names[source]} grow {size} on their way to {effect}: ask for correspondingly smaller tolerances, "
        "and do not trust more digits of the result than the data have after that."
    )


def _unclear(found: Conditioning) -> str:
    if found.effective.clear:
        return ""
    near = next(level.decision for level in found.effective.levels if not level.decision.clear)
    values = ", ".join(f"{value:.1g}" for value in near.singular_values[near.lowest : near.highest])
    return (
        f"The effective index is a matter of opinion: {values} lies near the threshold {near.threshold:g}. Give "
        "another `threshold` to see both sides."
    )


def _varies(found: Conditioning) -> str:
    known = np.nan_to_num(found.indices, nan=-1.0)
    if np.all(known == known[0]):
        return ""
    t = found.t[int(np.argmax(known != known[0]))]
    return f"The effective index changes along the way, for the first time near t = {t:.3g}."


def _names(found: Conditioning, index: int | None) -> str:
    names = [name for name, own in found.variables.items() if own == index]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
