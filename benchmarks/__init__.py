"""Daedal measured against the other DAE solvers a Python user can install: ``python -m benchmarks``.

Every solver runs in a process of its own (``worker``), so that a crash, a hang or a library loaded twice in one solver
cannot touch another. The parent asks them in turn, round after round (``measure``), keeps the shortest time of each,
and compares them with Daedal at equal achieved error (``compare``).
"""
