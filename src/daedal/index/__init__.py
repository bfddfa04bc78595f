"""The index of DAEs: structure (`structure`), reduction to index 1 (`reduction`), linear theory (`linear`)."""
