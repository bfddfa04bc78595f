"""Extrapolation of linearly implicit Euler steps and of half-explicit midpoint steps (MEXX)."""
