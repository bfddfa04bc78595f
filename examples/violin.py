"""A bowed violin string sticks to the bow and slips: an ODE and a DAE of index 2, in turn."""

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save

import daedal

T_END, BOW = 12.0, 0.3

run = daedal.library.play_violin(T_END, rtol=1e-9)
for switch in run.switches:
    print(f"{switch.kind:5} at t = {switch.t:.8f}, u = {switch.u:.8f}, z = {switch.z:.6f}")
slips, sticks = (
    sum(solution.stats.steps for solution, sign in zip(run.solutions, run.signs, strict=True) if (sign == 0) == stuck)
    for stuck in (False, True)
)
print(f"{slips} steps slipping with DOPRI5, {sticks} steps sticking with PHEM56")

t = np.linspace(0.0, T_END, 4001)
string = run(t)
figure, (displacement, speed, friction) = plt.subplots(3, 1, figsize=(9, 7), sharex=True)
displacement.plot(t, string.u[9])
displacement.set(ylabel="$u_{10}$", title="The middle of a bowed string")
speed.plot(t, string.v[9])
speed.axhline(BOW, color="0.6", linewidth=0.8, zorder=0)
speed.set(ylabel="$u_{10}'$")
friction.plot(run.t, run.z)
friction.axhline(-4.0 / 3.0, color="0.6", linewidth=0.8, zorder=0)
friction.set(xlabel="t", ylabel="z", xlim=(0.0, T_END), ylim=(-1.45, 0.0))
for axes in (displacement, speed, friction):
    for begin, end in zip(run.switches[::2], run.switches[1::2], strict=True):
        axes.axvspan(begin.t, end.t, color="C0", alpha=0.12, linewidth=0)
show_or_save(figure, "violin")
