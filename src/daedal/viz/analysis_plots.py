"""Plots of analyses: stability regions, eigenvalues, conditioning over time."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb, factorial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.viz.figure import FAINT, GRID, LINES, WIDTH, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 300  # number of grid points in each direction
_FAR, _MARGIN = 32.0, 0.12  # search range for the boundary; margin of the window, relative to its width
_SMALLEST, _WIDEST = 3.0, 20.0  # limits of half the window height
_ROUND_OFF = 1e-9  # growth factors up to 1 plus this count as stable
_STABLE_SIDE = -90.0  # direction of the strokes relative to a contour, in degrees; smaller values are on its right
_OWN_VELOCITY = 3  # order up to which modified BDF uses one polynomial for x' and x''


def plot_stability_region(
    method: Any,
    *,
    window: tuple[float, float, float, float] | None = None,
    title: str | None = None,
    save: str | Path | None = None,
    pyplot: bool = True,
) -> Figure:
    r"""Plot the absolute stability region of a method: the numbers :math:`z = h \lambda` with growth factor at most 1.

    The test equation is :math:`y' = \lambda y`, or for :class:`daedal.methods.ModifiedBDF` the oscillator with the
    eigenvalues :math:`\lambda, \bar\lambda`. A single region is shaded; of several regions, the boundaries are drawn
    with short strokes on the stable side.

    Parameters
    ----------
    method : method, tableau, multistep formula, (A, b), or a dict or list of these
        An explicit, half-explicit or implicit method of Daedal; its tableau; a
        :class:`daedal.methods.MultistepFormula`; or the coefficients of a Runge-Kutta method. BDF and modified BDF are
        shown for all orders up to `max_order`. The keys of a dict are the labels.
    window : tuple of float, optional
        Left, right, lower and upper limits of the axes; by default such that the curves are visible.
    title, save, pyplot
        As for :func:`daedal.viz.plot_solution`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import daedal
    >>> figure = daedal.viz.plot_stability_region({"RK4": daedal.methods.RK4(), "Heun": ([[0, 0], [1, 0]], [0.5, 0.5])})
    >>> figure.axes[0].get_xlabel()
    'Re $h\\lambda$'
    """
    factors: dict[str, Any] = {}
    for name, one in _named(method).items():
        factors |= _growth_factors(one, name)
    heading = title if title is not None else (next(iter(factors)) if len(factors) == 1 else "")
    with new_figure((6.4 if len(factors) > 1 else 4.8, 4.2), pyplot, save, heading) as figure:
        axes = figure.add_subplot()
        _draw(axes, factors, _window(factors) if window is None else window)
        if len(factors) > 1:
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=3.0)
    return figure


def growth_factor(method: Any, z: Any) -> np.ndarray:
    r"""Largest factor by which a step of a method amplifies solutions of the test equation, :math:`z = h\lambda`.

    For a Runge-Kutta method it is :math:`|R(z)|` with :math:`R(z) = 1 + z\,b^T (I - z A)^{-1} 1`; for a multistep
    method of order `max_order`, the largest modulus of the roots of its characteristic equation.

    Parameters
    ----------
    method : method, tableau, multistep formula or (A, b)
        As for :func:`plot_stability_region`.
    z : array of complex
        Values :math:`h\lambda`.

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> import daedal
    >>> from daedal.viz import growth_factor
    >>> growth_factor(daedal.methods.RK4(), [-1.0, -3.0]).round(3)
    array([0.375, 1.375])
    >>> growth_factor(daedal.methods.DASSL(max_order=1), [-1.0, 2j]).round(3)
    array([0.5  , 0.447])
    """
    *_, factor = _growth_factors(method, "").values()
    return factor(np.asarray(z, dtype=complex))


def _named(method: Any) -> dict[str, Any]:
    if isinstance(method, Mapping):
        named = dict(method)
    elif isinstance(method, list):
        named = {}
        for one in method:
            name = _name(one)
            named[name if name not in named else f"{name} ({len(named) + 1})"] = one
    else:
        named = {_name(method): method}
    if not named:
        raise daedal.InvalidProblemError("method is empty; pass at least one method")
    return named


def _name(method: Any) -> str:
    if isinstance(method, daedal.methods.Collocation):
        kind = {"radau": "Radau IIA", "gauss": "Gauss", "lobatto": "Lobatto IIIA"}[method.kind]
        return f"{kind}, {method.stages} stages"
    if isinstance(method, daedal.methods.DASSL):
        return "BDF"
    if isinstance(method, daedal.methods.ModifiedBDF):
        return "modified BDF"
    tableau = getattr(method, "tableau", method)
    return getattr(tableau, "name", "Runge-Kutta" if isinstance(method, tuple) else type(method).__name__)


def _growth_factors(method: Any, name: str) -> dict[str, Any]:
    """Growth factors by label, as functions of an array of z; one for each order of a multistep method."""
    if isinstance(method, (daedal.methods.DASSL, daedal.methods.ModifiedBDF)):
        orders = range(1, int(method.max_order or 5) + 1)
        own = isinstance(method, daedal.methods.ModifiedBDF) and method.family == "direct"
        return {f"{name}, order {k}": (lambda z, k=k: (_modified_bdf if own else _bdf)(k, z)) for k in orders}
    if isinstance(method, daedal.methods.Collocation):
        # Hairer and Wanner II, IV.5: Padé approximations of exp(z); the same for x'' = f, since A~ = A^2
        s = method.stages
        degrees = {"radau": (s - 1, s), "gauss": (s, s), "lobatto": (s - 1, s - 1)}[method.kind]
        return {name: lambda z: np.abs(_pade(*degrees, z))}
    if isinstance(method, daedal.methods.MultistepFormula):
        return {name: lambda z: _multistep(method, z)}
    a, b = _coefficients(method)
    return {name: lambda z: _runge_kutta(a, b, z)}


def _coefficients(method: Any) -> tuple[np.ndarray, np.ndarray]:
    """A and b of a Runge-Kutta method."""
    tableau = getattr(method, "tableau", method)
    if hasattr(tableau, "floats"):
        arrays = tableau.floats()
        return arrays["a"], arrays["b"]
    if hasattr(tableau, "arrays"):
        return tableau.arrays["a"], np.array(tableau.b)
    try:
        a, b = (np.asarray(part, dtype=float) for part in tableau)
    except (TypeError, ValueError):
        raise daedal.InvalidProblemError(
            f"stability regions of method={method!r} are not available; pass DASSL, ModifiedBDF, Collocation, RK4, "
            "DOPRI5, a half-explicit method, a tableau, a MultistepFormula, or the coefficients (A, b) of a "
            "Runge-Kutta method"
        ) from None
    if b.ndim != 1 or a.shape != (b.size, b.size) or not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
        raise daedal.InvalidProblemError(
            f"method: A must be a square matrix and b a vector of its size, of finite numbers; got {a.shape}, {b.shape}"
        )
    return a, b


# --- growth factors ---------------------------------------------------------------------------------------------------


def _runge_kutta(a: np.ndarray, b: np.ndarray, z: np.ndarray) -> np.ndarray:
    """|R(z)| = |det(I - z A + z 1 b^T) / det(I - z A)| (Hairer and Wanner II, IV.3.2)."""
    eye = np.eye(b.size)
    numerator = np.linalg.det(eye - z[..., None, None] * (a - np.outer(np.ones(b.size), b)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.abs(numerator / np.linalg.det(eye - z[..., None, None] * a))


def _pade(k: int, j: int, z: np.ndarray) -> np.ndarray:
    """The Padé approximation of exp(z) with numerator of degree k and denominator of degree j."""

    def side(degree: int, x: np.ndarray) -> np.ndarray:
        terms = [comb(degree, i) * factorial(k + j - i) / factorial(k + j) for i in range(degree + 1)]
        return np.polynomial.polynomial.polyval(x, terms)

    with np.errstate(divide="ignore", invalid="ignore"):
        return side(k, z) / side(j, -z)


def _multistep(formula: Any, z: np.ndarray) -> np.ndarray:
    r"""Largest modulus of the roots of :math:`\rho(\zeta) - z \sigma(\zeta)`."""
    arrays = formula.floats()
    return _largest_root(arrays["rho"] - z[..., None] * arrays["sigma"])


def _bdf(k: int, z: np.ndarray) -> np.ndarray:
    r"""Largest modulus of the roots of :math:`\sum_{i=1}^k (1 - 1/\zeta)^i / i = z`."""
    first, _ = _differences(k)
    return _largest_root(first - z[..., None] * np.eye(k + 1)[0])


def _modified_bdf(k: int, z: np.ndarray) -> np.ndarray:
    r"""Largest modulus of the roots for :math:`x'' = 2 \mathrm{Re}(\lambda) x' - |\lambda|^2 x`."""
    first, second = _differences(k + 1)
    if k > _OWN_VELOCITY:
        first = np.append(_differences(k)[0], 0.0)
    real, square = z.real[..., None], (np.abs(z) ** 2)[..., None]
    return _largest_root(second - 2.0 * real * first + square * np.eye(k + 2)[0])


def _differences(degree: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Weights of :math:`x_n, x_{n-1}, \dots` in h x' and h^2 x'' of the interpolating polynomial."""
    nodes = -np.arange(degree + 1.0)
    powers = np.vander(nodes, increasing=True).T  # moments: sum_j w_j nodes_j^p = d/dt^m t^p at 0
    first, second = np.zeros(degree + 1), np.zeros(degree + 1)
    first[1] = 1.0
    if degree >= 2:
        second[2] = 2.0
    return np.linalg.solve(powers, first), np.linalg.solve(powers, second)


