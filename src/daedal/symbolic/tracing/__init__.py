"""Problems whose functions are machine code with exact derivatives, traced from plain functions."""


class DerivativeWarning(UserWarning):
    """A user-supplied derivative differs from that of the function; it is used nevertheless."""


class StatefulFunctionWarning(UserWarning):
    """A function stores data between calls or draws random numbers, so that its result depends on more than its
    arguments."""


class TraceWarning(UserWarning):
    """A function disagrees with its trace; the run was repeated with the original functions."""


class SwitchWarning(UserWarning):
    """A hidden switch is not tracked during a run, or no longer tracked."""
