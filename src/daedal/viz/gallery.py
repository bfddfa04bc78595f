"""The gallery: a page with a card for each library problem, solved during the build."""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import daedal
from daedal.viz.animate import make_scene, player_element, playing_time
from daedal.viz.pages import render
from daedal.viz.scene_page import scene_element, solution_scene
from daedal.viz.svg_plot import plot_svg

# parameters for which the motion is easier to see than for the defaults
SHOWN: dict[str, dict[str, Any]] = {
    "body_on_circle": {"t1": 6.0},
    "chain_of_pendulums": {"t1": 4.0},
    "double_pendulum": {"t1": 10.0},
    "fekete": {"t1": 20.0},
    "friction_crank_slider": {"t1": 4.0},
    "knife_edge": {"t1": 5.0},
    "knife_edge_on_paraboloid": {"t1": 4.0},
    "particle_on_circle": {"t1": 4.0},
    "particle_on_paraboloid": {"t1": 12.0},
    "rod_pendulum": {"t1": 6.0},
    "sliding_ladder": {"t1": 0.72},
    "wheelset": {"t1": 4.0},
}
SPANS = {"pendulum": (0.0, 12.0)}
KINDS = (
    (daedal.hybrid.HybridProblem, "modes"),
    (daedal.MechanicalSystem, "mechanism"),
    (daedal.SecondOrderDAE, "second order"),
    ((daedal.HessenbergDAE, daedal.LinearDAE), "linear"),
    (object, "first order"),
)
# Buttons that filter cards: tag and label
FILTERS = {
    "moves": "animated",
    "mechanism": "mechanisms",
    "modes": "modes and switching",
    "second order": "second order",
    "first order": "first order",
    "linear": "linear",
    "index 1": "index 1",
    "index 2": "index 2",
    "index 3": "index 3",
}
# problems whose cards come first; animated problems follow, then all others
FIRST = (
    "seven_body",
    "double_pendulum",
    "truck",
    "bowed_string",
    "spatial_pendulum",
    "crank_slider",
    "chain_of_pendulums",
    "breaking_rope",
    "rolling_disc",
    "robertson",
    "car_axis",
    "bouncing_ball",
)
# one problem for each group of kernels is solved first, and the other problems of these groups last, so that two
# processes rarely compile the same kernels
PIONEERS = ("order_reduction", "stability_example2", "crank_slider", "robertson", "index3_chain", "jay_index2")
LAST = ("bowed_string", "violin_slip", "stability_example1", "body_on_circle", "particle_on_circle", "tppc3")


@dataclass(frozen=True)
class GalleryCard:
    """Card of one problem: HTML, error message (empty without error), and duration in seconds."""

    name: str
    html: str
    moves: bool
    failure: str
    seconds: float

    @property
    def in_space(self) -> bool:
        """Whether the card contains a scene in space."""
        return 'data-kind="scene"' in self.html


@dataclass(frozen=True)
class Gallery:
    """The written page and its cards in order."""

    path: Path
    cards: tuple[GalleryCard, ...]

    @property
    def failed(self) -> tuple[GalleryCard, ...]:
        """Cards of problems that failed."""
        return tuple(card for card in self.cards if card.failure)


def build_gallery(
    out: str | Path = "out/gallery",
    only: Sequence[str] = (),
    *,
    jobs: int = 1,
    done: Callable[[GalleryCard], None] = lambda card: None,
) -> Gallery:
    """Solve the library problems and write a page with a card for each, ``index.html`` in the folder `out`.

    The page is self-contained. A problem that fails gets a card with the error.

    Parameters
    ----------
    out : path
        Output folder.
    only : sequence of str
        Names of problems; by default all.
    jobs : int
        Number of processes. More than one requires an importable main script, as usual with multiprocessing.
    done : callable
        Called with each finished :class:`GalleryCard`.

    Returns
    -------
    Gallery

    Examples
    --------
    >>> from daedal.viz.gallery import build_gallery
    >>> gallery = build_gallery("gallery", ["planar_pendulum", "prothero_robinson"])
    >>> [(card.name, card.moves) for card in gallery.cards], gallery.failed
    ([('planar_pendulum', True), ('prothero_robinson', False)], ())
    """
    names = _checked(only)
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise daedal.InvalidProblemError(f"jobs={jobs!r} must be a positive integer")
    order = sorted(names, key=lambda name: (name not in PIONEERS, name in LAST, name))
    cards = {}
    for card in _cards(order, min(jobs, len(order))):
        done(card)
        cards[card.name] = card
    path = Path(out) / "index.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    shown = tuple(sorted(cards.values(), key=_rank))
    page = render("gallery.html", cards=shown, filters=FILTERS, version=daedal.__version__)
    path.write_text(page, encoding="utf-8")
    return Gallery(path, shown)


def _rank(card: GalleryCard) -> tuple[int, bool, str]:
    return FIRST.index(card.name) if card.name in FIRST else len(FIRST), not card.moves, card.name


def _checked(only: Sequence[str]) -> list[str]:
    if isinstance(only, str):
        only = [only]
    known = daedal.library.names()
    for name in only:
        if name not in known:
            daedal.library.get(name)  # raises an error that lists the names
    return [name for name in known if name in only] if only else known


def _cards(names: Sequence[str], jobs: int) -> Iterable[GalleryCard]:
    if jobs == 1:
        yield from map(make_card, names)
        return
    left = list(names)
    try:
        for card in _in_processes(left, jobs):
            left.remove(card.name)
            yield card
    except BrokenProcessPool:  # a process crashed; each remaining problem gets a separate process
        for name in left:
            try:
                yield from _in_processes([name], 1)
            except BrokenProcessPool:
                yield _failed(name, "the process that solved the problem crashed")


