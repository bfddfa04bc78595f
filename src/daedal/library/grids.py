"""What the problems on square meshes share."""

from __future__ import annotations

import numpy as np


def five_point_pattern(mx: int, my: int):
    """Which points of an ``mx`` by ``my`` mesh, numbered row by row, the five-point stencil couples."""
    from scipy import sparse

    def line(m: int):
        return sparse.diags_array([np.ones(m - 1), np.ones(m), np.ones(m - 1)], offsets=[-1, 0, 1])

    return sparse.kron(sparse.eye_array(my), line(mx)) + sparse.kron(line(my), sparse.eye_array(mx))
