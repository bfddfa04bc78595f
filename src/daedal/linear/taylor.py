"""Truncated Taylor series as numbers: a function of t that is called with one returns its derivatives.

NumPy's functions call the methods of objects: ``np.sin(t)`` becomes ``t.sin()``. Recurrences as in A. Griewank, A.
Walther, Evaluating Derivatives, SIAM 2008, chapter 13.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Taylor:
    """c[0] + c[1] (t - t0) + c[2] (t - t0)^2 + ..., up to the length of c.

    Comparisons look at c[0]: a function with branches is differentiated in the branch to which t0 belongs.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.linear.taylor import Taylor
    >>> np.exp(2.0 * Taylor.variable(0.0, 4)).c
    array([1.        , 2.        , 2.        , 1.33333333])
    """

    __slots__ = ("c",)

    def __init__(self, c: Any):
        self.c = np.asarray(c, dtype=float)

    @classmethod
    def variable(cls, t: float, count: int) -> Taylor:
        """t itself, with so many coefficients."""
        c = np.zeros(count)
        c[:2] = [t, 1.0][:count]
        return cls(c)

    def _of(self, other: Any) -> np.ndarray | None:
        if isinstance(other, Taylor):
            return other.c
        if isinstance(other, (int, float, np.integer, np.floating)):
            c = np.zeros(self.c.size)
            c[0] = other
            return c
        return None

    def __add__(self, other: Any) -> Any:
        c = self._of(other)
        return NotImplemented if c is None else Taylor(self.c + c)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        c = self._of(other)
        return NotImplemented if c is None else Taylor(self.c - c)

    def __rsub__(self, other: Any) -> Any:
        c = self._of(other)
        return NotImplemented if c is None else Taylor(c - self.c)

    def __mul__(self, other: Any) -> Any:
        c = self._of(other)
        return NotImplemented if c is None else Taylor(np.convolve(self.c, c)[: self.c.size])

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        c = self._of(other)
        return NotImplemented if c is None else Taylor(_quotient(self.c, c))

    def __rtruediv__(self, other: Any) -> Any:
        c = self._of(other)
        return NotImplemented if c is None else Taylor(_quotient(c, self.c))

    def __pow__(self, power: Any) -> Any:
        if isinstance(power, Taylor):
            return (power * self.log()).exp()
        if isinstance(power, (int, np.integer)) or float(power).is_integer():
            result, base = Taylor(np.eye(1, self.c.size)[0]), self if power >= 0 else 1.0 / self
            for _ in range(abs(int(power))):
                result = result * base
            return result
        return (float(power) * self.log()).exp()

    def __rpow__(self, base: Any) -> Taylor:
        return (float(np.log(base)) * self).exp()

    def __neg__(self) -> Taylor:
        return Taylor(-self.c)

    def __pos__(self) -> Taylor:
        return self

    def __abs__(self) -> Taylor:
        return -self if self.c[0] < 0.0 else self

    def __lt__(self, other: Any) -> bool:
        return bool(self.c[0] < _value(other))

    def __le__(self, other: Any) -> bool:
        return bool(self.c[0] <= _value(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.c[0] > _value(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self.c[0] >= _value(other))

    def exp(self) -> Taylor:
        c = np.zeros_like(self.c)
        c[0] = np.exp(self.c[0])
        rate = self.c * np.arange(self.c.size)
        for k in range(1, c.size):
            c[k] = rate[1 : k + 1] @ c[k - 1 :: -1][:k] / k
        return Taylor(c)

    def log(self) -> Taylor:
        return self._integral(np.log(self.c[0]), Taylor(np.eye(1, self.c.size)[0]) / self)

    def sqrt(self) -> Taylor:
        c = np.zeros_like(self.c)
        c[0] = np.sqrt(self.c[0])
        for k in range(1, c.size):
            c[k] = (self.c[k] - c[1:k] @ c[k - 1 : 0 : -1]) / (2.0 * c[0])
        return Taylor(c)

    def _sine_and_cosine(self, sign: float) -> tuple[np.ndarray, np.ndarray]:
        """(sin, cos) for sign -1, (sinh, cosh) for +1."""
        s, c = np.zeros_like(self.c), np.zeros_like(self.c)
        first = (np.sin, np.cos) if sign < 0.0 else (np.sinh, np.cosh)
        s[0], c[0] = (function(self.c[0]) for function in first)
        rate = self.c * np.arange(self.c.size)
        for k in range(1, s.size):
            s[k] = rate[1 : k + 1] @ c[k - 1 :: -1][:k] / k
            c[k] = sign * (rate[1 : k + 1] @ s[k - 1 :: -1][:k]) / k
        return s, c

    def sin(self) -> Taylor:
        return Taylor(self._sine_and_cosine(-1.0)[0])

    def cos(self) -> Taylor:
        return Taylor(self._sine_and_cosine(-1.0)[1])

    def tan(self) -> Taylor:
        return self.sin() / self.cos()

    def sinh(self) -> Taylor:
        return Taylor(self._sine_and_cosine(1.0)[0])

    def cosh(self) -> Taylor:
        return Taylor(self._sine_and_cosine(1.0)[1])

    def tanh(self) -> Taylor:
        return self.sinh() / self.cosh()

    def arctan(self) -> Taylor:
        return self._integral(np.arctan(self.c[0]), 1.0 / (1.0 + self * self))

    def _integral(self, value: float, slope: Taylor) -> Taylor:
        """The function with this value and this derivative with respect to self."""
        rate = np.convolve(slope.c, (self.c * np.arange(self.c.size))[1:])[: self.c.size - 1]
        return Taylor(np.concatenate([[value], rate / np.arange(1, self.c.size)]))


def _value(other: Any) -> float:
    return float(other.c[0]) if isinstance(other, Taylor) else float(other)


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = np.zeros_like(a)
    for k in range(a.size):
        c[k] = (a[k] - c[:k] @ b[k:0:-1]) / b[0]
    return c
