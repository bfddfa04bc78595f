"""The public surface: every name that a user may rely on, and the old ones that still work."""

import functools
import importlib
import re
import subprocess
import sys
import warnings
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import pytest

import daedal

# Names that are reached after `import daedal`: those at the top, and those of modules. `multibody`, `circuits`,
# `viz` and `library` have lists of their own.
SURFACE = {
    "": """
        DaedalError
        DaedalWarning
        Ensemble
        Event
        HessenbergDAE
        HybridSolution
        ImplicitDAE
        InconsistentInitialError
        IntegrationError
        InvalidProblemError
        LinearDAE
        MassMatrixDAE
        MechanicalSolution
        MechanicalSystem
        ODE
        Problem
        SecondOrderDAE
        SecondOrderSolution
        SemiExplicitDAE
        Sensitivities
        Simulation
        Solution
        Solver
        Steps
        Table
        Unevaluable
        __version__
        advise
        analyse
        analysis
        analyze
        circuits
        compare
        consistent_initial
        ensembles
        errors
        exchange
        export_fmu
        fit
        formulations
        from_sympy
        gradient
        hybrid
        import_fmu
        lagrange
        library
        linear
        linear_solvers
        linearise
        load
        methods
        multibody
        prepare
        reduce_index
        sensitivity
        simulation
        solution
        solve
        solve_dae
        solve_ivp
        solve_many
        studies
        studio
    """.split(),
    "methods": """
        Collocation
        DASSL
        DOP853
        DOPRI5
        Extrapolation
        HEDOP5
        HEM3
        HEM4
        HEM5
        HalfExplicit
        ImplicitRungeKutta
        MEXX
        Method
        ModifiedBDF
        Multistep
        MultistepFormula
        OneLeg
        PHEM56
        RATTLE
        RK4
        Radau
        Rosenbrock
        RungeKuttaTableau
        SHAKE
        coefficients
        extrapolation_table
    """.split(),
    "linear_solvers": """
        BandedPreconditioner
        BlockDiagonalPreconditioner
        GMRES
        ILUPreconditioner
        Preconditioner
    """.split(),
    "formulations": """
        Baumgarte
        CoordinateProjection
        EssentialODE
        Formulation
        FuehrerLeimkuhler
        GGL
        Hanke
        Index1
        Index2
        Index3
        Knorrenschild
        Loetstedt
        MinimalExtension
        Overdetermined
        ProjectedInvariants
        ReducedProblem
        StabilisedReduction
        StateSpace
        regularise
    """.split(),
    "hybrid": """
        Contact
        ContactState
        ElastoPlastic
        Filippov
        Friction
        HybridEvent
        HybridProblem
        Impact
        ImpactResult
        Mode
        Transition
        UnilateralProblem
        breaking_joint
        elastoplastic_contact
    """.split(),
    "ensembles": """
        Aggregator
        GPU
        GPUResults
        Histogram
        Quantiles
        sample
        solve_on_gpu
    """.split(),
    "sensitivity": """
        Experiment
        Fit
        Gradient
        Uncertainty
        uncertainty
    """.split(),
    "analysis": """
        Advice
        Analysis
        Certificate
        ComparedRun
        Comparison
        Conditioning
        LinearModel
        MethodAnalysis
        MultistepAnalysis
        Prediction
        RungeKuttaAnalysis
        StructureAlong
        analyse_along
        analyse_conditioning
        analyse_method
        certify
        order_conditions
    """.split(),
    "studies": """
        GeneralLinearMethod
        GeneralLinearResult
        ModifiedEulerResult
        corrected_multipliers
        general_linear
        modified_euler
        reproduce
    """.split(),
    "simulation": """
        Recording
        Sampled
        SavedState
        SimulationState
    """.split(),
    "linear": """
        CharacteristicValues
        Completion
        Consistency
        DerivativeArray
        FirstOrderForms
        InitialValues
        LinearSolution
        MatrixChain
        Pencil
        QuasiPolynomial
        RankChangeError
        RankDecision
        SecondOrder
        SecondOrderStrangeness
        Solvability
        StandardCanonicalForm
        Strangeness
        StrangenessFree
        TimeVarying
        UnclearRankError
        WeierstrassForm
        drazin_inverse
        exponential
        linear_system
        polynomial
        rank_decision
        sine
        triangular_order
    """.split(),
    "errors": """
        DerivativeWarning
        EnergyWarning
        InvalidFileError
        MissingPackageError
        NonUniqueWarning
        SensitivityWarning
        StatefulFunctionWarning
        StructurallySingularError
        SwitchWarning
        ToleranceWarning
        TraceWarning
        UnknownNameError
    """.split(),
    "solution": """
        DenseSolution
        EventRecord
        EventTable
        HessenbergSolution
        History
        IVPResult
        MechanicalStart
        MechanicalState
        RecognisedSolution
        SecondOrderState
        Statistics
        Status
    """.split(),
    "exchange": """
        ExportedFMU
        ImportedFMU
    """.split(),
}
"""Public names by module; "" is the package."""
NOT_STARRED = {"viz", "control", "gym", "jax", "pytensor", "torch"}
"""Modules that ``from daedal import *`` leaves out: one takes long, the others bear the names of packages."""


