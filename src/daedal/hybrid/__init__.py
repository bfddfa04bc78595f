"""Models with modes and the run through them; sliding, friction, impact and contacts (`models`).

Begin with `hybrid_problem.py` and `hybrid_run.py`.
"""