def _largest_root(coefficients: np.ndarray) -> np.ndarray:
    """Largest modulus of the roots of polynomials, whose coefficients are in rows, highest degree first."""
    degree = coefficients.shape[-1] - 1
    companion = np.zeros((*coefficients.shape[:-1], degree, degree), dtype=complex)
    companion[..., np.arange(1, degree), np.arange(degree - 1)] = 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        companion[..., 0, :] = -coefficients[..., 1:] / coefficients[..., :1]
    pole = ~np.all(np.isfinite(companion), axis=(-2, -1))
    companion[pole] = 0.0
    return np.where(pole, np.inf, np.max(np.abs(np.linalg.eigvals(companion)), axis=-1))


# --- drawing ----------------------------------------------------------------------------------------------------------


def _grid(window: tuple[float, float, float, float], points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y = np.linspace(*window[:2], points), np.linspace(*window[2:], points)
    return x, y, x[None, :] + 1j * y[:, None]


def _window(factors: dict[str, Any]) -> tuple[float, float, float, float]:
    """A window that contains the boundaries near the origin."""
    x, y, z = _grid((-_FAR, _FAR, 0.0, _FAR), 161)
    edge = np.zeros(z.shape, dtype=bool)
    for factor in factors.values():
        stable = factor(z) <= 1.0 + _ROUND_OFF
        edge[1:] |= stable[1:] != stable[:-1]
        # a boundary along the whole imaginary axis does not affect the window
        straight = np.all(np.diff(stable.astype(int), axis=0) == 0)
        if not straight:
            edge[:, 1:] |= stable[:, 1:] != stable[:, :-1]
    rows, columns = np.nonzero(edge)
    left, right, top = -_SMALLEST, _SMALLEST / 2.0, _SMALLEST
    if rows.size:
        left, right, top = min(left, x[columns].min()), max(right, x[columns].max()), max(top, y[rows].max())
    else:
        right = _SMALLEST
    left, right, top = max(left, -1.5 * _WIDEST), min(right, 1.5 * _WIDEST), min(top, _WIDEST)
    margin = _MARGIN * (right - left)
    return left - margin, right + margin, -top - margin, top + margin


def _draw(axes: Axes, factors: dict[str, Any], window: tuple[float, float, float, float]) -> None:
    from matplotlib.patheffects import Normal, withTickedStroke

    x, y, z = _grid(window, _POINTS)
    for k, (name, factor) in enumerate(factors.items()):
        growth = np.minimum(np.nan_to_num(factor(z), nan=10.0, posinf=10.0), 10.0)
        colour, dashes = LINES[k % len(LINES)]
        if len(factors) == 1:
            axes.contourf(x, y, growth, levels=[-1.0, 1.0 + _ROUND_OFF], colors=[GRID])
        line: Any = axes.contour(x, y, growth, [1.0 + _ROUND_OFF], colors=[colour], linestyles=[dashes], linewidths=1.4)
        if len(factors) > 1:
            line.set_path_effects(
                [Normal(), withTickedStroke(angle=_STABLE_SIDE, spacing=9.0, length=0.5, linewidth=0.6)]
            )
        axes.plot([], [], color=colour, linestyle=dashes, label=name)
    axes.axhline(0.0, color=FAINT, linewidth=0.7, zorder=1)
    axes.axvline(0.0, color=FAINT, linewidth=0.7, zorder=1)
    axes.set_aspect("equal")
    axes.set_xlim(*window[:2])
    axes.set_ylim(*window[2:])
    axes.set_xlabel(r"Re $h\lambda$")
    axes.set_ylabel(r"Im $h\lambda$")


# --- eigenvalues in the complex plane ---------------------------------------------------------------------------------


def plot_eigenvalues(
    eigenvalues: Any, *, title: str | None = None, save: str | Path | None = None, pyplot: bool = True
) -> Figure:
    """Plot eigenvalues in the complex plane; those with positive real parts are marked as growing.

    Parameters
    ----------
    eigenvalues : array of complex
        The eigenvalues.
    title, save, pyplot
        As for :func:`daedal.viz.plot_solution`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import daedal
    >>> [axes.get_xlabel() for axes in daedal.viz.plot_eigenvalues([1j, -1j, -0.5]).axes]
    ['real part']
    """
    values = np.asarray(eigenvalues, dtype=complex)
    size = max(float(np.max(np.abs(values), initial=0.0)), 1e-300)
    growing = values.real > 1e-7 * size
    with new_figure((4.5, 3.6), pyplot, save, title) as figure:
        axes = figure.add_subplot()
        axes.axvline(0.0, color=FAINT)
        axes.axhline(0.0, color=FAINT)
        for chosen, (colour, _), marker, label in (
            (~growing, LINES[0], "o", "decaying or neutral"),
            (growing, LINES[1], "D", "growing"),
        ):
            if np.any(chosen):
                axes.plot(values.real[chosen], values.imag[chosen], marker, color=colour, label=label)
        low, high = axes.get_xlim()
        reach = 0.05 * size
        axes.set_xlim(min(low, -reach), max(high, reach))
        axes.set_xlabel("real part")
        axes.set_ylabel("imaginary part")
        if np.any(growing):
            axes.legend(loc="best")
    return figure


# --- conditioning over time: growth of perturbations and effective index ----------------------------------------------

_HEIGHTS = (2.0, 1.1)  # height, in inches, of a panel with factors, and of the panel with indices
_SOURCES = {"x(0)": "initial values", "p": "p, forces", "q": "q, constraints", "q'": "q', derivative of q"}
_DECADES = 12  # number of decades shown below the largest factor


def plot_conditioning(
    found: daedal.analysis.Conditioning,
    *,
    title: str | None = None,
    save: str | Path | None = None,
    pyplot: bool = True,
) -> Figure:
    """Plot the growth of perturbations over time, and the index along the solution.

    Parameters
    ----------
    found : Conditioning
        Result of :func:`daedal.analysis.analyse_conditioning`.
    title, save, pyplot
        As for :func:`daedal.viz.plot_solution`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import daedal
    >>> found = daedal.analysis.analyse_conditioning(daedal.library.nearly_index2().problem, (0.0, 1.0), points=11)
    >>> [axes.get_ylabel() for axes in daedal.viz.plot_conditioning(found).axes]
    ['moves x by', 'moves y by', 'index']
    """
    effects = [effect for effect in ("x", "y") if any(own == effect for own, _ in found.amplification)]
    heights = [_HEIGHTS[0]] * len(effects) + [_HEIGHTS[1]]
    with new_figure((WIDTH, sum(heights)), pyplot, save, title) as figure:
        grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
        panels: list[Axes] = []
        for k in range(len(heights)):
            panels.append(figure.add_subplot(grid[k], sharex=panels[0] if panels else None))
        for axes, effect in zip(panels, effects, strict=False):
            _factors(axes, found, effect)
            axes.tick_params(labelbottom=False)
        _indices(panels[-1], found)
        if effects:
            panels[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), title="perturbation of size 1 in")
        figure.align_ylabels(panels)
    return figure


