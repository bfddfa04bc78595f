"""``daedal show``."""

from daedal.cli.arguments import Name
from daedal.cli.model import find_model, parameters_of, short
from daedal.cli.output import print_rows
from daedal.library.contents import unknowns


def show(name: Name) -> None:
    """Describe a problem: what it models, its parameters, its source."""
    model = find_model(name, {})
    t0, t1 = model.t_span
    reference = "none"
    if model.reference is not None:
        reference = f"t = {model.reference.t:g}, {model.reference.source}"
    parameters = ", ".join(f"{key}={value.default!r}" for key, value in parameters_of(name).items())
    print(f"{model.title}\n")
    print_rows(
        [
            ("about", model.description),
            ("unknowns", f"{unknowns(model.problem)}, {model.index_in_words}"),
            ("interval", f"{t0:g} to {t1:g}"),
            ("parameters", parameters or "none"),
            ("options", ", ".join(f"{key}={short(value)}" for key, value in model.options.items()) or "none"),
            ("reference", reference),
            ("source", model.source),
        ],
        wrap=True,
    )
