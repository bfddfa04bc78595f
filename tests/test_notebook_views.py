"""What notebooks show of problems, advice and motions."""

import html

import numpy as np
import pytest

import daedal


def pendulum(**changes):
    given = {"names": ["x", "y"], "constraint_names": ["<rod>"], "params": {"g": 9.81}}
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, p: [0.0, -p["g"]],
        lambda t, q, p: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=2,
        n_constraints=1,
        **(given | changes),
    )


def test_problems_are_tables():
    shown = pendulum()._repr_html_()
    for words in ("MechanicalSystem", "2: x, y", "1: &lt;rod&gt;", "force, constraint", "g = 9.81"):
        assert words in shown
    assert "<rod>" not in shown
    band = daedal.ImplicitDAE(lambda t, y, yp: yp + y, 50, bandwidth=(1, 1))._repr_html_()
    assert "50: y[0], y[1]" in band and "..." in band and "banded, 1 below and 1 above" in band
    others = [
        daedal.SemiExplicitDAE(lambda t, y, z: [-z[0]], lambda t, y, z: [z[0] - y[0]], 1, 1, names=["a", "b"]),
        daedal.SecondOrderDAE(lambda t, x, xp, xpp: xpp + x, 1),
        daedal.LinearDAE([[0.0]], [[-1.0]], [[1.0]], [[0.0]], [0.0], [0.0], n_x=1, n_y=1),
        daedal.HessenbergDAE([[0.0]], [[1.0]], [[1.0]], [0.0], lambda t: np.zeros(1), n_x=1, n_y=1),
        daedal.hybrid.UnilateralProblem(
            pendulum(), daedal.hybrid.Contact(lambda t, q: q[1] + 0.5, restitution=0.5, name="floor")
        ),
    ]
    for problem in others:
        assert type(problem).__name__ in problem._repr_html_() and "<table" in problem._repr_html_()
    assert "free" in others[-1]._repr_html_() and "restitution 0.5" in others[-1]._repr_html_()


def test_advice_is_a_table():
    advice = daedal.advise(pendulum(), (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]))
    shown = advice._repr_html_()
    assert "<table" in shown and "because" in shown and str(advice).splitlines()[0] in html.unescape(shown)


def test_a_motion_without_a_path_is_a_player(tmp_path):
    pytest.importorskip("jinja2")
    sol = daedal.solve(pendulum(), (0.0, 1.0), [1.0, 0.0])
    player = sol.animate(title='Swing & "turn"')
    frame = player._repr_html_()
    assert frame.startswith("<iframe srcdoc=") and frame.count("<iframe") == 1 and "&lt;!DOCTYPE html&gt;" in frame
    inside = html.unescape(frame.split('srcdoc="')[1].split('" style=')[0])
    written = sol.animate(tmp_path / "swing.html", title='Swing & "turn"').read_text(encoding="utf-8")
    assert inside == written == player.html == player.save(tmp_path / "again.html").read_text(encoding="utf-8")
    assert repr(player) == "Player(title='Swing & \"turn\"')"
    with pytest.raises(daedal.InvalidProblemError, match=r"must end in \.html"):
        player.save(tmp_path / "swing.gif")
    assert not list(tmp_path.glob("*.gif"))
