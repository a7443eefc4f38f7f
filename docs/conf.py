"""Sphinx settings."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from generated import make_tables, run_pictures

project = "heckesel"
author = "The heckesel developers"
html_title = "heckesel"
extensions = ["myst_parser", "sphinx.ext.autodoc", "formulas"]
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
    app.connect("builder-inited", lambda app: run_pictures(Path(app.srcdir)))
    app.connect("builder-inited", lambda app: make_tables(Path(app.srcdir)))