def _factors(axes: Axes, found: daedal.analysis.Conditioning, effect: str) -> None:
    curves = {source: found.amplification.get((effect, source)) for source in _SOURCES}
    known = [curve[np.isfinite(curve)] for curve in curves.values() if curve is not None]
    largest = max((float(np.max(curve, initial=0.0)) for curve in known), default=0.0)
    for (colour, dashes), (source, curve) in zip(LINES, curves.items(), strict=False):
        if curve is None:
            continue
        shown = np.where(np.isfinite(curve) & (curve > largest * 10.0**-_DECADES), curve, np.nan)
        axes.plot(found.t, shown, color=colour, linestyle=dashes, label=_SOURCES[source])
    axes.set_ylabel(f"moves {effect} by")
    if largest > 0.0:
        axes.set_yscale("log")


def _indices(axes: Axes, found: daedal.analysis.Conditioning) -> None:
    axes.step(found.t, found.formal_indices, where="mid", color=FAINT, linewidth=2.5, label="formal")
    axes.step(found.t, found.indices, where="mid", color=LINES[0][0], label="in effect")
    highest = np.nanmax(np.concatenate([found.indices, found.formal_indices, [1.0]]))
    axes.set_ylim(-0.3, highest + 0.5)
    axes.set_yticks(range(int(highest) + 1))
    axes.set_ylabel("index")
    axes.set_xlabel("t")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.02))
