"""Rosenbrock methods: linearly implicit, one factorisation a step."""
