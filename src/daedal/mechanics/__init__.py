"""Constrained systems in compiled code: evaluation, projections onto the constraints, formulations.

Start reading at `constrained.py` and `system_workspace.py`; `sparse` is the counterpart for sparse matrices.
"""