def module_of(name):
    return attrgetter(name)(daedal) if name else daedal


@pytest.mark.parametrize("name", SURFACE)
def test_the_public_names_are_these(name):
    assert sorted(module_of(name).__all__) == SURFACE[name]
    assert all(hasattr(module_of(name), word) for word in SURFACE[name])


@pytest.mark.parametrize("name", SURFACE)
def test_modules_show_public_names_only(name):
    assert set(dir(module_of(name))) == {*SURFACE[name], *(NOT_STARRED if not name else [])}


def test_the_top_level_is_small():
    names = [name for name in SURFACE[""] if not isinstance(getattr(daedal, name), ModuleType)]
    assert len(names) <= 48


@pytest.mark.parametrize("name", [*SURFACE, "multibody", "circuits", "viz"])
def test_every_public_name_has_an_example(name):
    """They are run with all docstrings, see test_docs.py."""
    module = module_of(name)
    values = {word: getattr(module, word) for word in module.__all__ if word not in {"__version__", "ground"}}
    texts = {
        word: vars(value)["__doc__"] if isinstance(value, type) else value.__doc__ for word, value in values.items()
    }
    assert [word for word, text in texts.items() if ">>>" not in text] == []


MODULES = [
    "",
    "linear",
    *(name for name in SURFACE if name not in {"", "linear"}),
    "multibody",
    "circuits",
    "library",
    "viz",
]
INTERNAL = """
    BodyTree Chains Closures ContactWatch GraphFunction JointCoordinate MachineFunction NativeFunction Plan Prepared
    Piece Record Sum Switching _ComputedBasis _GivenBasis
""".split()
"""Types that public methods return to other parts of Daedal, not to users."""


CLASSES: dict[str, type] = {}


def returned_types(value):
    """Classes of Daedal in the return annotations of a function, or of the public methods of a class."""
    members = {name: one for kind in getattr(value, "__mro__", ()) for name, one in vars(kind).items()}
    chosen = [one for name, one in members.items() if not name.startswith("_") or name in {"__call__", "__getitem__"}]
    for one in chosen if isinstance(value, type) else [value]:
        one = next((f for f in (getattr(one, at, None) for at in ("fget", "func", "__func__")) if f), one)
        words = re.findall(r"[A-Za-z_]\w*", str(getattr(one, "__annotations__", {}).get("return", "")))
        found = [vars(sys.modules[one.__module__]).get(word) or CLASSES.get(word) for word in words]
        yield from (kind for kind in found if isinstance(kind, type) and kind.__module__.startswith("daedal."))


@functools.cache
def public_values():
    return {id(value): value for name in MODULES for value in map(partial(getattr, module_of(name)), names_of(name))}


def names_of(name):
    return [word for word in module_of(name).__all__ if word not in NOT_STARRED and not word.startswith("__")]


@pytest.mark.parametrize("name", MODULES)
def test_types_of_results_can_be_named_in_annotations(name):
    values = {id(value): value for value in public_values().values()}
    CLASSES.update(
        {
            kind.__name__: kind
            for module in [*sys.modules.values()]
            if getattr(module, "__name__", "").startswith("daedal.")
            for kind in vars(module).values()
            if isinstance(kind, type) and kind.__module__ == module.__name__
        }
    )
    waiting, missing = [getattr(module_of(name), word) for word in names_of(name)], set()
    while waiting:
        for kind in returned_types(waiting.pop()):
            if id(kind) not in values and kind.__name__ not in INTERNAL:
                values[id(kind)] = kind
                waiting.append(kind)
                missing.add(kind)
    places = [module_of(place) for place in MODULES]
    assert [kind.__name__ for kind in missing if not any(getattr(at, kind.__name__, 0) is kind for at in places)] == []


