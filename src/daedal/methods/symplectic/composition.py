r"""Symmetric compositions of a symmetric method of order 2, which have higher orders.

A step is :math:`\Phi_{\gamma_s h} \circ \dots \circ \Phi_{\gamma_1 h}` with :math:`\gamma_i = \gamma_{s+1-i}`. It is
symmetric if the method is, and symplectic if the method is.

References
----------
E. Hairer, Ch. Lubich, G. Wanner: Geometric Numerical Integration, Springer 2006, sections II.4 (Suzuki's method of
order 4) and V.3.2 (orders 6 and 8, of Kahan and Li, Math. Comp. 66 (1997) 1089-1099).
"""

from __future__ import annotations

import numpy as np

_SUZUKI = 1.0 / (4.0 - 4.0 ** (1.0 / 3.0))

_FIRST_HALVES: dict[int, tuple[float, ...]] = {
    2: (),
    4: (_SUZUKI, _SUZUKI),
    6: (
        0.39216144400731413927925056,
        0.33259913678935943859974864,
        -0.70624617255763935980996482,
        0.08221359629355080023149045,
    ),
    8: (
        0.13020248308889008087881763,
        0.56116298177510838456196441,
        -0.38947496264484728640807860,
        0.15884190655515560089621075,
        -0.39590389413323757733623154,
        0.18453964097831570709183254,
        0.25837438768632204729397911,
        0.29501172360931029887096624,
    ),
}

ORDERS = tuple(_FIRST_HALVES)


def composition(order: int) -> np.ndarray:
    """The weights gamma of a composition of this order; their sum is 1, that of their cubes 0 from order 4 on."""
    half = _FIRST_HALVES[order]
    return np.array([*half, 1.0 - 2.0 * sum(half), *half[::-1]])
