"""What takes an hour or a night: random problems, other examples, long tests, races, mutants; ``make soak``."""
