r"""The thresholds on which the choice of formulation and method rests, with their sources: one table for
:func:`daedal.solve` with ``"auto"``, for :func:`daedal.advise`, and for those who show its results.

With h the step that accuracy alone would allow, :math:`s = h |\sigma_F|` is the frozen stiffness, :math:`v = m h V_B`
the turning of the constraint forces against the constraints, :math:`w = h\,\mathrm{rot}` the turning of the constraints
and :math:`h \omega_F` the vibration (Ascher and Petzold, SIAM J. Sci. Comput. 14 (1993), section 4).
"""

# --- the decision between the four cases ------------------------------------------------------------------------------

STIFF = 1.0
"""Of s and of v, from which on forces are stiff, or turn too fast. Measured: on the examples of the paper above."""

TURNING = 0.3
"""Of w, in radians, from which on constraints turn fast. Measured: on the same examples."""

RESOLVED = 1.0
"""Of w: below, steps follow the turning of the constraints, and an explicit method may do so too. A radian."""

VIBRATION = 1.0
"""Of h omega: above, steps pass over vibrations. A step of 1/omega is one in six of a period, 2 pi / omega."""

EXPLICIT_LIMIT = 2.5
"""Of s, v and h omega: stability of methods of order four and five on the negative real axis (2.78 for order four,
3.3 for Dormand and Prince; Hairer and Wanner IV.2), rounded down."""

SAFETY = 1.25
"""The part of EXPLICIT_LIMIT that is used."""

# --- when the automatic choice changes the method ---------------------------------------------------------------------

STABILITY_BOUND = 1.0
"""Of h times the fastest rate of decay, turning or vibration, in units of the size that is suspicious of the method
(`Method.suspicious`): an explicit step of this size is limited by stability, not by accuracy. As STIFF."""

STIFFNESS_OVER = 0.3
"""Of the same products with the steps of a stiff method: below, an explicit method does as well. Chosen well below
STABILITY_BOUND, so that methods do not change to and fro."""

STIFF_GAIN = 10.0
"""Accuracy alone is taken to allow this many times the step at which an explicit method meets its limit. Chosen."""

STEPS_BEFORE_QUESTION = 300
"""Steps of a stiff method before it is asked whether it is still needed; twice as many after each question. Chosen."""

PATIENCE = 50
"""Suspicious steps that pass after a false alarm before it is measured again; twice as many after each. Chosen."""

# --- between the methods for first-order problems ---------------------------------------------------------------------

LARGEST_IN_ONE, SHARPEST_IN_ONE = 12, 1e-8
"""Unknowns up to which, and rtol down to which, Rosenbrock methods begin where a whole step is one piece of machine
code: its generation takes longer with the square of the unknowns, 0.04 s for 3 and 0.15 s for 8, and its order is 5.
Measured."""

LARGEST_DENSE = 100
"""Unknowns with a full matrix up to which Radau IIA begins: it factorises one of n and one to three of 2n for every
step, DASSL one of n for ten to thirty. Measured: docs/methods/which-method.md, as the next two."""

SHARP_WITH_DIFFERENCES = 1e-8
"""Of rtol: above, DASSL begins where derivatives are differences, which cost Radau IIA twice as much, and for every
step. Measured."""

SHARP_WITH_EVENTS = 1e-7
"""Of rtol: above, DASSL begins in place of Radau IIA where events are looked for: a function that turns back within a
long step may hide a pair of zeros. Measured: waves up to three times as fast as the solution."""

SEEN_BY_ROSENBROCK = 1e-3
"""Of rtol: above, DASSL begins in place of Rosenbrock methods where events are looked for or switches are followed;
below, these see as many pairs of zeros as DASSL does. Measured like the former; tests/test_events.py."""

SHARP_FOR_ORDER_8 = 1e-7
"""Of rtol: from here on an ordinary differential equation begins with DOP853 in place of DOPRI5. Measured: evaluations
for the same error, with dense output, are level at 1e-6 to 1e-8 on Lorenz' equations, Arenstorf's orbit, Pleiades. So
do mechanisms with projection: at 1e-7 the times are level and the errors a sixth to a hundredth, on the pendulum, the
double pendulum, the crank-slider, the car axis and the seven-body mechanism."""

LOW_ORDER, MOST_LOW = 2, 3
"""DASSL hands over when so many looks have found it at this order or below: it will not come to higher ones. Chosen."""

SOON = 10.0
"""By which steps of low order may grow between two looks at them: then all is well. Chosen."""

STUCK_BELOW = 1e-4
"""Of rtol: above, low orders are what suits the tolerance. Chosen."""

MOST_REJECTED = 1.0
"""Of rejected attempts for each step: beyond, another method is tried. Chosen."""

FIRST_LOOK = 25
"""Steps after which a run is looked at for the first time, then after twice as many each time. Chosen."""

LEAST_PROGRESS = 1e-6
"""Of the interval: two methods that stop nearer to each other have met the same obstacle. Chosen."""

# --- conditioning -----------------------------------------------------------------------------------------------------

DEPENDENT = 1e12
"""Of ||(C B)^-1||, rows and columns scaled: constraints count as dependent; about four digits are left then."""

ILL_CONDITIONED_MASS = 1e12
"""Of the condition of M: M^-1 is not formed, and steps are projected in the norm of the identity."""
