"""Which parameter of a crane matters: Sobol's and Morris' sensitivity indices of the swing of its load, with SALib.

A trolley carries a load on a rope and is braked. Sobol's indices say which part of the variance of the largest swing
comes from each parameter alone (first order) and with all others (total). Morris' elementary effects rank parameters
with a tenth of the runs: the mean of their size, mu*, says how strong an effect is, their spread sigma how much it
depends on the other parameters.
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
TIMES = np.linspace(0.0, 4.0, 161)


def mass(t, q, p):  # trolley x, load (X, Y)
    return np.diag([1.0, p["load"], p["load"]])


def force(t, q, v, p):
    return np.array([-p["brake"] * v[0], 0.0, -p["load"] * p["gravity"]])


def rope(t, q, p):
    return np.array([0.5 * ((q[1] - q[0]) ** 2 + q[2] ** 2 - p["length"] ** 2)])


middle = {name: sum(bounds) / 2 for name, bounds in zip(NAMES, BOUNDS)}
crane = daedal.MechanicalSystem(mass, force, rope, n_q=3, n_constraints=1, names=["x", "X", "Y"], params=middle)
problem = {"num_vars": len(NAMES), "names": NAMES, "bounds": BOUNDS}


def largest_swings(points):
    """The largest swing of each run."""
    params = dict(zip(NAMES, points.T))
    q0 = np.column_stack([np.zeros(len(points)), np.zeros(len(points)), -params["length"]])
    start = q0, [1.0, 1.0, 0.0]  # both move; the trolley is braked, the load swings
    ensemble = daedal.solve_many(crane, (0.0, 4.0), start, params=params, t_eval=TIMES, rtol=1e-6)
    print(ensemble)
    return np.max(np.abs(ensemble["X"] - ensemble["x"]), axis=1)


points = design.sample(problem, 512, calc_second_order=False, seed=0)
swing = largest_swings(points)
indices = sobol.analyze(problem, swing, calc_second_order=False, seed=0)
for name, first, total in zip(NAMES, indices["S1"], indices["ST"]):
    print(f"{name:8} first order {first:6.3f}   total {total:6.3f}")

paths = trajectories.sample(problem, 60, seed=0)
effects = morris.analyze(problem, paths, largest_swings(paths), seed=0)
for name, strength, spread in zip(NAMES, effects["mu_star"], effects["sigma"]):
    print(f"{name:8} mu* {strength:6.3f}   sigma {spread:6.3f}")

figure, (left, middle_axes, right) = plt.subplots(1, 3, figsize=(12, 3.4))
places = np.arange(len(NAMES))
left.bar(places - 0.18, indices["S1"], 0.36, yerr=indices["S1_conf"], label="first order")
left.bar(places + 0.18, indices["ST"], 0.36, yerr=indices["ST_conf"], label="total")
left.set(xticks=places, xticklabels=NAMES, ylabel="Sobol index", title="What the largest swing depends on")
left.legend()
middle_axes.scatter(effects["mu_star"], effects["sigma"])
for name, strength, spread in zip(NAMES, effects["mu_star"], effects["sigma"]):
    middle_axes.annotate(name, (strength, spread), xytext=(4, 4), textcoords="offset points")
middle_axes.set(xlabel="mu*", ylabel="sigma", title="Elementary effects of Morris")
middle_axes.margins(0.2)
right.scatter(points[:, NAMES.index("brake")], swing, s=3, c=points[:, NAMES.index("load")])
right.set(xlabel="brake", ylabel="largest swing", title="Each run a point; colour: load")
show_or_save(figure, "sobol_indices")
