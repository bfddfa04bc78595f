"""A linear model: matrices with names, poles, modes and the transfer function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from daedal.common.tabular import Tabular, listing
from daedal.errors import InvalidProblemError, UnknownNameError, near_names

_STABLE = 1e-9  # real part, relative to the largest pole, below which it counts as zero


class Descriptor(NamedTuple):
    r"""The descriptor form :math:`E\,\delta x' = A\,\delta x + B\,\delta u`, in all unknowns of the problem.

    Second-order problems have the unknowns :math:`(x, x')`.
    """

    E: np.ndarray
    A: np.ndarray
    B: np.ndarray
    names: tuple[str, ...]


_EMPTY = Descriptor(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0)), ())


class LinearMode(NamedTuple):
    """A mode of a linear model.

    Attributes
    ----------
    eigenvalue : complex
        One of each pair of conjugates, with the positive imaginary part.
    shape : dict
        The eigenvector in all unknowns of the problem, by name; its largest entry is 1.
    """

    eigenvalue: complex
    shape: dict[str, complex]

    @property
    def frequency(self) -> float:
        """Frequency in oscillations per unit of time."""
        return abs(self.eigenvalue.imag) / (2.0 * np.pi)

    @property
    def damping_ratio(self) -> float:
        """Minus the cosine of the angle of the eigenvalue."""
        size = abs(self.eigenvalue)
        return 0.0 if self.eigenvalue.real == 0.0 else -self.eigenvalue.real / size


@dataclass(frozen=True, eq=False)
class LinearModel:
    r"""A linear model in independent coordinates, from :func:`daedal.linearise`.

    .. math::

        \delta z' = A\,\delta z + B\,\delta u, \qquad
        \delta y = C\,\delta z + D\,\delta u + \sum_{k \ge 1} D_k\,\delta u^{(k)} .

    Attributes
    ----------
    A, B, C, D : numpy.ndarray
        The matrices.
    states, inputs, outputs : tuple of str
        Names of the rows and columns. States are unknowns of the problem, or derivatives of them. If inputs act on
        constraints, a state is the unknown minus a combination of the inputs, so that no derivative of an input enters
        the differential equations.
    input_derivatives : tuple of numpy.ndarray
        :math:`D_1, D_2, \dots`: the coefficients of derivatives of the inputs in the outputs. Nonempty only for index 2
        and higher.
    t : float
        Time of the linearisation.
    point : dict
        The unknowns and their derivatives at the point, by name.
    is_equilibrium : bool
        Whether the derivatives of all unknowns vanish at the point. Otherwise A is valid at this time only, and its
        eigenvalues depend on the coordinates.
    basis : numpy.ndarray
        The derivatives of all `unknowns` (rows) with respect to the states (columns).
    unknowns : tuple of str
        Names of the rows of `basis`.
    descriptor : Descriptor
        E, A, B in all unknowns.
    exact : bool
        Whether derivatives come from traced functions rather than finite differences.

    Examples
    --------
    >>> import daedal
    >>> spring = daedal.ODE(lambda t, y, u: [y[1], u - 4.0 * y[0]], 2, names="x v", inputs=["u"])
    >>> model = daedal.linearise(spring, [0.0, 0.0], inputs=["u"], outputs=["x"])
    >>> print(model.A.tolist(), model.B.tolist())
    [[0.0, 1.0], [-4.0, 0.0]] [[0.0], [1.0]]
    >>> print(abs(model.frequency_response(1.0)).round(4).ravel())
    [0.3333]
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    t: float
    is_equilibrium: bool
    exact: bool
    input_derivatives: tuple[np.ndarray, ...] = ()
    point: dict[str, float] = field(default_factory=dict, repr=False)
    basis: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    unknowns: tuple[str, ...] = ()
    descriptor: Descriptor = field(default=_EMPTY, repr=False)

    @property
    def E(self) -> np.ndarray:
        """The matrix E of the descriptor form; `descriptor` has its other matrices."""
        return self.descriptor.E

    @cached_property
    def poles(self) -> np.ndarray:
        """The eigenvalues of A, ordered by imaginary part."""
        values = np.linalg.eigvals(self.A)
        return values[np.lexsort([values.imag, values.real, np.abs(values.imag)])]

    @property
    def is_stable(self) -> bool:
        """Whether no pole has a positive real part."""
        size = float(np.max(np.abs(self.poles), initial=0.0))
        return bool(np.all(self.poles.real <= _STABLE * size))

    @cached_property
    def modes(self) -> list[LinearMode]:
        """One mode for each real pole and for each pair of conjugate poles, the slowest oscillations first."""
        values, vectors = np.linalg.eig(self.A)
        found = []
        for k in np.lexsort([values.real, np.abs(values.imag)]):
            if values[k].imag >= 0.0:
                shape = self.basis @ vectors[:, k]
                largest = shape[np.argmax(np.abs(shape))] if shape.size else 1.0
                shape = shape / largest if largest else shape
                found.append(LinearMode(complex(values[k]), dict(zip(self.unknowns, shape.tolist(), strict=True))))
        return found

    def transfer(self, s: Any) -> np.ndarray:
        """The transfer function at complex frequencies.

        Parameters
        ----------
        s : complex or array of complex

        Returns
        -------
        numpy.ndarray
            Shape (outputs, inputs), or (len(s), outputs, inputs).
        """
        points = np.atleast_1d(np.asarray(s, dtype=complex))
        found = np.empty((points.size, *self.D.shape), dtype=complex)
        for k, point in enumerate(points.ravel()):
            states = np.linalg.solve(point * np.eye(len(self.A)) - self.A, self.B) if len(self.A) else self.B
            found[k] = self.C @ states + self.D
            for order, matrix in enumerate(self.input_derivatives, 1):
                found[k] += point**order * matrix
        return found[0] if np.ndim(s) == 0 else found

    def frequency_response(self, omega: Any) -> np.ndarray:
        """The transfer function at the angular frequencies `omega`, at s = i omega."""
        return self.transfer(1j * np.asarray(omega, dtype=float))

    @property
    def static_gain(self) -> np.ndarray:
        """The change of the outputs with constant inputs, after all motion has decayed: the transfer function at 0."""
        return self.transfer(0.0).real

    def __iter__(self) -> Iterator[np.ndarray]:
        """Iterate over A, B, C and D, for example for ``scipy.signal.StateSpace(*model)``."""
        self._check_proper("a state space of four matrices")
        return iter((self.A, self.B, self.C, self.D))

    def to_control(self) -> Any:
        """The model as ``control.StateSpace`` of the package python-control, with its names."""
        self._check_proper("control.StateSpace")
        try:
            import control
        except ImportError:
            raise ImportError(
                "to_control needs the package control: pip install control. Or use the matrices directly: A, B, "
                "C, D = model"
            ) from None
        return control.StateSpace(*self, states=list(self.states), inputs=list(self.inputs), outputs=list(self.outputs))

    def _check_proper(self, what: str):
        for order, matrix in enumerate(self.input_derivatives, 1):
            for i, j in np.argwhere(matrix != 0.0)[:1]:
                raise InvalidProblemError(
                    f"output '{self.outputs[i]}' depends on derivative {order} of input '{self.inputs[j]}', which "
                    f"{what} cannot express. Remedy: omit this output, or make the input a state: u' = w with the "
                    "input w"
                )

    def output(self, name: str) -> int:
        """The index of the output with this name."""
        if name not in self.outputs:
            hint = near_names(name, self.outputs)
            raise UnknownNameError(f"{name!r} is not an output; {hint}known: {', '.join(self.outputs)}")
        return self.outputs.index(name)

    def plot(self, **options: Any) -> Any:
        """Plot the poles in the complex plane; see :func:`daedal.viz.plot_eigenvalues`."""
        from daedal.viz import plot_eigenvalues

        return plot_eigenvalues(self.poles, **options)

    def __str__(self) -> str:
        about = "an equilibrium" if self.is_equilibrium else "a point that is not an equilibrium"
        how = "" if self.exact else ", derivatives by finite differences"
        heads = [f"linear model about {about}, t = {self.t:g}{how}"]
        for what, names in (("states", self.states), ("inputs", self.inputs), ("outputs", self.outputs)):
            heads.append(f"  {what:8}{listing(list(names)[:8], len(names)) if names else 'none'}")
        rows = [(_number(mode.eigenvalue), f"{mode.frequency:.6g}", f"{mode.damping_ratio:.4g}") for mode in self.modes]
        table = str(Tabular("rrr", rows, ("pole", "frequency", "damping ratio"), indent=2)) if rows else "  no states"
        return "\n".join([*heads, table])


def _number(value: complex) -> str:
    return f"{value:.6g}" if value.imag else f"{value.real:.6g}"
