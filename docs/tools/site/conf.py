"""The configuration of Sphinx for the site."""

project = "gateway"
html_title = "gateway"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"

# Anchors as GitHub makes them, so that the links between the pages work there, too.
myst_heading_anchors = 6

# The theme has its fonts and scripts in its own files, so that the site works without a network.
html_theme = "furo"
html_theme_options = {"source_view_link": ""}
html_static_path: list[str] = []
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

# Pages that the table of contents does not name are those of examples and measurements, which other pages link to; the
# blocks of output have a language of their own. Everything else is an error.
suppress_warnings = ["toc.not_included", "misc.highlighting_failure"]
