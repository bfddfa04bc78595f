"""Endings of a run or of a slice: shared by kernels, drivers and messages.

Failure codes are DASSL's IDID (Brenan, Campbell, Petzold, section 5.3).
"""

from enum import IntEnum


class Ending(IntEnum):
    """Why the compiled loop returned: positive for normal endings, negative for failures."""

    FINISHED = 2
    EVENT_STOP = 4
    HOOK_STOPPED = 6
    STIFF = 8
    BUFFER_FULL = 10
    INTERRUPTED = 12
    TROUBLED = 14
    MAX_STEPS = -1
    TOO_ACCURATE = -2
    ZERO_WEIGHT = -3
    ERROR_TEST_FAILED = -6
    NEWTON_FAILED = -7
    MATRIX_SINGULAR = -8
    ERROR_THEN_NEWTON_FAILED = -9
    UNEVALUABLE = -10
    CALLBACK_RAISED = -11
    KRYLOV_FAILED = -14
    STALLED = -15

    @property
    def failed(self) -> bool:
        """Whether the run failed."""
        return self < 0

    @property
    def meaning(self) -> str:
        """A description; ``{steps}`` and ``{variable}`` are placeholders filled in by the run."""
        return MEANINGS[self]


MEANINGS = {
    Ending.FINISHED: "the end of the interval was reached",
    Ending.EVENT_STOP: "a terminal event stopped the run",
    Ending.HOOK_STOPPED: "the owner of the equations stopped the run",
    Ending.STIFF: "the steps seem to be limited by stability",
    Ending.BUFFER_FULL: "the buffers are full: the run continues when they are emptied",
    Ending.INTERRUPTED: "the run was interrupted",
    Ending.TROUBLED: "steps fail repeatedly: the owner of the run may remove the cause and continue",
    Ending.MAX_STEPS: "the limit of {steps} was reached",
    Ending.TOO_ACCURATE: "the tolerances require more digits than double precision has",
    Ending.ZERO_WEIGHT: "the error weight rtol |y| + atol of {variable} is zero",
    Ending.ERROR_TEST_FAILED: "the error estimate stayed above the tolerance, however short the step",
    Ending.NEWTON_FAILED: "Newton's iteration for the next step did not converge, however short the step",
    Ending.MATRIX_SINGULAR: "the matrix of Newton's iteration, dF/dy + cj dF/dy', is singular",
    Ending.ERROR_THEN_NEWTON_FAILED: "the error test failed repeatedly, and then Newton's iteration did not converge",
    Ending.UNEVALUABLE: "the equations could not be evaluated at the next step, however short",
    Ending.CALLBACK_RAISED: "a function raised an exception",
    Ending.STALLED: "100000 steps have advanced by less than a thousandth of the interval",
    Ending.KRYLOV_FAILED: "GMRES could not solve the linear systems of Newton's iteration",
}
