"""Consistent initial values. Start with `consistent.py`, and `jet.py` for problems of any index."""

from daedal.initial.consistent import consistent_initial

__all__ = ["consistent_initial"]
