"""Large mechanical systems with sparse mass matrix and constraint Jacobian."""
