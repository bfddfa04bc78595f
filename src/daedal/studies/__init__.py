"""What serves the reproduction of the sources alone: the printed tables (`reproduce`), methods on a given grid."""