def _in_processes(names: Sequence[str], jobs: int) -> Iterable[GalleryCard]:
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(make_card, name) for name in names]):
            yield future.result()


# --- one card ---------------------------------------------------------------------------------------------------------


def make_card(name: str) -> GalleryCard:
    """Solve a problem and create its card, which shows errors, if any."""
    begin = time.perf_counter()
    try:
        model = daedal.library.get(name, **SHOWN.get(name, {}))
    except Exception as error:  # the page must be built even if a model raises an exception
        return _failed(name, _said(error), time.perf_counter() - begin)
    sol, failure, picture, moves = None, "", "", False
    try:
        sol = _solve(model) if model.solvable else None
    except daedal.IntegrationError as error:
        sol, failure = error.solution, _said(error)
    except Exception as error:
        failure = _said(error)
    if sol is not None and sol.t.size > 1:
        try:
            picture, moves = _picture(model, sol)
        except Exception as error:
            failure = failure or _said(error)
    kind = next(kind for classes, kind in KINDS if isinstance(model.problem, classes))
    tags = [kind, model.index_in_words, *(["moves"] if moves else [])]
    facts = [("Suitable methods", suitable_methods(model)), ("Source", model.source)]
    if sol is not None:
        facts.insert(1, ("This run", _run(model, sol)))
    html = render(
        "card.html",
        name=name,
        model=model,
        words=" ".join([name, model.title, model.description, *tags]).lower(),
        tags=tags,
        picture=picture,
        failure=failure,
        code=code(model, moves),
        facts=facts,
    )
    return GalleryCard(name, html, moves, failure, time.perf_counter() - begin)


def _failed(name: str, failure: str, seconds: float = 0.0) -> GalleryCard:
    html = render("card.html", name=name, model=None, words=name, tags=["failed"], picture="", failure=failure)
    return GalleryCard(name, html, False, failure, seconds)


def _solve(model: daedal.library.Model) -> Any:
    span = SPANS.get(model.name, model.t_span)
    return daedal.solve(model.problem, span, model.initial, **model.options)


def _picture(model: daedal.library.Model, sol: Any) -> tuple[str, bool]:
    from markupsafe import Markup

    from daedal.library.drawings import drawing_of

    drawing = drawing_of(model)
    if drawing is None:
        plot = Markup(plot_svg(sol, model.title, model.plot))
        return Markup('<figure class="picture">{}</figure>').format(plot), False
    if callable(drawing):
        return scene_element(solution_scene(sol, drawing), None, model.title), True
    scene = make_scene(sol, drawing)
    return player_element(scene, playing_time(scene.t, None), model.title), True


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def code(model: daedal.library.Model, moves: bool) -> str:
    """Code on the card that solves a model and displays the solution."""
    parameters = ", ".join(f"{key}={value!r}" for key, value in SHOWN.get(model.name, {}).items())
    span = repr(SPANS[model.name]) if model.name in SPANS else "model.t_span"
    show = f'sol.animate("{model.name}.html", model)' if moves else f'sol.plot(save="{model.name}.png")'
    return (
        f"import daedal\n\nmodel = daedal.library.{model.name}({parameters})\n"
        f"sol = daedal.solve(\n    model.problem, {span},\n    model.initial, **model.options,\n)\n{show}"
    )


def suitable_methods(model: daedal.library.Model) -> str:
    """Description of suitable methods and formulations, by problem class and index."""
    problem = model.problem
    if isinstance(problem, daedal.hybrid.HybridProblem):
        return "For each mode: DOPRI5 for an ODE, half-explicit methods or DASSL for constraints."
    if isinstance(problem, daedal.MechanicalSystem):
        if not (problem.n_constraints or problem.n_velocity_constraints):
            return "DOPRI5, or DASSL if the problem is stiff."
        if hasattr(problem.mass, "tocsr"):
            return "DASSL with GGL and sparse linear algebra."
        return (
            "If nonstiff, DOPRI5 or DOP853 with projection, or half-explicit methods (PHEM56, HEDOP5); otherwise "
            "DASSL with GGL or projected invariants, or collocation. formulation='auto' selects automatically."
        )
    if isinstance(problem, daedal.SecondOrderDAE):
        return "Modified BDF (orders 1 to 5) or collocation, without conversion to first order."
    if isinstance(problem, daedal.HessenbergDAE):
        return "DASSL with projected invariants, or DOPRI5 with coordinate projection; see daedal.advise."
    if model.index is None:
        return "None: the equations do not determine the solution, however often they are differentiated."
    if model.index >= 3:
        return "Radau or DASSL after index reduction, which daedal.solve performs automatically."
    if model.index == 2:
        return "DASSL with error_test='differential'; half-explicit methods if semi-explicit and nonstiff."
    return "DASSL with variable order 1 to 5; sparse matrices or GMRES for large problems."


def _run(model: daedal.library.Model, sol: Any) -> str:
    stats = sol.stats
    method = getattr(sol, "method", "")
    formulation = getattr(sol, "formulation", "")
    parts = [f"{method} on {formulation}" if formulation else method] if method else []
    if isinstance(sol, daedal.HybridSolution):
        parts.append(f"{sol.n_events} transitions")
    parts.append(f"{stats.steps} steps, {stats.rejected} rejected, {stats.residual_evaluations} evaluations")
    if sol.drift:
        held = [value for key, value in sol.drift.items() if "before" not in key]
        parts.append(f"constraint residuals at most {max(held, default=0.0):.0e}")
    known = model.reference
    if known is not None and sol.t[-1] == known.t and known.y.shape == sol.y[:, -1].shape:
        error = np.nanmax(known.error(sol.y[:, -1]))
        parts.append(f"largest error at the end {error:.0e}")
    return "; ".join(parts) + "."
