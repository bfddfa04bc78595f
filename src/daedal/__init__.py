"""Daedal: differential-algebraic equations and constrained mechanisms in Python.

>>> import daedal
>>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], [-1.0])
>>> sol.success
True
"""

from daedal.common.public_names import public_names

__version__ = "0.1.0"

_OLD_NAMES = {
    **{
        name: f"{module}.{name}"
        for module, names in {
            "daedal.methods": (
                "Collocation DASSL DOP853 DOPRI5 Extrapolation HEDOP5 HEM3 HEM4 HEM5 HalfExplicit "
                "ImplicitRungeKutta MEXX ModifiedBDF Multistep MultistepFormula OneLeg PHEM56 RATTLE RK4 "
                "Radau Rosenbrock RungeKuttaTableau SHAKE extrapolation_table"
            ),
            "daedal.linear_solvers": (
                "BandedPreconditioner BlockDiagonalPreconditioner GMRES ILUPreconditioner Preconditioner"
            ),
            "daedal.formulations": (
                "Baumgarte CoordinateProjection EssentialODE FuehrerLeimkuhler GGL Hanke Index1 Index2 "
                "Index3 Knorrenschild Loetstedt MinimalExtension Overdetermined ProjectedInvariants "
                "ReducedProblem StabilisedReduction StateSpace regularise"
            ),
            "daedal.hybrid": (
                "Contact ContactState ElastoPlastic Filippov Friction HybridEvent HybridProblem Impact Mode "
                "Transition UnilateralProblem"
            ),
            "daedal.ensembles": "GPU sample solve_on_gpu",
            "daedal.sensitivity": "Experiment Fit uncertainty",
            "daedal.analysis": "Analysis Conditioning StructureAlong analyse_along analyse_method order_conditions",
            "daedal.studies": "GeneralLinearMethod corrected_multipliers general_linear modified_euler",
            "daedal.linear": "linear_system",
            "daedal.solution": "EventRecord EventTable IVPResult RecognisedSolution Statistics",
            "daedal.errors": (
                "DerivativeWarning EnergyWarning InvalidFileError NonUniqueWarning SensitivityWarning "
                "StatefulFunctionWarning StructurallySingularError SwitchWarning ToleranceWarning TraceWarning "
                "UnknownNameError"
            ),
        }.items()
        for name in names.split()
    },
    "unilateral": "daedal.hybrid.UnilateralProblem",
    "impact": "daedal.hybrid.Impact",
    "elastoplastic": "daedal.hybrid.elastoplastic_contact",
    "breaking": "daedal.hybrid.breaking_joint",
    "conditioning": "daedal.analysis.analyse_conditioning",
    "formula": "daedal.methods.coefficients",
}
"""Former top-level names with their new locations."""

__getattr__, __dir__, __all__ = public_names(
    globals(),
    own=["__version__"],
    not_starred=["viz", "control", "gym", "jax", "pytensor", "torch"],
    old_names=_OLD_NAMES,
)
