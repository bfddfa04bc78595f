"""Implicit Runge-Kutta methods: Radau IIA, general tableaux, and collocation of second-order problems."""
