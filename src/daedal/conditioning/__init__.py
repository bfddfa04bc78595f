"""How strongly the solutions of DAEs answer to perturbations."""
