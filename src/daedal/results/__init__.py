"""What all solutions have in common: quantities by name, tables, and files."""
