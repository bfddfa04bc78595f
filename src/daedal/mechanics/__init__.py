"""Constrained systems in compiled code: what is evaluated of them, and the geometry of their constraints."""
