"""Backward differentiation formulas: DASSL, constant steps, and modified BDF for second-order problems."""
