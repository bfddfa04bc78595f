"""Sensitivity of the solutions of DAEs to perturbations; start with `measure.py`."""
