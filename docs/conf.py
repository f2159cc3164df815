"""How Sphinx builds the site of these pages: `make docs`. What is added to them is in `_site/`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from archc import __version__

project = "archc"
version = release = __version__
author = copyright = "the archc authors"

extensions = ["myst_parser", "docs._site"]
myst_enable_extensions = ["deflist"]
root_doc = "index"
exclude_patterns = ["_site"]
myst_heading_anchors = 3
nitpicky = True
smartquotes = False  # --port is no dash

html_theme = "furo"
html_title = f"archc {__version__}"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"source_repository": "", "top_of_page_buttons": []}
