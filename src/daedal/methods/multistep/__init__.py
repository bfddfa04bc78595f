"""Linear multistep methods with given coefficients."""
