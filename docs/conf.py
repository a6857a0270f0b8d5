"""Configuration of the documentation: ``python -m sphinx -W -b html docs docs/_build/html``.

Where PBOOST_PYODIDE_WHEEL names a wheel for Pyodide, and the extra ``lite`` is there, too, three
examples of the gallery run in a browser: ``lite.py`` makes the folder ``lite`` of the pages.
"""

import os
import subprocess
import sys
from inspect import isclass, isfunction
from pathlib import Path

from sphinx_gallery.sorting import FunctionSortKey

import pboost
from pboost.models.base import Model, public_names
from pboost.models.schema import Stored

sys.path.insert(0, str(Path(__file__).parent))

project = "pboost"
author = "The pboost developers"
project_copyright = author
version = release = pboost.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "changes",
    "mathml",
]
html_math_renderer = "mathml"
exclude_patterns = ["_build", "benchmarks/*_table.rst", "parameters_table.rst"]  # included in pages
templates_path = ["_templates"]
default_role = "py:obj"  # `fit_cart` in a docstring is a link
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "logo": {"text": "pboost"},
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_title = "pboost"
toc_object_entries_show_parents = "hide"
html_static_path = ["_static"]
html_css_files = ["pboost.css"]
html_show_sourcelink = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings state types and shapes
autosummary_generate = True


def shown_of(found):
    """Return the members listed on the page of a class, and the members that are left out.

    For a model, these are the public methods and properties, including inherited ones.
    """
    if issubclass(found, Model):
        values = ((name, getattr(found, name)) for name in public_names(found))
        return [n for n, v in values if isfunction(v) or isinstance(v, property)], []
    return [], sorted(name for name in {*vars(Stored), "check"} if not name.startswith("_"))


#: Members shown on the pages of classes that are stored in files. Other pages show all members.
SHOWN = {
    f"pboost.{name}": shown_of(found)
    for space in ("acquisition", "data", "inspection", "models")
    for name, found in (
        (f"{space}.{n}", getattr(getattr(pboost, space), n)) for n in getattr(pboost, space).__all__
    )
    if isclass(found) and issubclass(found, Stored)
}
autosummary_context = {"shown": SHOWN}
# Some file systems do not distinguish file names that differ only in case.
autosummary_filename_map = {
    f"pboost.{name}": f"pboost.{name}-class"
    for name in (
        "weak.Stump",
        "observation.Exact",
        "observation.Flip",
        "observation.Half",
        "observation.Uniform",
        "observation.AdaTree2",
        "observation.Gaussian",
        "observation.Sampled",
        "weak.Affine",
        "weak.Oracle",
        "inspection.Coefficients",
    )
}
# Docstrings describe the attributes, so no lists are generated from the classes.
numpydoc_show_class_members = False
# Each example imports the modules that it needs, so that it can be copied.
doctest_test_doctest_blocks = "default"

# Scripts of examples/gallery in the order of the page. Each is run (with the tag `fast`, only those
# in FAST); an exception ends the build.
GALLERY = [
    "comparison_budget.py",
    "leave_early.py",
    "values_on_demand.py",
    "search_error_and_cost.py",
    "microcontroller.py",
    "teacher_and_student.py",
    "holes_and_words.py",
    "error_bars.py",
    "crowd_labels.py",
    "ask_again.py",
    "for_a_regulator.py",
    "pictures_of_a_model.py",
    "shap_values.py",
    "calibrated_probabilities.py",
    "sets_of_labels.py",
    "many_classes.py",
    "quantiles_and_outliers.py",
    "slanted_borders.py",
    "equations_in_leaves.py",
    "own_weak_learner.py",
]
FAST = ["comparison_budget.py", "holes_and_words.py", "pictures_of_a_model.py"]
#: Whether the tag is set; `tags` is a name that Sphinx defines.
IS_FAST = "tags" in globals() and globals()["tags"].has("fast")
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": "|".join(FAST) if IS_FAST else r"\.py$",
    "within_subsection_order": FunctionSortKey(GALLERY.index),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "write_computation_times": False,
}

WHEEL = os.environ.get("PBOOST_PYODIDE_WHEEL")
if WHEEL:
    tags.add("lite")  # noqa: F821  # used by `only` in pages


def make_lite(app, error):
    """Build the JupyterLite site next to the pages."""
    if error is None and app.builder.format == "html":
        script = Path(__file__).with_name("lite.py")
        folder = Path(app.outdir, "lite")
        subprocess.run(
            [sys.executable, str(script), str(Path(WHEEL).resolve()), folder], check=True
        )


#: Public names as docstrings write them, `fit_cart`, `bin_columns` or `plot.tree`, and their whole
#: names.
WHOLE_NAMES = {name: f"pboost.{name}" for name in dir(pboost) if not name.startswith("_")}
for space in ("acquisition", "data", "export", "inspection", "models"):
    WHOLE_NAMES |= {name: f"pboost.{space}.{name}" for name in getattr(pboost, space).__all__}


def find_public(app, env, node, shown):
    """Resolve the name of a public object that is documented in another module of the package."""
    first, dot, rest = node["reftarget"].partition(".")
    if node.get("refdomain") != "py" or first not in WHOLE_NAMES:
        return None
    name, domain = f"{WHOLE_NAMES[first]}{dot}{rest}", env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], name, node, shown)


def setup(app):
    """Register the event handlers of this file."""
    app.connect("missing-reference", find_public)
    if WHEEL:
        app.connect("build-finished", make_lite)
