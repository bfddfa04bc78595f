"""The index: structure of equations (`structure`), reduction to index 1 (`reduction`), linear theory (`linear`)."""
