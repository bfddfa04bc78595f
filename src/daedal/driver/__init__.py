"""The driver, which every problem goes through: request, plan, run, finish.

Begin with `solving.py`, then `solver.py` and `run_segments.py`.
"""
