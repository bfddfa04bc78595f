"""The driver of all runs: request, plan, run, finish.

Start with `solving.py`, then `solver.py` and `run_segments.py`.
"""
