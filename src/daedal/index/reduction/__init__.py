"""Problems of any index, rewritten as problems of index 1 or 2 with the same solutions."""

WAYS = (
    "dummy_derivatives",
    "coordinate_partitioning",
    "minimal_extension",
    "stabilised",
    "projection",
    "strangeness_free",
)
"""The ways to reduce the index, by name."""
