"""Sampling designs: random, stratified or low-discrepancy points of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError

_METHODS = ("latin_hypercube", "sobol", "halton", "random")


def sample(
    distributions: Mapping[str, Any],
    n: int,
    *,
    method: str = "latin_hypercube",
    seed: Any = 0,
    frame: bool = False,
    **options: Any,
) -> Any:
    """Draw `n` points of several parameters.

    Parameters
    ----------
    distributions : mapping
        For each name an interval (low, high), or a distribution of ``scipy.stats``, such as ``scipy.stats.norm(1,
        0.1)``.
    n : int
        Number of points; Sobol's sequence is balanced for powers of 2.
    method : {"latin_hypercube", "sobol", "halton", "random"}
        Sampler in ``scipy.stats.qmc``; "random" draws independent points.
    seed : int or numpy.random.Generator
        The same seed gives the same points.
    frame : bool
        Whether to return a pandas frame instead of a mapping of arrays.
    **options
        Options of the class in ``scipy.stats.qmc``, for example ``optimization="random-cd"``, ``scramble=False``.

    Returns
    -------
    dict of numpy.ndarray, or pandas.DataFrame
        The points, accepted as `params` or `initial` of :func:`daedal.solve_many`.

    Examples
    --------
    >>> import daedal
    >>> from scipy import stats
    >>> points = daedal.ensembles.sample({"mass": (1.0, 2.0), "spring": stats.norm(10.0, 0.5)}, 4)
    >>> print(sorted((4 * (points["mass"] - 1.0)).astype(int).tolist()))
    [0, 1, 2, 3]
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise InvalidProblemError(f"n must be a positive integer, got {n!r}")
    if not isinstance(distributions, Mapping) or not distributions:
        raise InvalidProblemError(
            f"distributions must be a mapping of names to intervals or distributions, got {distributions!r}"
        )
    inverse = {name: _quantile_function(name, given) for name, given in distributions.items()}
    unit = _unit_points(method, len(inverse), int(n), seed, options)
    columns = {name: np.asarray(function(unit[:, k]), float) for k, (name, function) in enumerate(inverse.items())}
    if not frame:
        return columns
    from daedal.ensembles.ensemble import imported

    return imported("pandas", "sample(..., frame=True)").DataFrame(columns)


def _quantile_function(name: str, given: Any) -> Any:
    """The function that maps (0, 1) to the values of a parameter."""
    if hasattr(given, "ppf"):
        return given.ppf
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        raise InvalidProblemError(
            f"distributions[{name!r}] must be an interval (low, high) or a distribution of scipy.stats, got {given!r}"
        ) from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidProblemError(f"distributions[{name!r}]: the interval ({low}, {high}) is empty or not finite")
    return lambda u: low + (high - low) * u


def _unit_points(method: str, dimension: int, n: int, seed: Any, options: dict[str, Any]) -> np.ndarray:
    """Points in the open unit cube."""
    from scipy.stats import qmc

    generator = np.random.default_rng(seed)
    if method == "random":
        return _inside(generator.random((n, dimension)))
    makers = {"latin_hypercube": qmc.LatinHypercube, "sobol": qmc.Sobol, "halton": qmc.Halton}
    if method not in makers:
        raise InvalidProblemError(f"method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}")
    try:
        sampler = makers[method](dimension, rng=generator, **options)
    except TypeError:  # called seed in SciPy before 1.15
        sampler = makers[method](dimension, seed=generator, **options)
    if method == "sobol" and n & (n - 1) == 0:
        return _inside(sampler.random_base2(n.bit_length() - 1))
    return _inside(sampler.random(n))


def _inside(points: np.ndarray) -> np.ndarray:
    """Keep points away from 0 and 1, at which quantiles of distributions may be infinite."""
    tiny = np.finfo(float).eps
    return np.clip(points, tiny, 1.0 - tiny)
