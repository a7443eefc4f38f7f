"""Sphinx settings."""

project = "heckesel"
author = "The heckesel developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
html_theme = "pydata_sphinx_theme"
autodoc_typehints = "none"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
