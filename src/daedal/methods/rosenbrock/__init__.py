"""Rosenbrock methods: linearly implicit, with one factorisation per step."""
