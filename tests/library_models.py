"""The problems of the library as they are by default, made once for all files that are sorted by kinds of problems."""

from functools import cache

from daedal import library


@cache
def default_model(name):
    """A model to look at, not to change: several files ask for it while tests are collected."""
    return library.get(name)


def names_of(is_wanted):
    """The names of the models for which `is_wanted` holds."""
    return [name for name in library.names() if is_wanted(default_model(name))]


def names_of_problems(*classes):
    """The names of the models whose problem is of one of these classes."""
    return names_of(lambda model: isinstance(model.problem, classes))
