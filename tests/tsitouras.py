"""The method of Tsitouras of order 5, as a user would add it: one file with a tableau and a class.

Ch. Tsitouras, Runge-Kutta pairs of order 5(4) satisfying only the first column simplifying assumption, Comput. Math.
Appl. 62 (2011) 770-775.
"""

from numpy.polynomial import Polynomial

from daedal.methods import RungeKuttaTableau
from daedal.methods.explicit.runge_kutta import ExplicitRungeKutta, explicit_tableau

A = [
    [],
    [0.161],
    [-0.008480655492356989, 0.335480655492357],
    [2.8971530571054935, -6.359448489975075, 4.3622954328695815],
    [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525],
    [5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383],
]
B = [
    *(0.09646076681806523, 0.01, 0.4798896504144996),
    *(1.379008574103742, -3.290069515436081, 2.324710524099774),
]
E = [
    *(-0.00178001105222577714, -0.0008164344596567469, 0.007880878010261995),
    *(-0.1447110071732629, 0.5823571654525552, -0.45808210592918697, 0.015151515151515152),
]
FORMULA = RungeKuttaTableau(
    [*A, B], [*B, 0], name="Tsitouras", embedded=[b - e for b, e in zip([*B, 0.0], E, strict=True)]
)

theta = Polynomial([0.0, 1.0])
WEIGHTS = [
    -1.0530884977290216
    * theta
    * (theta - 1.3299890189751412)
    * (theta**2 - 1.4364028541716351 * theta + 0.7139816917074209),
    0.1017 * theta**2 * (theta**2 - 2.1966568338249754 * theta + 1.2949852507374631),
    2.490627285651252793 * theta**2 * (theta**2 - 2.38535645472061657 * theta + 1.57803468208092486),
    -16.54810288924490272 * (theta - 1.21712927295533244) * (theta - 0.61620406037800089) * theta**2,
    47.37952196281928122 * (theta - 1.203071208372362603) * (theta - 0.658047292653547382) * theta**2,
    -34.87065786149660974 * (theta - 1.2) * (theta - 0.666666666666666667) * theta**2,
    2.5 * (theta - 1.0) * (theta - 0.6) * theta**2,
]


class Tsitouras(ExplicitRungeKutta):
    """Order 5, error estimate of order 4, dense output of order 4."""

    name = "tsit5"
    tableau = explicit_tableau(FORMULA, order=5, dense=[weight.coef[1:] for weight in WEIGHTS], stability=3.4)
