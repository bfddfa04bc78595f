"""Problems of any index, rewritten as problems of index 1 with the same solutions."""
