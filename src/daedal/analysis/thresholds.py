r"""Thresholds for the choice of formulation and method, with their sources: one table for :func:`daedal.solve` with
``"auto"``, :func:`daedal.advise`, and the tables of their results.

With h the step size that accuracy alone would allow, :math:`s = h |\sigma_F|` is the frozen stiffness, :math:`v = m h
V_B` the rotation of the constraint forces relative to the constraints, :math:`w = h\,\mathrm{rot}` the rotation of the
constraints and :math:`h \omega_F` the vibration (Ascher and Petzold, SIAM J. Sci. Comput. 14 (1993), section 4). Values
without a source were chosen, not measured.
"""

# --- the decision between the four cases ------------------------------------------------------------------------------

STIFF = 1.0
"""For s and v: from this value on, forces are stiff or rotate too fast. Measured on the examples of the paper above."""

TURNING = 0.3
"""For w, in radians: from this value on, constraints rotate rapidly. Measured on the same examples."""

RESOLVED = 1.0
"""For w: below this value, steps resolve the rotation of the constraints, and explicit methods are suitable."""

VIBRATION = 1.0
"""For h omega: above this value, steps do not resolve vibrations. A step of 1/omega is about a sixth of a period, 2 pi
/ omega."""

EXPLICIT_LIMIT = 2.5
"""For s, v and h omega: stability limit of methods of order four and five on the negative real axis (2.78 for order
four, 3.3 for Dormand and Prince; Hairer and Wanner IV.2), rounded down."""

SAFETY = 1.25
"""Safety factor by which EXPLICIT_LIMIT is divided."""

# --- changes of the method by the automatic choice --------------------------------------------------------------------

STABILITY_BOUND = 1.0
"""For h times the fastest rate of decay, rotation or vibration, in units of the method's stiffness check
(`Method.stiffness_check`): an explicit step of this size is limited by stability, not by accuracy. Equal to STIFF."""

STIFFNESS_OVER = 0.3
"""For the products of STABILITY_BOUND, with the steps of a stiff method: below this value, an explicit method is as
efficient. It is well below STABILITY_BOUND to prevent repeated switching."""

STIFF_GAIN = 10.0
"""Assumed ratio of the step allowed by accuracy to the step at which an explicit method reaches its stability limit."""

STEPS_BEFORE_QUESTION = 300
"""Number of steps of a stiff method after which its necessity is checked; doubled after each check."""

PATIENCE = 50
"""Number of suspicious steps between a false alarm and the next measurement; doubled after each false alarm."""

# --- between the methods for first-order problems ---------------------------------------------------------------------

LARGEST_IN_ONE, SHARPEST_IN_ONE = 12, 1e-8
"""Largest number of unknowns, and smallest rtol, for starting with Rosenbrock methods if a whole step is one compiled
function: its generation time grows with the square of the unknowns, 0.04 s for 3 and 0.15 s for 8, and its order is 5.
Measured."""

LARGEST_DENSE = 100
"""Largest number of unknowns with a dense matrix for starting with Radau IIA: it factorises one matrix of order n and
one to three of order 2n per step, DASSL one of order n every ten to thirty steps. Measured:
docs/methods/which-method.md, as are the next two."""

SHARP_WITH_DIFFERENCES = 1e-8
"""For rtol: above this value, DASSL starts if derivatives are finite differences, which cost Radau IIA twice as much,
in every step. Measured."""

SHARP_WITH_EVENTS = 1e-7
"""For rtol: above this value, DASSL starts instead of Radau IIA if events are located, since a function that turns back
within a long step may hide a pair of zeros. Measured: waves up to three times as fast as the solution."""

SEEN_BY_ROSENBROCK = 1e-3
"""For rtol: above this value, DASSL starts instead of Rosenbrock methods if events are located or switches are tracked;
below it, these detect as many pairs of zeros as DASSL. Measured in the same way; see tests/test_events.py."""

SHARP_FOR_ORDER_8 = 1e-7
"""For rtol: below this value, ordinary differential equations start with DOP853 instead of DOPRI5. Measured:
evaluations for the same error, with dense output, are equal at 1e-6 to 1e-8 on the Lorenz equations, Arenstorf's orbit
and Pleiades.
Mechanisms with projection behave alike: at 1e-7 run times are equal and errors smaller by factors of 6 to 100, on the
pendulum, the double pendulum, the crank-slider, the car axis and the seven-body mechanism."""

LOW_ORDER, MOST_LOW = 2, 3
"""DASSL is replaced if MOST_LOW checks find it at order LOW_ORDER or below, since it will not reach higher orders."""

SOON = 10.0
"""Ratio of the step sizes at two successive checks from which DASSL continues, even at a low order."""

STUCK_BELOW = 1e-4
"""For rtol: above this value, low orders are sufficient, and DASSL is not replaced because of them."""

MOST_REJECTED = 1.0
"""Rejected attempts per step above which another method is tried."""

FIRST_LOOK = 25
"""Steps before a run is first checked; doubled after each check."""

LEAST_PROGRESS = 1e-6
"""As a fraction of the interval: two methods that stop closer together have met the same obstacle."""

# --- conditioning -----------------------------------------------------------------------------------------------------

DEPENDENT = 1e12
"""For ||(C B)^-1|| with scaled rows and columns: from this value on, constraints count as dependent; about four digits
remain."""

ILL_CONDITIONED_MASS = 1e12
"""For the condition number of M: above this value, M^-1 is not formed, and steps are projected in the Euclidean
norm."""
