"""Common base of all formulations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from daedal.errors import InvalidProblemError

if TYPE_CHECKING:
    from daedal.mechanics.formulations.reformulation import Reformulation
    from daedal.mechanics.setting import ConsistentStart


# Level l of a constraint is its l-th derivative :math:`g^{(l)}`, l = 0 .. m; a mechanism has m = 2. A formulation
# imposes one combination :math:`\sum_l \alpha_l\, g^{(l)} = 0`, and possibly lower levels with separate multipliers.
# Dense, sparse and second-order builders all read this declaration, and raise for what they do not support.

# The equation for z_m': M z_m' = f - B lam, in which lam is unknown, or z_m' = a with a and lam from the augmented
# system.
DYNAMICS, ACCELERATION = 0, 1

# Variants: the common form, and exceptions to it in individual formulations.
PLAIN, MINIMAL_EXTENSION, FUEHRER_LEIMKUHLER, KNORRENSCHILD, HANKE, PENALTY = 0, 1, 2, 3, 4, 5

# Kinds of D, along which lower multipliers correct the solution: K^T, M^{-1} B, or a given matrix.
TRANSPOSE, THROUGH_MASS, GIVEN = 0, 1, 2
PROJECTIONS = {"GT": TRANSPOSE, "CT": TRANSPOSE, "B": THROUGH_MASS, "unit": GIVEN}

_MULTIPLIERS = ("value", "derivative")


class Sizes(NamedTuple):
    """Sizes that a declaration may depend on; an assembled system has the same attributes."""

    m: int
    n_c: int
    n_g: int
    linear: bool = False


@dataclass(frozen=True)
class ProjectedSteps:
    """Projection onto the constraints after every step: W, the levels, and the tolerated drift."""

    weight: Any = "M"
    levels: int | None = None
    rtol: float = 0.0
    atol: float = 0.0


@dataclass(frozen=True)
class Shape:
    r"""The declaration of a formulation for a system.

    Attributes
    ----------
    levels : tuple of float
        :math:`\alpha_0, \dots, \alpha_m`, the combination of levels that the top multipliers impose. With
        :math:`\alpha_m \ne 0` the augmented system determines them, so they need not be unknowns.
    top : DYNAMICS or ACCELERATION
        Form of the equation for :math:`z_m'`.
    n_top : int
        Number of top multipliers among the unknowns; they belong to the last rows of K.
    low : int
        The levels 0 .. low - 1 have separate multipliers.
    lowered : bool
        Whether multipliers are derivatives of unknowns, lam = psi'.
    projection : str, matrix or function
        D, the directions along which the lower multipliers correct the solution.
    variant : int
        PLAIN, or the exception of an individual formulation.
    classes : tuple of int, optional
        Index classes of :math:`z_1, \dots, z_m` and of the multipliers, for formulations of an index above 2.
    small_times : (float, float)
        epsilon and mu of the regularisations; their sign depends on the direction of time.
    compliance : float
        epsilon of the penalty.
    steps : ProjectedSteps, optional
        The projection after every step.
    restart : float
        The threshold at which new charts or dependent coordinates are chosen.
    charts : bool
        Whether the unknowns are local coordinates on the constraints.
    """

    levels: tuple[float, ...]
    top: int = DYNAMICS
    n_top: int = 0
    low: int = 0
    lowered: bool = False
    projection: Any = "CT"
    variant: int = PLAIN
    classes: tuple[int, ...] | None = None
    small_times: tuple[float, float] = (0.0, 0.0)
    compliance: float = 0.0
    steps: ProjectedSteps | None = None
    restart: float = 0.0
    charts: bool = False

    def __post_init__(self):
        if self.determined and self.top == DYNAMICS:
            raise ValueError("levels that contain the accelerations require top=ACCELERATION")

    @property
    def determined(self) -> bool:
        """Whether the combination contains the accelerations, so that it determines the multipliers."""
        return self.levels[-1] != 0.0

    @property
    def by_levels(self) -> bool:
        """Whether the formulation consists of one combination of levels, with or without g = 0."""
        lone = self.variant == PLAIN and self.steps is None and not self.charts
        return lone and (self.top == DYNAMICS or self.determined)

    @property
    def along_gradients(self) -> bool:
        """Whether D is the transpose of K."""
        return isinstance(self.projection, str) and PROJECTIONS.get(self.projection) == TRANSPOSE

    def directed(self, direction: int) -> tuple[float, ...]:
        """The combination for a run in the `direction` of time, 1 or -1: damping changes sign backward in time."""
        highest = max(j for j, alpha in enumerate(self.levels) if alpha != 0.0)
        return tuple(alpha * direction ** (highest - j) for j, alpha in enumerate(self.levels))


def level(order: int, m: int) -> tuple[float, ...]:
    """The combination that consists of a single level."""
    return tuple(1.0 if j == order else 0.0 for j in range(m + 1))


def lowered(multipliers: str) -> bool:
    """Whether multipliers are derivatives of unknowns, lam = psi', which lowers the index."""
    if multipliers not in _MULTIPLIERS:
        raise InvalidProblemError(f"multipliers must be 'value' or 'derivative', got {multipliers!r}")
    return multipliers == "derivative"


