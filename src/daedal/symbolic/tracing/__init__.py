"""Problems whose functions are machine code with exact derivatives, made from problems in plain functions."""


class DerivativeWarning(UserWarning):
    """A derivative that the user gave is not that of the function; it is used as it is."""


class StatefulFunctionWarning(UserWarning):
    """A function remembers earlier calls, or draws random numbers: what it gives is no function of its arguments."""


class TraceWarning(UserWarning):
    """A function is not what its trace says; the run was repeated with the functions as they are."""


class SwitchWarning(UserWarning):
    """A hidden switch of a run is not followed, or no longer."""
