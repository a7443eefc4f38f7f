"""Sphinx settings."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from generated import make_tables

project = "heckesel"
author = "The heckesel developers"
html_title = "heckesel"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "formulas"]
napoleon_google_docstring = False
napoleon_use_param = napoleon_use_rtype = False
napoleon_use_ivar = True
# Types in docstrings are words for readers, such as "array-like"; links are checked elsewhere.
nitpick_ignore_regex = [("py:class", r"(?!heckesel\.).*")]
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
templates_path = ["_templates"]
html_sidebars = {"**": ["pages.html"]}
html_theme_options = {
    "navbar_center": [],
    "secondary_sidebar_items": [],
    "footer_start": [],
    "footer_end": [],
}
html_show_sourcelink = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
exclude_patterns = ["_build", "_generated"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nitpicky = True  # broken links are errors


def setup(app):
    app.connect("builder-inited", lambda app: make_tables(Path(app.srcdir)))
