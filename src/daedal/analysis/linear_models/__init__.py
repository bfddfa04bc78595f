"""Linear models of any problem at a point, at an equilibrium or along a solution."""
