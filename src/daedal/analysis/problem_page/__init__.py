"""Analysis of a problem before it is solved: structure, index, constraints and degrees of freedom on one page."""
