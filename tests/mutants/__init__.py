"""Mutation tests: small errors are put into the sources, one at a time, and the tests have to notice."""
