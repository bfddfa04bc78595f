"""Parameter estimation from measurements: least squares with exact derivatives of solutions."""
