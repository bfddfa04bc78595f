"""Half-explicit Runge-Kutta methods for index 2 and mechanisms."""
