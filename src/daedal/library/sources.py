"""The books and papers from which several problems come."""

BRENAN_CAMPBELL_PETZOLD = (
    "K. E. Brenan, S. L. Campbell, L. R. Petzold, Numerical Solution of Initial-Value Problems in "
    "Differential-Algebraic Equations, SIAM Classics 14 (1996)"
)
ASCHER_PETZOLD = (
    "U. M. Ascher, L. R. Petzold, Stability of computational methods for constrained dynamics systems, Technical "
    "Report 91-3, University of British Columbia (1991)"
)
BRASEY_HAIRER = (
    "V. Brasey, E. Hairer, Half-explicit Runge-Kutta methods for differential-algebraic systems of index 2, SIAM J. "
    "Numer. Anal. 30 (1993), pp. 538-552"
)
WIJCKMANS = (
    "P. M. E. J. Wijckmans, Conditioning of Differential Algebraic Equations and Numerical Solution of Multibody "
    "Dynamics, thesis, Eindhoven University of Technology (1996)"
)
WUNDERLICH = (
    "L. Wunderlich, Numerical Solution of Second Order Differential-Algebraic Equations, diploma thesis, TU Berlin "
    "(2005)"
)
HAIRER_WANNER = "E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, 2nd ed., Springer (1996)"
CAMPBELL_GRIEPENTROG = (
    "S. L. Campbell, E. Griepentrog, Solvability of general differential algebraic equations, SIAM J. Sci. Comput. 16 "
    "(1995), pp. 257-270"
)
TEST_SET = "F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers, release 2.4, University of Bari (2008)"
