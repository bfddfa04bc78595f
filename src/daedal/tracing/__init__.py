"""Problems whose functions are machine code with exact derivatives, made from problems in plain functions."""
