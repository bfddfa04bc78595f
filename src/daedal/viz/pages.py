"""Pages for the browser, from templates: whatever a template does not mark as safe is escaped."""

from functools import cache
from typing import Any

_OWN = "daedal.viz"


def render(template: str, package: str = _OWN, **values: Any) -> str:
    """The template of a package, in its folder ``templates``, filled in. It may extend and include those of `viz`.

    In a template ``asset(name)`` is a style sheet or a script, word for word, and ``equation(latex)`` MathML. What is
    returned may stand in another template as it is.
    """
    from markupsafe import Markup

    return Markup(_environment(package).get_template(template).render(values))


def framed(page: str, title: str, height: int) -> str:
    """A page as a frame of another one, for notebooks; scripts and styles of the two do not meet."""
    from markupsafe import Markup, escape

    style = f"width:100%;height:{height}px;border:0"
    frame = Markup('<iframe srcdoc="{}" style="{}" title="{}"></iframe>')
    return str(frame.format(escape(str(page)), style, title))


@cache
def _environment(package: str) -> Any:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from daedal.viz.equations import equation_html

    templates = [PackageLoader(name) for name in dict.fromkeys((package, _OWN))]
    loader = ChoiceLoader([*templates, PackageLoader(_OWN, "vendor")])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["asset"] = lambda name: Markup(loader.get_source(environment, name)[0])
    environment.globals["equation"] = lambda latex: Markup(equation_html(latex))
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    return environment
