"""Sphinx settings. docs/site/CMakeLists.txt runs Sphinx on the pages that assemble.py wrote."""

import os
import pathlib

project = "sconce"
author = "The sconce authors"
copyright = "The sconce authors"
version = release = os.environ["SCONCE_VERSION"]

extensions = ["myst_parser", "breathe"]
exclude_patterns = ["README.md"]  # index.md includes it
suppress_warnings = []

myst_heading_anchors = 4
breathe_projects = {"sconce": os.environ["SCONCE_DOXYGEN_XML"]}
breathe_default_project = "sconce"
breathe_default_members = ("members",)
primary_domain = "cpp"
highlight_language = "cpp"

html_theme = "furo"
html_title = "sconce"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(pathlib.Path(__file__).with_name("search.js"))
html_copy_source = False
html_show_sphinx = False
