"""Parameters with other numbers in the same structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.tracing.parameters import ParameterLayout


def rebuilt(params: Any, layout: ParameterLayout, numbers: np.ndarray) -> Any:
    """`params` with `numbers` in the order of its layout.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.sensitivity.rebuilt import rebuilt
    >>> from daedal.tracing.parameters import ParameterLayout
    >>> params = {"mass": 2.0, "springs": [3.0, 4.0]}
    >>> rebuilt(params, ParameterLayout(params), np.array([1.0, 5.0, 6.0]))
    {'mass': 1.0, 'springs': [5.0, 6.0]}
    """
    return layout.rebuilt(params, numbers.tolist())
