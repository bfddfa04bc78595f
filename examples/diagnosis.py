"""What Daedal says when a problem of index 3 is given to a method for index 1, and what to do about it."""

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save

import daedal

model = daedal.library.pendulum("index3")
try:
    daedal.solve(model.problem, model.t_span, model.initial, method="dassl", formulation="none", rtol=1e-6, atol=1e-6)
except daedal.IntegrationError as error:
    print("The position constraint as it stands:")
    print(error)
    reached = error.solution.t[-1]
    print(f"computed so far: {error.solution.t.size} points, up to t = {reached:.3g}\n")

stabilised = daedal.library.pendulum("ggl")
sol = daedal.solve(stabilised.problem, (0.0, 10.0), stabilised.initial, **stabilised.options)
print("The same pendulum with the stabilised constraints:")
print(sol)

figure, axes = plt.subplots(figsize=(5, 5))
t = np.linspace(0.0, 10.0, 500)
axes.plot(sol(t)[0], -sol(t)[1])
axes.set(xlabel="x", ylabel="height", title="Pendulum", aspect="equal")
show_or_save(figure, "diagnosis")
