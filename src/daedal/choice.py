"""Which formulation and which method: the user's, or what the measurements of the run ask for."""

from __future__ import annotations

from daedal.errors import InvalidProblemError
from daedal.formulations import CoordinateProjection, named_formulation

EXPLICIT = ("dopri5", "rk4")


def named_method(method, options):
    """A method object from its name."""
    from daedal.methods.dassl import DASSL
    from daedal.methods.runge_kutta import DOPRI5, RK4

    known = {"dassl": DASSL, "dopri5": DOPRI5, "rk4": RK4}
    if isinstance(method, tuple(known.values())):
        if options:
            raise InvalidProblemError(
                f"options {', '.join(options)} go with a method given by name; "
                f"here they belong inside {type(method).__name__}(...)"
            )
        return method
    if isinstance(method, str) and method.lower() in known:
        kind = known[method.lower()]
        unknown = [name for name in options if name not in kind.__dataclass_fields__]
        if unknown:
            raise InvalidProblemError(
                f"unknown option {', '.join(unknown)}; options of solve and of {kind.__name__} "
                f"({', '.join(kind.__dataclass_fields__)}) are accepted"
            )
        return kind(**options)
    if isinstance(method, str):
        raise InvalidProblemError(f"unknown method '{method}'; known: auto, {', '.join(known)}")
    raise InvalidProblemError(f"method must be a name or a method object such as DASSL(), got {method!r}")


class Choice:
    """Formulation and method of the current segment, and whether another segment follows."""

    def __init__(self, assembly, start, request, formulation, method):
        from daedal.methods.dassl import DASSL
        from daedal.methods.runge_kutta import DOPRI5

        self.notes: list[str] = []
        self.changed = True
        self.watches_amplification = False
        self.automatic = formulation == "auto" and method == "auto"
        self.method = None if isinstance(method, str) and method == "auto" else method
        self.formulation = None
        if not (isinstance(formulation, str) and formulation == "auto"):
            self.formulation = named_formulation(formulation)
        if self.automatic:
            self.formulation, self.method = CoordinateProjection(assembly.output_weight), DOPRI5(stop_when_stiff=True)
        elif self.formulation is None:
            explicit = self.method.name in EXPLICIT
            self.formulation = CoordinateProjection(assembly.output_weight) if explicit else named_formulation("ggl")
        elif self.method is None:
            ordinary = ("index1", "baumgarte", "projection", "state_space", "essential")
            self.method = DOPRI5() if self.formulation.name in ordinary else DASSL()

    def goes_on(self, segment) -> bool:
        """Whether the run has to go on in another segment; prepares it."""
        from daedal.methods.dassl import DASSL
        from daedal.methods.dassl_run import HOOK_STOPPED
        from daedal.methods.runge_kutta_run import STIFF

        if segment.outcome.reason == HOOK_STOPPED:
            return True
        if segment.outcome.reason == STIFF:
            self.changed = True
            self.formulation, self.method = named_formulation("ggl"), DASSL()
            return True
        return False
