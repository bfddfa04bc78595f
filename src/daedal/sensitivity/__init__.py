"""Derivatives of solutions with respect to parameters and initial values."""
