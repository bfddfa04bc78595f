"""HTML pages from templates with autoescaping, and equations as MathML."""

import base64
import html
import io
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any
from xml.etree.ElementTree import Element, tostring

import daedal
from daedal.common.tabular import Tabular

_OWN = "daedal.viz"


def render(template: str, package: str = _OWN, **values: Any) -> str:
    """Render a template from the folder ``templates`` of a package; it may extend and include templates of `viz`.

    In a template, ``asset(name)`` inserts a style sheet or script verbatim, and ``equation(latex)`` inserts MathML. The
    result is marked as safe for other templates.
    """
    from markupsafe import Markup

    return Markup(_environment(package).get_template(template).render(values))


def framed(page: str, title: str, height: int) -> str:
    """An iframe with a page for notebooks, which isolates scripts and styles."""
    from markupsafe import Markup, escape

    style = f"width:100%;height:{height}px;border:0"
    frame = Markup('<iframe srcdoc="{}" style="{}" title="{}"></iframe>')
    return str(frame.format(escape(str(page)), style, title))


@cache
def _environment(package: str) -> Any:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    templates = [PackageLoader(name) for name in dict.fromkeys((package, _OWN))]
    loader = ChoiceLoader([*templates, PackageLoader(_OWN, "vendor")])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["asset"] = lambda name: Markup(loader.get_source(environment, name)[0])
    environment.globals["equation"] = lambda latex: Markup(equation_html(latex))
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    return environment


# --- LaTeX equations as MathML, converted by latex2mathml -------------------------------------------------------------

# from daedal.viz.pages import equation_html
# equation_html(r"-\lambda y'")
# '<div class="row"><math><mrow><mo>−</mo><mi>λ</mi><msup><mi>y</mi><mo class="prime">′</mo></msup></mrow></math></div>'

_ACCENTS = "^˙¨¯~"
_FUNCTION_GAP = "0.17em"  # space after function names
_PART_GAP = 1.0  # em; spaces of this width (\quad) or more separate formulas
_OPERAND = ("mi", "mn", "mtext", "msub", "msup", "msubsup", "mover", "mfrac", "mstyle", "msqrt", "mrow")


def equation_html(latex: str) -> str:
    r"""HTML of one or several equations: a row for each line, with separate formulas between ``\qquad``.

    Formulas of a row, and terms of long formulas, wrap on narrow pages. Unsupported input is shown verbatim.
    """
    from latex2mathml.converter import convert_to_element

    # rows are wrapped, not aligned; \big brackets have normal size, since browsers do not stretch those with exponents
    bare = re.sub(r"\\(begin|end)\{aligned\}|\\[bB]ig[lr]?(?![a-zA-Z])", "", latex)
    try:
        line = convert_to_element(re.sub(r"\\text\{[^{}]*\}|'+", _primes, bare))[0]
    except Exception:  # errors have many types, and the page must be built for any input
        return f"<code>{html.escape(latex)}</code>"
    for element in line.iter():
        element.text = html.unescape(element.text or "") or None
    if any((element.text or "").startswith("\\") or "href" in element.attrib for element in line.iter()):
        return f"<code>{html.escape(latex)}</code>"
    _refine(line)
    children = [child for child in line if child.text != "&"]
    rows = [
        "".join(map(_formula, _split(row, _separates)))
        for row in _split(children, lambda one: one.get("linebreak") == "newline")
    ]
    return "".join(f'<div class="row">{row}</div>' for row in rows if row)


def _primes(match: re.Match[str]) -> str:
    """Combine the primes of a symbol in one superscript; words keep their apostrophes."""
    found = match.group()
    return found if found.startswith("\\") else "^{" + r"\prime" * len(found) + "}"


def _refine(line: Element) -> None:
    """Adjust the MathML for browsers: function names, relations, accents, primes, binomials."""
    for element in line.iter():
        text, inside = element.text or "", [child.text for child in element]
        if element.tag == "mo" and text.isalpha() and len(text) > 1:
            element.tag = "mi"  # \operatorname
        elif element.tag == "mi" and len(text) == 1 and unicodedata.category(text) == "Sm":
            element.tag = "mo"
        elif element.tag == "mrow" and set(inside) == {"′"}:
            element.clear()
            element.tag, element.text = "mo", "".join(filter(None, inside))
            element.set("class", "prime")
        elif element.tag == "mover" and str(inside[1]) in _ACCENTS:
            element.set("accent", "true")
        elif element.get("linethickness") == "0":
            element.set("displaystyle", "true")  # \binom
        for k in reversed(range(len(element) - 1)):
            base = element[k][0] if element[k].tag in ("msup", "msub") else element[k]
            if element.tag in ("mrow", "mtd") and base.tag == "mi" and len(base.text or "") > 1:
                element.insert(k + 1, Element("mspace", width=_FUNCTION_GAP))


def _separates(element: Element) -> bool:
    return element.tag == "mspace" and float(element.get("width", "0em").removesuffix("em")) >= _PART_GAP


def _split(elements: Iterable[Element], separates: Callable[[Element], bool]) -> list[list[Element]]:
    parts: list[list[Element]] = [[]]
    for element in elements:
        if separates(element):
            parts.append([])
        else:
            parts[-1].append(element)
    return [part for part in parts if part]


def _formula(elements: list[Element]) -> str:
    """A formula that may break before relations and between terms."""
    terms = [Element("mrow")]
    for before, element in zip([None, *elements], elements):
        breaks = element.tag == "mo" and element.text in ("+", "−", "=")
        if breaks and before is not None and (before.tag in _OPERAND or before.text in (")", "]", "|", "‖")):
            element.set("form", "infix")
            terms.append(Element("mrow"))
        terms[-1].append(element)
    formulas = [f"<math>{tostring(term, encoding='unicode')}</math>" for term in terms]
    return formulas[0] if len(formulas) == 1 else f'<span class="formula">{"<wbr/>".join(formulas)}</span>'


# --- a solution in a notebook -----------------------------------------------------------------------------------------

_MOST_EVENTS = 10


def solution_html(sol: daedal.Solution | daedal.HybridSolution) -> str:
    """HTML for notebooks: status and cost of a run, the first transitions, and a plot as an embedded image.

    Parameters
    ----------
    sol : daedal.Solution or daedal.HybridSolution

    Returns
    -------
    str

    Examples
    --------
    >>> import daedal
    >>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0])
    >>> "<table" in daedal.viz.solution_html(sol)
    True
    """
    transitions: Any = sol.events[:_MOST_EVENTS] if isinstance(sol, daedal.HybridSolution) and len(sol.events) else None
    picture = io.BytesIO()
    if sol.t.size > 1:
        sol.plot(pyplot=False).savefig(picture, format="png", dpi=90)
    page = render(
        "notebook.html",
        summary=Tabular("ll", sol.summary()),
        message=sol.message,
        transitions=transitions and transitions._repr_html_(),
        picture=base64.b64encode(picture.getvalue()).decode("ascii"),
    )
    return str(page)
