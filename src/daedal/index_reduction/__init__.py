"""Problems of any index, rewritten as problems of index 1 with the same solutions."""

WAYS = ("dummy_derivatives",)
"""The ways to reduce the index, by name."""
