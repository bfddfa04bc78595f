"""The driver: request, plan, run, finish: the one way that every problem takes."""
