"""A bouncing ball with air drag: a terminal event at the ground, then a new start with the reversed velocity."""

import matplotlib.pyplot as plt
from _figures import show_or_save

import daedal


def flight(t, y, yp):
    speed, drag = y[1:]
    return [yp[0] - speed, yp[1] + 9.81 + drag, drag - 0.05 * speed * abs(speed)]


ground = daedal.Event(lambda t, y: y[0], terminal=True, direction=-1, name="ground")
problem = daedal.ImplicitDAE(flight, 3, names=["height", "speed", "drag"])

figure, axes = plt.subplots(figsize=(7, 4))
t, height, speed = 0.0, 2.0, 0.0
for bounce in range(1, 9):
    start = [height, speed, 0.05 * speed * abs(speed)]
    sol = daedal.solve(problem, (t, t + 10.0), (start, None), events=ground, rtol=1e-8, atol=1e-10)
    axes.plot(sol.t, sol["height"], color="C0")
    t, height, speed = sol.t[-1], 0.0, -0.8 * sol["speed"][-1]
    print(f"bounce {bounce} at t = {t:.6f} with speed {speed:.4f}")
axes.set(xlabel="t [s]", ylabel="height [m]", title="Bouncing ball")
show_or_save(figure, "bouncing_ball")
