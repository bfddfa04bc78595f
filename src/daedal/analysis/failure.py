"""What an integrator knows when it gives up."""

from dataclasses import dataclass, field

import numpy as np

from daedal.kernels.endings import Ending


@dataclass(frozen=True)
class Failure:
    """The state of a run that could not go on; the raw material of a diagnosis.

    Attributes
    ----------
    code : Ending
        Why the run ended, DASSL's IDID.
    t, h, order : float, float, int
        Last good time, step size and order of the failed attempt.
    y, yp : numpy.ndarray
        The last good values.
    tried_y : numpy.ndarray
        The values of the failed attempt (may hold NaN).
    correction : numpy.ndarray
        y - y(0) of the failed attempt, whose weighted norm is tested.
    weights : numpy.ndarray
        rtol |y| + atol.
    cj : float
        Leading coefficient of the failed attempt.
    steps, error_test_failures, newton_failures : int
        Totals of the run.
    attempt_error_failures, attempt_newton_failures : int
        Failures inside the last step.
    first_step_failures : int
        Failures before the first step was accepted.
    t_span : tuple of float
    jacobian_unevaluable : bool
        Whether the user's jacobian, not the residual, gave NaN or could not be evaluated (Ending.UNEVALUABLE).
    component : int
        The variable concerned (Ending.ZERO_WEIGHT), else -1.
    start : tuple, optional
        t, y and y' where the run started.
    """

    code: Ending
    t: float
    h: float
    order: int
    y: np.ndarray
    yp: np.ndarray
    tried_y: np.ndarray
    correction: np.ndarray
    weights: np.ndarray
    cj: float
    steps: int
    error_test_failures: int
    newton_failures: int
    attempt_error_failures: int
    attempt_newton_failures: int
    first_step_failures: int
    t_span: tuple[float, float]
    component: int = -1
    jacobian_unevaluable: bool = False
    start: tuple[float, np.ndarray, np.ndarray] | None = None
    included: np.ndarray = field(default_factory=lambda: np.zeros(0))
