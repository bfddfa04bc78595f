"""Predator and prey on a square: 5000 unknowns by GMRES, preconditioned with the reaction alone."""

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save

import daedal

mx = my = 50
model = daedal.library.food_web(mx, my)
times = np.array([0.0, 0.001, 0.003, 0.005, 0.01, 0.1])
sol = daedal.solve(
    model.problem,
    (0.0, 0.1),
    model.initial,
    t_eval=times,
    method="dassl",
    linear_solver="gmres",
    preconditioner=daedal.linear_solvers.BlockDiagonalPreconditioner(2, model.extra["reaction"].residual),
    **model.options,
)
print(sol)
print(f"{sol.stats.linear_iterations} linear iterations in {sol.stats.newton_iterations} Newton iterations")

figure, panels = plt.subplots(1, 3, figsize=(10, 3.4))
for axes, k in zip(panels, (1, 3, 5)):
    prey = sol.y[0::2, k].reshape(my, mx)
    image = axes.imshow(prey, origin="lower", extent=(0, 1, 0, 1))
    axes.set_title(f"prey at t = {times[k]:g}")
    figure.colorbar(image, ax=axes, shrink=0.8)
show_or_save(figure, "food_web")
