"""Explicit Runge-Kutta methods, with projection for mechanisms."""
