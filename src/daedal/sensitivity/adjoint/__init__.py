"""Gradients of costs with respect to many parameters, by adjoint equations."""
