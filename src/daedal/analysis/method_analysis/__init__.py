"""Properties of methods derived from their coefficients: orders, stability, and convergence on DAEs."""
