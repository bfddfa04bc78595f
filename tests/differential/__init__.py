"""Random problems with known solutions, solved and judged: what a referee would try.

Each family draws a problem without units, of moderate size and condition, and then states it in units that may lie
many powers of ten apart. A case is judged by its error in multiples of the tolerance times its condition.
"""
