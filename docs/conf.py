"""Sphinx builds the documentation from here: see ``make docs``."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "MALT"
version = release = (HERE.parent / "VERSION").read_text().strip()
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_design",
    "inherited",
    "produced",
]
exclude_patterns = ["_ext", "_static", "_vale", "figures"]
nitpicky = True
show_warning_types = True
default_role = "py:obj"  # what docstrings have in single backticks

# ---- pages

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
shutil.copytree(HERE.parent / "examples/notebooks", HERE / "tutorials/notebooks", dirs_exist_ok=True)
for notebook in (HERE / "tutorials/notebooks").glob("*.ipynb"):  # from there the documentation is nearer
    notebook.write_text(notebook.read_text().replace("](../../docs/", "](../../"))
nb_execution_mode = "off"  # tutorials show what `make notebooks` has kept in them
nb_merge_streams = True

# ---- drawings, from the scripts in figures

plot_formats = ["svg"]
plot_html_show_formats = False
plot_html_show_source_link = False

# ---- reference, from the docstrings of the installed wheel

autodoc_member_order = "bysource"
autodoc_mock_imports = [name for name in ("sklearn", "torch") if find_spec(name) is None]
autodoc_typehints = "none"  # the docstrings say more
numpydoc_show_class_members = False
numpydoc_validation_checks = {"PR02", "PR10"}  # what is documented is there, and readable
python_display_short_literal_types = True
toc_object_entries_show_parents = "hide"
smartquotes = False  # "bsp" is code

# ---- looks

html_theme = "pydata_sphinx_theme"
html_title = f"MALT {version}"
html_static_path = ["_static"]
html_css_files = ["malt.css"]
html_sidebars = {"index": []}
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "logo": {"text": "MALT"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "footer_start": [],
    "footer_end": [],
    "show_prev_next": True,
    # Not where two programs beside each other need the width.
    "secondary_sidebar_items": {page: ["page-toc"] for page in ("guide/*", "api/*", "few-lines", "faq")},
    "header_links_before_dropdown": 6,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
