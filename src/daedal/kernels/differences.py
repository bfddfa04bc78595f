"""Modified divided differences of the fixed-leading-coefficient BDF, BCP (5.2.4).

Index conventions follow the book shifted by one: ``phi[0]`` is the book's phi_1 = y_n, ``psi[0]`` its psi_1, and so on.
"""

from daedal.kernels.compilation import inlined, part
from daedal.kernels.records import FLOAT, Struct, inline

MAX_ORDER = 6
ROWS = MAX_ORDER + 2

LENGTH = ROWS + 1

COEFFICIENTS = Struct("COEFFICIENTS", [(name, inline(FLOAT, LENGTH)) for name in ("alpha", "beta", "gamma", "sigma")])


@part
def update_coefficients(c, psi, h, k):
    """alpha, beta, gamma, sigma, psi for a step h at order k from the psi of the last step, BCP (5.2.4)."""
    c.beta[0] = 1.0
    c.alpha[0] = 1.0
    c.gamma[0] = 0.0
    c.sigma[0] = 1.0
    distance = h
    for i in range(1, k + 1):
        previous = psi[i - 1]
        psi[i - 1] = distance
        c.beta[i] = c.beta[i - 1] * psi[i - 1] / previous
        distance = previous + h
        c.alpha[i] = h / distance
        c.sigma[i] = i * c.sigma[i - 1] * c.alpha[i]
        c.gamma[i] = c.gamma[i - 1] + c.alpha[i - 1] / h
    psi[k] = distance


@inlined
def leading_coefficient(k):
    """-alpha_s = 1 + 1/2 + ... + 1/k."""
    total = 0.0
    for j in range(1, k + 1):
        total += 1.0 / j
    return total


@inlined
def variable_leading_coefficient(c, k):
    """-alpha^0 = alpha_1 + ... + alpha_k: the formula that differentiates the interpolating polynomial itself."""
    total = 0.0
    for i in range(k):
        total += c.alpha[i]
    return total


@inlined
def error_constant(c, k):
    """M of the error test: max(alpha_{k+1}, |alpha_{k+1} + alpha_s - alpha^0|), BCP section 5.2."""
    return max(c.alpha[k], abs(c.alpha[k] - leading_coefficient(k) + variable_leading_coefficient(c, k)))


@part
def scale_differences(phi, factors, first, last):
    """phi_i *= factors_i for i = first..last: the step from phi to phi*."""
    n = phi.shape[1]
    for j in range(first, last + 1):
        factor = factors[j]
        for i in range(n):
            phi[j, i] *= factor


@part
def unscale_differences(phi, factors, first, last):
    """Undo :func:`scale_differences` after a rejected step."""
    n = phi.shape[1]
    for j in range(first, last + 1):
        factor = 1.0 / factors[j]
        for i in range(n):
            phi[j, i] *= factor


@part
def predict(phi, gamma, k, y, yp):
    """y(0) = sum phi*_i, y'(0) = sum gamma_i phi*_i, BCP (5.2.5)."""
    n = y.size
    for i in range(n):
        y[i] = phi[0, i]
        yp[i] = 0.0
    for j in range(1, k + 1):
        g = gamma[j]
        for i in range(n):
            y[i] += phi[j, i]
            yp[i] += g * phi[j, i]


@part
def update_differences(phi, k, keep_next, correction):
    """The differences at t_{n+1}, from E = y - y(0): phi_{k+2} = E, phi_j = phi*_j + phi_{j+1}."""
    n = correction.size
    if keep_next:
        for i in range(n):
            phi[k + 1, i] = correction[i]
    for i in range(n):
        total = phi[k, i] + correction[i]
        phi[k, i] = total
        for j in range(k - 1, -1, -1):
            total += phi[j, i]
            phi[j, i] = total
