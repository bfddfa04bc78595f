"""Words that all rooms share, and words that none should use."""

import ast
import inspect
import re
from operator import attrgetter
from pathlib import Path

import pytest

import daedal
from daedal.common.tabular import derivative_name, times
from daedal.index.structure.derivative_array import equation_in_words
from test_public_names import SURFACE


def test_counts_and_derivatives():
    assert [times(k) for k in (1, 2, 3)] == ["once", "twice", "3 times"]
    assert [derivative_name("x", k) for k in (0, 2, 3, 4)] == ["x", "x''", "x'''", "x^(4)"]


@pytest.mark.parametrize(("often", "words"), [(0, ""), (1, " differentiated once"), (4, " differentiated 4 times")])
def test_equations(often, words):
    assert equation_in_words(2, often) == f"equation 2{words}"


ROOT = Path(__file__).parent.parent
# Words that a reader stumbles over, mostly taken from German, and codes that say nothing to a user.
STUMBLING_BLOCKS = re.compile(
    r"handed (to [^.:;]{0,80} )?behind|\bbelongs? into\b|\binside of\b|\bbe had\b|\bso[ -]called\b|\bthat what\b"
    r"|\bfurther (ado|wishes)\b|\bmore seldom\b|\b(allow|enable|permit)s? to\b|\binformations\b|\bbins? of yours\b"
    r"|\b(IDID|IRES)\b|\bcase [1-4]\b|\bin mid-run\b",
    re.IGNORECASE,
)

# Words that CONTRIBUTING.md replaces: personification, riddles, and prepositions taken from German.
TICS = re.compile(
    r"\banew\b|\bbehind (the (first|last|others?|end|start|root)|which|them)\b|\bof (its|one's) own\b|\blest\b"
    r"|\blook(s|ed)? at\b|\b(is|are|be|been|was|were|not) told\b|\bsuch as it is\b|\bwhat there is to\b"
    r"|\bthat (is|are) there\b|\bas (it|they) stands?\b|\b(goes|went) on\b|\b(held|holds) against\b|\bto and fro\b"
    r"|\bsays (that|whether|which|how|what|so|nothing)\b|\b(wants|knows|lends)\b|\bso many (steps|times|members)\b"
    r"|\bpart of (the|its) (largest|interval|tolerance|step size)\b",
    re.IGNORECASE,
)


def paragraphs(text: str) -> str:
    """The text without line breaks, which may lie inside a phrase."""
    return " ".join(text.split())


def sources() -> dict[str, str]:
    """Every file of the package, by its path: several folders have a file of the same name."""
    src = ROOT / "src"
    return {str(path.relative_to(src)): path.read_text(encoding="utf-8") for path in sorted(src.rglob("*.py"))}


def own_words(source: str) -> list[str]:
    """Every string in a file that is not a docstring: messages, for the most part."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    strings = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings)
    return [node.value for node in strings if isinstance(node.value, str)]


def all_words(source: str) -> str:
    """Docstrings, comments and messages of a file; strings that are joined in the source are joined here."""
    nodes = ast.walk(ast.parse(source))
    strings = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    comments = "\n".join(line.partition("# ")[2] for line in source.splitlines())
    return paragraphs("\n\n".join([*strings, comments]))


def public_docstrings() -> list[tuple[str, str]]:
    found = []
    for name in sorted(f"{module}.{name}".lstrip(".") for module, names in SURFACE.items() for name in names):
        value = attrgetter(name)(daedal)
        found.append((name, inspect.getdoc(value) or ""))
        if inspect.isclass(value):
            members = inspect.getmembers(value, lambda member: callable(member) or isinstance(member, property))
            found += [(f"{name}.{key}", inspect.getdoc(m) or "") for key, m in members if not key.startswith("_")]
    return found


@pytest.mark.parametrize(
    "path",
    [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.ipynb"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_pages_are_in_plain_english(path):
    assert STUMBLING_BLOCKS.findall(paragraphs(path.read_text(encoding="utf-8"))) == []


def test_every_file_is_read():
    assert len(sources()) == len(list((ROOT / "src").rglob("*.py")))
    assert {"daedal/events/layer.py", "daedal/symbolic/graph_functions.py"} <= set(sources())
    assert own_words('"""Words of a docstring."""\nraise ValueError("words of a message")') == ["words of a message"]


def test_messages_are_in_plain_english():
    suspects = {name: text for name, text in sources().items() if STUMBLING_BLOCKS.search(paragraphs(text))}
    words = {name: STUMBLING_BLOCKS.findall(paragraphs(" | ".join(own_words(suspects[name])))) for name in suspects}
    assert {name: found for name, found in words.items() if found} == {}


def test_sources_have_no_tics():
    found = {
        name: sorted({match.group() for match in TICS.finditer(all_words(text))}) for name, text in sources().items()
    }
    assert {name: words for name, words in found.items() if words} == {}


def test_tics_are_seen_in_docstrings_comments_and_messages():
    for source in (
        '"""What the message\nsays of it, computed\nanew."""',
        "x = 1  # computed anew",
        'x = f"computed {x} anew"',
    ):
        assert TICS.search(all_words(source)), source
    assert not TICS.search(all_words('"""The renewed message is behind a wall."""'))


def test_the_reference_is_in_plain_english():
    assert [name for name, text in public_docstrings() if STUMBLING_BLOCKS.search(paragraphs(text))] == []


def test_stumbling_blocks_are_seen_across_lines():
    assert STUMBLING_BLOCKS.search(paragraphs("a value inside\n    of the step"))
    assert not STUMBLING_BLOCKS.search(paragraphs("the inside offers room"))


def test_questions_quote_messages_that_exist():
    page = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
    titles = re.findall(r"^## (.*)$", page, re.MULTILINE)
    quoted = [quote for title in titles for quote in re.findall(r'"(.+?)"', title)]
    known = " ".join(sources().values())
    assert len(quoted) > 5
    assert [quote for quote in quoted if quote not in known] == []