def index_options(shape: Shape, assembly, n: int) -> dict[str, Any]:
    """DASSL options for the index of the unknowns.

    The error estimates of unknowns of class i are multiplied by h^(i-1) (Wijckmans section 6.3). Multipliers of index 2
    carry the round-off of the constraints divided by h, so their Newton corrections are multiplied by h (BCP section
    5.4).
    """
    m, nx, n_state = assembly.m, assembly.nx, assembly.n_state
    if shape.classes is not None:
        index = [c for j in range(m) for c in [shape.classes[j]] * nx] + [1] * assembly.n_r
        index += [shape.classes[-1]] * (n - len(index))
        return {"variable_index": index, "newton_weights": [c - 1.0 for c in index]}
    if n == n_state or shape.lowered or shape.determined:
        return {}
    return {"newton_weights": [0.0] * n_state + [1.0] * (n - n_state)}


# --- base class -------------------------------------------------------------------------------------------------------


class Formulation:
    """A way to rewrite a constrained system before time discretisation: a frozen dataclass that declares its levels.

    A new formulation needs a `name` and :meth:`shape`; dense, sparse and second-order builders read the shape.

    Examples
    --------
    >>> import daedal
    >>> form = daedal.formulations.GGL()
    >>> isinstance(form, daedal.formulations.Formulation), form.name
    (True, 'ggl')
    """

    name: ClassVar[str]
    ordinary: ClassVar[bool] = False
    """Whether the formulation is an ordinary differential equation, which explicit methods can solve."""
    half_explicit: bool = False
    """Whether the stages of half-explicit methods impose the constraints."""
    stiff: ClassVar[bool] = False
    """Whether the formulation is stiff by construction, which rules out explicit methods."""

    def shape(self, system) -> Shape:
        """The declaration for a system, either `Sizes` or an assembled system."""
        raise NotImplementedError

    def reduce(self, assembly, start: ConsistentStart) -> Reformulation:
        """The equations for an assembled system, ready for a run from `start`."""
        from daedal.mechanics.sparse.sparse_workspace import SparseWorkspace

        shape = self.shape(assembly)
        if isinstance(assembly, SparseWorkspace):
            from daedal.mechanics.formulations.reformulation import SparseReduction

            return SparseReduction(self, shape, assembly, start)
        return self.dense(shape, assembly, start)

    def dense(self, shape: Shape, assembly, start: ConsistentStart) -> Reformulation:
        """The equations for an assembled system with dense matrices."""
        from daedal.mechanics.formulations.dense_forms import DenseReduction

        return DenseReduction(self, shape, assembly, start)
