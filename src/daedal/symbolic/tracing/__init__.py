"""Problems whose functions are machine code with exact derivatives, traced from plain functions."""
