r"""Rosenbrock methods as data: RODAS3, RODAS4 and RODAS5P, stiffly accurate, of orders 3, 4 and 5.

In the form without products with the Jacobian (Hairer, Wanner: Solving Ordinary Differential Equations II, (IV.7.25)
and (VI.4.12)), with :math:`\Gamma = (\gamma_{ij})`,

.. math::

    \Big(\frac{1}{h\gamma} M - f_y\Big) u_i = f\Big(t_0 + \alpha_i h, y_0 + \sum_{j<i} a_{ij} u_j\Big)
    + M \sum_{j<i} \frac{c_{ij}}{h} u_j + \gamma_i h f_t, \qquad y_1 = y_0 + \sum_i m_i u_i

where :math:`(a_{ij}) = (\alpha_{ij}) \Gamma^{-1}`, :math:`(c_{ij}) = I/\gamma - \Gamma^{-1}` and :math:`m = b^T
\Gamma^{-1}`. The last two stages are evaluated at :math:`t_1`, and their increments are added to the sum of the others:
:math:`\hat y_1 = y_0 + \sum_j a_{sj} u_j` and :math:`y_1 = \hat y_1 + u_s`, so that :math:`u_s` estimates the error.

References
----------
A. Sandu, J. G. Verwer, J. G. Blom, E. J. Spee, G. R. Carmichael, F. A. Potra: Benchmarking stiff ODE solvers for
atmospheric chemistry problems II: Rosenbrock solvers, Atmospheric Environment 31 (1997) 3459-3472 (RODAS3). E. Hairer,
G. Wanner: Solving Ordinary Differential Equations II, 2nd ed., Springer 1996, VI.4 (RODAS4). G. Steinebach:
Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks within the Julia Differential Equations
package, BIT 63 (2023) 27.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class RosenbrockTableau:
    r"""Coefficients of a stiffly accurate Rosenbrock method."""

    order: int  # order for differential equations and for DAEs of index 1; that of the embedded method is lower by one
    gamma: float  # the diagonal of \Gamma
    # The rows below the diagonal of a and c
    lower_a: tuple[tuple[float, ...], ...]
    lower_c: tuple[tuple[float, ...], ...]
    # The rows k_1, k_2, \dots of weights of the increments in y_0 + \theta (y_1 - y_0) + \theta (1 - \theta) (k_1 +
    # \theta (k_2 + \dots))
    inner: tuple[tuple[float, ...], ...]
    # The \theta at which the polynomial is tested: near its largest error in components that algebraic equations
    # determine
    middle: float

    @property
    def s(self) -> int:
        """The number of stages."""
        return len(self.lower_a)

    @cached_property
    def a(self) -> np.ndarray:
        """The weights of increments in the stages."""
        return _lower(self.lower_a)

    @cached_property
    def c(self) -> np.ndarray:
        """The weights of increments in their slopes."""
        return _lower(self.lower_c)

    @cached_property
    def m(self) -> np.ndarray:
        """The weights of increments in y at the end of the step."""
        weights = self.a[-1].copy()
        weights[-1] = 1.0
        return weights

    @cached_property
    def gammas(self) -> np.ndarray:
        r"""The matrix :math:`\Gamma`."""
        return np.linalg.inv(np.eye(self.s) / self.gamma - self.c)

    @cached_property
    def alphas(self) -> np.ndarray:
        r"""The matrix :math:`(\alpha_{ij})`."""
        return self.a @ self.gammas

    @cached_property
    def b(self) -> np.ndarray:
        """The weights of slopes."""
        return self.m @ self.gammas

    @cached_property
    def nodes(self) -> np.ndarray:
        r"""The sums :math:`\alpha_i`; those of the last two stages are 1."""
        sums = self.alphas.sum(axis=1)
        return np.where(np.abs(sums - 1.0) < 1e-12, 1.0, np.where(np.abs(sums) < 1e-12, 0.0, sums))

    @cached_property
    def time_weights(self) -> np.ndarray:
        r"""The sums :math:`\gamma_i`; those of the last two stages are 0."""
        sums = self.gammas.sum(axis=1)
        return np.where(np.abs(sums) < 1e-12, 0.0, sums)

    def weights(self, theta: float) -> np.ndarray:
        r"""The weights of the increments in :math:`y(t_0 + \theta h) - y_0`."""
        bulge = np.zeros(self.s)
        for row in reversed(self.inner):
            bulge = theta * bulge + np.array(row)
        return theta * (self.m + (1.0 - theta) * bulge)

    def slopes(self, theta: float) -> np.ndarray:
        r"""The weights of the increments in :math:`h y'(t_0 + \theta h)`."""
        slope = self.m.copy()
        for power, row in enumerate(self.inner, start=1):  # derivative of theta^power - theta^(power + 1)
            slope += (power * theta ** (power - 1) - (power + 1) * theta**power) * np.array(row)
        return slope

    @cached_property
    def differences(self) -> np.ndarray:
        """The weights of the increments in the backward differences, of order 1 and more, of the polynomial of a step.

        Its values at t_1, t_1 - h/d, ..., t_0 define it, where d is its degree.
        """
        degree = len(self.inner) + 1
        rows = np.array([self.weights(1.0 - q / degree) for q in range(degree + 1)])
        for order in range(1, degree + 1):
            rows[order:] = rows[order - 1 : -1] - rows[order:]
        return rows[1:]


def _lower(rows: tuple[tuple[float, ...], ...]) -> np.ndarray:
    matrix = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        matrix[i, : len(row)] = row
    return matrix


_A3 = (2.0, 0.0)
_RODAS3 = RosenbrockTableau(
    order=3,
    gamma=0.5,
    lower_a=((), (0.0,), _A3, (*_A3, 1.0)),
    lower_c=((), (4.0,), (1.0, -1.0), (1.0, -1.0, -8.0 / 3.0)),
    # The cubic that has order 2 for differential and algebraic variables and is also exact for f_yy (f, f).
    inner=((3.0, -1.0, -1.0, -1.0), (0.0, 0.0, 0.0, 2.0)),
    middle=2.0 / 3.0,
)

_A4 = (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950)
_RODAS4 = RosenbrockTableau(
    order=4,
    gamma=0.25,
    lower_a=(
        (),
        (1.544,),
        (0.9466785280815826, 0.2557011698983284),
        (3.314825187068521, 2.896124015972201, 0.9986419139977817),
        _A4,
        (*_A4, 1.0),
    ),
    lower_c=(
        (),
        (-5.6688,),
        (-2.430093356833875, -0.2063599157091915),
        (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
        (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
        (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
    ),
    inner=(
        (10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662, 0.0),
        (-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872, 0.0),
    ),
    middle=0.79,
)

_A5 = (-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946)
_RODAS5P = RosenbrockTableau(
    order=5,
    gamma=0.21193756319429014,
    lower_a=(
        (),
        (3.0,),
        (2.849394379747939, 0.45842242204463923),
        (-6.954028509809101, 2.489845061869568, -10.358996098473584),
        (2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641),
        _A5,
        (*_A5, 1.0),
        (*_A5, 1.0, 1.0),
    ),
    lower_c=(
        (),
        (-14.155112264123755,),
        (-17.97296035885952, -2.859693295451294),
        (147.12150275711716, -1.41221402718213, 71.68940251302358),
        (165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306),
        (24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471),
        (
            *(30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783),
            *(-19.097331116725623, -28.087943162872662),
        ),
        (
            *(37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047),
            *(-40.06618937091002, -54.66780262877968, -9.48861652309627),
        ),
    ),
    inner=(
        (
            *(25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204),
            *(0.524948541321073, 1.1241088310450404, 0.4272876194431874, -0.17202221070155493),
        ),
        (
            *(-9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796),
            *(20.176138334709044, 15.98066361424651, -6.789040303419874, -6.710236069923372),
        ),
        (
            *(11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643),
            *(-52.072871366152654, -59.78993625266729, -0.15582684282751913, 4.883087185713722),
        ),
    ),
    middle=0.45,
)

TABLEAUX = {"rodas3": _RODAS3, "rodas4": _RODAS4, "rodas5p": _RODAS5P}
"""The methods by name."""
