"""Which parameter of a crane matters: Sobol's and Morris' sensitivity indices of the swing of its load, with SALib.

Sobol's indices say which part of the variance of the largest swing comes from each parameter alone (first order) and
with all others (total). Morris' elementary effects rank parameters with a tenth of the runs: the mean of their size,
mu*, says how strong an effect is, their spread sigma how much it depends on the other parameters.
"""

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save
from SALib.analyze import morris, sobol
from SALib.sample import morris as trajectories
from SALib.sample import sobol as design

import daedal

NAMES = ["load", "length", "brake", "gravity"]
BOUNDS = [[0.5, 2.0], [0.8, 1.2], [0.5, 3.0], [9.7, 9.9]]
problem = {"num_vars": len(NAMES), "names": NAMES, "bounds": BOUNDS}
crane = daedal.MechanicalSystem(  # a trolley x with a brake, and its load (X, Y) on a rope
    mass=lambda t, q, p: np.diag([1.0, p["load"], p["load"]]),
    force=lambda t, q, v, p: np.array([-p["brake"] * v[0], 0.0, -p["load"] * p["gravity"]]),
    constraint=lambda t, q, p: np.array([0.5 * ((q[1] - q[0]) ** 2 + q[2] ** 2 - p["length"] ** 2)]),
    n_q=3,
    n_constraints=1,
    names=["x", "X", "Y"],
    params=dict(zip(NAMES, np.mean(BOUNDS, axis=1))),
)


def largest_swings(points):
    """The largest swing of each run; at first both move, then the trolley is braked and the load swings."""
    params = dict(zip(NAMES, points.T))
    q0 = np.column_stack([np.zeros(len(points)), np.zeros(len(points)), -params["length"]])
    times = np.linspace(0.0, 4.0, 161)
    ensemble = daedal.solve_many(crane, (0.0, 4.0), (q0, [1.0, 1.0, 0.0]), params=params, t_eval=times, rtol=1e-6)
    print(ensemble)
    return np.max(np.abs(ensemble["X"] - ensemble["x"]), axis=1)


points = design.sample(problem, 512, calc_second_order=False, seed=0)
indices = sobol.analyze(problem, largest_swings(points), calc_second_order=False, seed=0)
paths = trajectories.sample(problem, 60, seed=0)
effects = morris.analyze(problem, paths, largest_swings(paths), seed=0)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
for k, (name, first, total) in enumerate(zip(NAMES, indices["S1"], indices["ST"])):
    strength, spread = effects["mu_star"][k], effects["sigma"][k]
    print(f"{name:8} first order {first:6.3f}   total {total:6.3f}   mu* {strength:6.3f}   sigma {spread:6.3f}")
    right.annotate(name, (strength, spread), xytext=(4, 4), textcoords="offset points")
left.bar(np.arange(4) - 0.18, indices["S1"], 0.36, yerr=indices["S1_conf"], label="first order")
left.bar(np.arange(4) + 0.18, indices["ST"], 0.36, yerr=indices["ST_conf"], label="total")
left.set(xticks=range(4), xticklabels=NAMES, ylabel="Sobol index", title="What the largest swing depends on")
left.legend()
right.scatter(effects["mu_star"], effects["sigma"])
right.set(xlabel="mu*", ylabel="sigma", title="Elementary effects of Morris")
right.margins(0.2)
show_or_save(figure, "sobol_indices")
