"""Sphinx configuration. The site is built and read without a network: no CDN, no intersphinx, a local MathJax."""

import importlib.util
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "Daedal"
author = "The Daedal developers"
copyright = f"2026, {author}"
release = installed_version("daedal")
version = ".".join(release.split(".")[:2])

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "daedal_pages",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]  # keeps entries such as "y, yp" together
autosummary_generate = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
add_module_names = False

# tex-svg.js carries its glyphs as outlines, so a page opened from disk needs neither a web font nor a second script.
mathjax_package = importlib.util.find_spec("sphinx-mathjax-offline")
mathjax_path = "tex-svg.js"

html_theme = "furo"
html_title = f"Daedal {release}"
html_static_path = ["_static", str(Path(mathjax_package.origin).parent / "static" / "mathjax" / mathjax_path)]
html_css_files = ["custom.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1f5f8b",
        "color-brand-content": "#1f5f8b",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cb9e8",
        "color-brand-content": "#7cb9e8",
    },
}
pygments_style = "friendly"
pygments_dark_style = "native"
