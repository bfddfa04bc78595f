"""Gradients of costs with respect to many parameters, by adjoint equations."""

from daedal.sensitivity.adjoint.gradient import Gradient, gradient

__all__ = ["Gradient", "gradient"]
