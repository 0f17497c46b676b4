"""Sphinx: MyST pages in the furo theme, built without a network, every warning an error (see `make docs`)."""

from __future__ import annotations

import cranfield

project = "Cranfield"
author = "The Cranfield developers"
copyright = f"2026, {author}"
release = version = cranfield.__version__

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# The last two are included in pages.
exclude_patterns = ["_build", "requirements", "reference/generated/calculator.md", "reference/generated/platforms.md"]
nitpicky = True

html_theme = "furo"
html_title = f"Cranfield {release}"
html_show_sphinx = False
html_copy_source = False
# Examples are shown as they are typed: no dashes or quotes made pretty inside prose either.
smartquotes = False