def test_no_name_is_in_two_places():
    """A name at the top is nowhere else: there is one way to write it."""
    inner = [word for name, words in SURFACE.items() if name for word in words]
    assert len(inner) == len(set(inner))
    assert not {*SURFACE[""]} & {*inner}


def test_no_public_name_is_hidden_by_a_module_of_the_same_name():
    """``import daedal.methods.tableau`` sets an attribute of `daedal.methods`."""
    for name, words in SURFACE.items():
        package = module_of(name)
        modules = {entry.stem for path in getattr(package, "__path__", ()) for entry in Path(path).iterdir()}
        assert [word for word in words if word in modules and not isinstance(getattr(package, word), ModuleType)] == []


OLD = {f"daedal.{name}": place for name, place in daedal._OLD_NAMES.items()}
OLD["daedal.ensembles.Reduction"] = "daedal.ensembles.Aggregator"


@pytest.mark.parametrize("name", OLD)
def test_an_old_name_works_and_names_the_new_one(name):
    with pytest.warns(DeprecationWarning, match=f"^{name} is now {OLD[name]}$") as caught:
        old = attrgetter(name.removeprefix("daedal."))(daedal)
    assert old is attrgetter(OLD[name].removeprefix("daedal."))(daedal)
    assert {Path(warning.filename) for warning in caught} == {Path(__file__)}


def test_importing_an_old_name_points_at_the_line_of_the_user():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from daedal import DASSL  # noqa: F401
    assert {Path(warning.filename) for warning in caught} == {Path(__file__)}


def test_new_names_do_not_warn():
    code = "\n".join(f"daedal.{name + '.' if name else ''}{word}" for name, words in SURFACE.items() for word in words)
    subprocess.run([sys.executable, "-W", "error", "-c", f"import daedal\n{code}"], check=True)


@pytest.mark.parametrize("name", ["DASL", "methods.DASL", "formulations.ggl", "hybrid._private"])
def test_unknown_names_are_attribute_errors(name):
    with pytest.raises(AttributeError, match=name.rpartition(".")[2]):
        attrgetter(name)(daedal)


@pytest.mark.parametrize("name", [name for name in SURFACE if name not in {"", "linear"}])
def test_names_are_imported_from_their_module(name):
    module = importlib.import_module(f"daedal.{name}")
    assert module is module_of(name)


def decay():
    return daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1)


def test_an_old_keyword_works_and_names_the_new_one():
    with pytest.warns(DeprecationWarning, match=r"^solve_many\(initials=\.\.\.\) is now initial=\.\.\.$") as caught:
        ensemble = daedal.solve_many(decay(), (0.0, 1.0), initials=([[1.0], [2.0]], None))
    assert ensemble.members == 2 and {Path(warning.filename) for warning in caught} == {Path(__file__)}


POINT = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0], lambda t, q: [q[1]], n_q=2, n_constraints=1)
OF_A_PROBLEM = {
    "Friction": {"direction": [1.0, 0.0], "mu": 0.3, "normal": 1.0},
    "Impact": {"contacts": lambda t, q: q[0]},
    "UnilateralProblem": {"contacts": lambda t, q: q[0]},
    "breaking_joint": {"rows": 0, "limit": 1.0},
    "elastoplastic_contact": {"gap": lambda t, q: q[0], "law": daedal.hybrid.ElastoPlastic(2.0, 1.0, 3.0, 0.1)},
}


@pytest.mark.parametrize("name", OF_A_PROBLEM)
def test_models_of_a_problem_accept_the_old_keyword_of_its_argument(name):
    make = getattr(daedal.hybrid, name)
    with pytest.warns(DeprecationWarning, match=rf"^{name}\(system=\.\.\.\) is now problem=\.\.\.$"):
        old = make(system=POINT, **OF_A_PROBLEM[name])
    assert type(old) is type(make(problem=POINT, **OF_A_PROBLEM[name]))


def test_an_old_and_a_new_keyword_together_are_refused():
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match="both initial= and its old name initials="):
        daedal.solve_many(decay(), (0.0, 1.0), initial=([[1.0]], None), initials=([[1.0]], None))


def test_analyze_is_the_twin_of_analyse():
    assert daedal.analyze is daedal.analyse
