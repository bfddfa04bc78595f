"""Quick comparison of user-supplied derivatives with finite differences before a run."""

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import is_compiled
from daedal.mechanics.point import vector_function
from daedal.mechanics.setting import typical_size
from daedal.problems import MechanicalSystem
from daedal.problems.compile import last_argument

_WRONG = 1e-3  # relative difference above which a derivative is rejected
_SHARES = (1e-3, 1e-5)  # increments of first differences, relative to the sizes of the variables
_SHARES_OF_BIAS = (1e-2, 1e-3)  # increments of second differences
_ROUNDOFF = 1e2 * float(np.finfo(float).eps)
_GIVEN = ("constraint_jacobian", "constraint_t", "acceleration_bias", "velocity_jacobian", "velocity_bias")
_MOST_DIFFERENCES = 20  # number of coordinates up to which gradients are differenced
_MOST_COLUMNS = 200  # number of coordinates up to which the wrong gradient is identified


def check_given(system: MechanicalSystem, t: float, q: np.ndarray, v: np.ndarray, *, consistent: bool = True):
    """Reject user-supplied derivatives that are clearly wrong at (t, q, v).

    Matrices are compared along one direction. Biases are compared along an admissible motion, since formulas may use
    the constraints, and only if the values are `consistent`. Nothing is rejected if the differences are inconclusive or
    a function cannot be evaluated.
    """
    names = [name for name in _GIVEN if getattr(system, name) is not None]
    names = [name for name in names if not getattr(getattr(system, name), "is_derivative", False)]  # exact ones
    names = [name for name in names if consistent or not name.endswith("bias")]
    if not names or system.n_s:
        return
    with np.errstate(all="ignore"):
        _Comparison(system, t, q, v).run(names)


