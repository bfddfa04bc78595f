"""Models with modes and the run through them; sliding, friction, impact and contacts (`models`).

Begin with `problem.py` and `run.py`.
"""
