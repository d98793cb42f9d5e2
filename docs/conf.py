"""Sphinx settings."""

project = "arnpg"
author = "The arnpg developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "arnpg"
exclude_patterns = ["_build"]
autodoc_typehints = "none"