class _Comparison:
    def __init__(self, system: MechanicalSystem, t: float, q: np.ndarray, v: np.ndarray):
        self.system, self.t, self.q, self.v = system, t, q, v
        self.sizes = typical_size(q)

    def run(self, names: list[str]):
        system = self.system
        for name, parent, check in (
            ("constraint_jacobian", "constraint", self._jacobian),
            ("velocity_jacobian", "velocity_constraint", self._jacobian),
            ("constraint_t", "constraint", self._partial_t),
            ("acceleration_bias", "constraint", self._acceleration_bias),
            ("velocity_bias", "velocity_constraint", self._velocity_bias),
        ):
            if name not in names:
                continue
            size = system.n_constraints if parent == "constraint" else system.n_velocity_constraints
            try:
                check(name, vector_function(system, parent, size))
            except InvalidProblemError as error:
                if error.args and str(error.args[0]).startswith(f"{name} disagrees"):
                    raise
            except Exception:  # undefined here, which the run reports
                continue

    # --- matrices ---------------------------------------------------------------------------------------------------

    def _jacobian(self, name: str, function):
        matrix = self._matrix(name)
        speeds = typical_size(self.v) if np.any(self.v) else self.sizes
        position = name == "constraint_jacobian"
        sizes = self.sizes if position else speeds

        def move(x):
            return function(self.t, self.q + x) if position else function(self.t, self.q, self.v + x)

        def compare(direction):
            value = np.asarray(matrix @ direction).ravel()
            scale = np.asarray(abs(matrix) @ np.abs(direction)).ravel()
            return value, *_slope(lambda s: move(s * direction)), scale

        if _wrong(*compare(sizes * np.cos(0.4 + 1.9 * np.arange(sizes.size)))) is None:
            return
        worst = (0.0, 0, 0, 0.0, 0.0)
        for j in range(min(sizes.size, _MOST_COLUMNS)):
            value, expected, uncertain, scale = compare(sizes[j] * np.eye(sizes.size)[j])
            scale = np.maximum(scale, np.asarray(abs(matrix) @ sizes).ravel() / sizes.size)
            i = _wrong(value, expected, uncertain, scale)
            if i is not None and abs(value[i] - expected[i]) > worst[0]:
                worst = (abs(value[i] - expected[i]), i, j, value[i] / sizes[j], expected[i] / sizes[j])
        if worst[0] > 0.0:
            _, i, j, value, expected = worst
            first = 0 if position else self.system.n_constraints
            label = self.system.label(j if position else self.system.n_q + j)
            self._refuse(name, f"d {self.system.constraint_label(first + i)} / d {label}", value, expected)

    def _matrix(self, name: str):
        function = getattr(self.system, name)
        matrix = function(self.t, self.q.copy(), *last_argument(function, self.system.params))
        if hasattr(matrix, "tocsr") and not is_compiled(function):
            return matrix.tocsr()
        matrix = np.asarray(matrix, dtype=float)
        position = name == "constraint_jacobian"
        rows = self.system.n_constraints if position else self.system.n_velocity_constraints
        if matrix.shape != (rows, self.q.size):
            raise TypeError  # rejected elsewhere with a better message
        return matrix

    # --- vectors ----------------------------------------------------------------------------------------------------

    def _partial_t(self, name: str, function):
        value = self._value(name, self.q)
        step = max(1.0, 1e-3 * abs(self.t))
        expected, uncertain = _slope(lambda s: function(self.t + s * step, self.q))
        expected, uncertain = expected / step, uncertain / step
        self._judge(name, value, expected, uncertain, 1e-3 * self._gradients() * np.max(self.sizes), " / d t", 0)

    def _acceleration_bias(self, name: str, function):
        motion, time = self._motion()
        value = self._value(name, self.q, motion)
        second, uncertain = _curvature(lambda s: function(self.t + s * time, self.q + s * time * motion))
        scale = self._gradients() * np.max(np.abs(motion)) / time
        self._judge(name, value, -second / time**2, uncertain / time**2, scale, _at(motion), 0)

    def _velocity_bias(self, name: str, function):
        motion, time = self._motion()
        value = self._value(name, self.q, motion)
        slope, uncertain = _slope(lambda s: function(self.t + s * time, self.q + s * time * motion, motion))
        first = self.system.n_constraints
        self._judge(name, value, -slope / time, uncertain / time, np.abs(value), _at(motion), first)

    def _value(self, name: str, *arrays) -> np.ndarray:
        velocity = name == "velocity_bias"
        size = self.system.n_velocity_constraints if velocity else self.system.n_constraints
        return vector_function(self.system, name, size)(self.t, *arrays)

    def _gradients(self):
        """Norms of the rows of G, if given."""
        if self.system.constraint_jacobian is None:
            return 0.0
        matrix = self._matrix("constraint_jacobian")
        return np.sqrt(np.asarray((matrix * matrix).sum(axis=1)).ravel()) if matrix.shape[0] else 0.0

    def _motion(self) -> tuple[np.ndarray, float]:
        """A velocity without zeros, and the time in which it moves by the size of the coordinates.

        An admissible motion is added to the given velocity, because formulas may use the constraints.
        """
        v, n = self.v, self.q.size
        rows = self._rows()
        if rows is not None:
            beside = np.cos(0.7 + 1.3 * np.arange(n)) * (typical_size(v) if np.any(v) else self.sizes)
            v = v + beside - np.linalg.pinv(rows, rcond=1e-9) @ (rows @ beside)
        fastest = float(np.max(np.abs(v) / self.sizes, initial=0.0))
        return v, min(1.0, 1.0 / fastest) if fastest > 0.0 else 1.0

    def _rows(self) -> np.ndarray | None:
        """Gradients of all constraints, missing ones by differences; None if there are too many unknowns."""
        n, parts = self.q.size, []
        for name, parent in (("constraint_jacobian", "constraint"), ("velocity_jacobian", "velocity_constraint")):
            if getattr(self.system, parent) is None:
                continue
            if getattr(self.system, name) is not None and n <= _MOST_COLUMNS:
                matrix = self._matrix(name)
                parts.append(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
            elif n <= _MOST_DIFFERENCES:
                parts.append(self._differences(parent))
            else:
                return None
        return np.vstack(parts)

    def _differences(self, parent: str) -> np.ndarray:
        position = parent == "constraint"
        size = self.system.n_constraints if position else self.system.n_velocity_constraints
        function = vector_function(self.system, parent, size)
        columns = []
        for j, h in enumerate(1e-5 * self.sizes):
            x = np.zeros(self.q.size)
            x[j] = h
            ahead, behind = ((self.q + s * x,) if position else (self.q, self.v + s * x) for s in (1.0, -1.0))
            columns.append((function(self.t, *ahead) - function(self.t, *behind)) / (2.0 * h))
        return np.array(columns).T

    def _judge(self, name: str, value, expected, uncertain, scale, behind: str, first: int):
        i = _wrong(value, expected, uncertain, scale)
        if i is not None:
            prefix = "d " if name == "constraint_t" else "the bias of "
            self._refuse(name, f"{prefix}{self.system.constraint_label(first + i)}{behind}", value[i], expected[i])

    def _refuse(self, name: str, what: str, value: float, expected: float):
        raise InvalidProblemError(
            f"{name} disagrees with finite differences of the constraint at t = {self.t:g}: {what} is "
            f"{value:.6g}, but should be {expected + 0.0:.6g}. Remedy: correct it, or omit {name} to have it "
            "computed; system.check(t, q, v) compares all derivatives"
        )


def _at(v: np.ndarray) -> str:
    return f" at v = ({', '.join(f'{x:.4g}' for x in v)})" if v.size <= 6 else " at an admissible velocity"


def _wrong(value, expected, uncertain, scale) -> int | None:
    """The entry with the largest deviation beyond finite-difference errors, or None."""
    allowed = _WRONG * (scale + np.abs(value) + np.abs(expected)) + 10.0 * uncertain
    excess = np.abs(value - expected) / np.where(allowed > 0.0, allowed, 1.0)
    known = np.isfinite(excess) & np.isfinite(expected)
    if not np.any(known & (excess > 1.0)):
        return None
    return int(np.argmax(np.where(known, excess, 0.0)))


def _slope(function) -> tuple[np.ndarray, np.ndarray]:
    """df/ds at 0, and its uncertainty from other increments, the two sides (kinks), and round-off."""
    here, quotients, sides = function(0.0), [], []
    for h in _SHARES:
        ahead, behind = function(h), function(-h)
        quotients.append((ahead - behind) / (2.0 * h))
        sides.append(np.abs(ahead - 2.0 * here + behind) / h)
    noise = _ROUNDOFF * (np.abs(ahead) + np.abs(behind) + np.abs(here)) / h
    return quotients[1], np.abs(quotients[0] - quotients[1]) + sides[1] + noise


def _curvature(function) -> tuple[np.ndarray, np.ndarray]:
    """d^2f/ds^2 at 0, and its uncertainty."""
    here, quotients = function(0.0), []
    for h in _SHARES_OF_BIAS:
        ahead, behind = function(h), function(-h)
        quotients.append((ahead - 2.0 * here + behind) / h**2)
    noise = _ROUNDOFF * (np.abs(ahead) + np.abs(behind) + np.abs(here)) / h**2
    return quotients[1], np.abs(quotients[0] - quotients[1]) + noise
