"""The Sphinx configuration. docs/site/CMakeLists.txt runs Sphinx on the pages that assemble.py writes."""

import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

project = "sconce"
author = "The sconce authors"
copyright = "The sconce authors"
version = release = os.environ["SCONCE_VERSION"]

extensions = ["myst_parser", "breathe", "sphinx_copybutton"]
exclude_patterns = ["README.md"]  # included by index.md
suppress_warnings = []

myst_heading_anchors = 4
breathe_projects = {"sconce": os.environ["SCONCE_DOXYGEN_XML"]}
breathe_default_project = "sconce"
breathe_default_members = ("members",)
primary_domain = "cpp"
highlight_language = "cpp"

html_theme = "furo"
html_title = f"sconce {version}"
html_favicon = "../logo.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs/site/search.js")
html_copy_source = False
html_show_sphinx = False
# Once CITATION.cff specifies the repository, every page links to it.
repository = re.search(r"^repository-code: *(\S+)$", (ROOT / "CITATION.cff").read_text(), re.M)
if repository:
    html_theme_options = {"footer_icons": [{"name": "Repository", "url": repository[1], "html": "Repository"}]}

# Programs and commands have a copy button, which skips prompts and command output. Output blocks have no button.
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"
copybutton_prompt_text = "$ "
