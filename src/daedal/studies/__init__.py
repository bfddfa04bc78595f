"""What serves the reproduction of the sources alone: methods on a given grid, and a cross-check of structures."""
