"""Constrained systems in compiled code: what is evaluated of them, the geometry of their constraints, formulations.

Begin with `constrained.py` and `assembly.py`; `sparse` is the same with sparse matrices.
"""
