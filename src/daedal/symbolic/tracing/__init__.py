"""Problems whose functions are machine code with exact derivatives, traced from plain functions."""


class DerivativeWarning(UserWarning):
    """A derivative given by the user differs from that of the function; it is used nevertheless."""


class StatefulFunctionWarning(UserWarning):
    """A function remembers earlier calls or draws random numbers, so its result depends on more than its arguments."""


class TraceWarning(UserWarning):
    """A function disagrees with its trace; the run was repeated with the original functions."""


class SwitchWarning(UserWarning):
    """A hidden switch of a run is not followed, or no longer followed."""
