"""Build a JupyterLite site that runs three examples of the gallery in the browser.

    python docs/lite.py WHEEL FOLDER

WHEEL is a wheel of the package for Pyodide, as ``cibuildwheel --platform pyodide`` makes it; FOLDER
is made anew. It takes the extra ``lite``, and no network.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sphinx_gallery.notebook import python_to_jupyter_cli

GALLERY = Path(__file__).parents[1] / "examples" / "gallery"
#: Those that take a second or two.
EXAMPLES = ("calibrated_probabilities.py", "for_a_regulator.py", "pictures_of_a_model.py")
#: The wheel is found in the site, others where Pyodide has its packages.
FIRST = "%pip install -q pboosting matplotlib narwhals pandas\n%matplotlib inline"


def main(args: list[str] | None = None) -> None:
    """Create the notebooks and build the site."""
    parser = argparse.ArgumentParser(description="JupyterLite with examples")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args(args)
    if not given.wheel.is_file() or given.wheel.suffix != ".whl":
        parser.error(f"wheel: expected a wheel that is there, got {given.wheel}")
    with tempfile.TemporaryDirectory() as work:
        contents = Path(work, "contents")
        contents.mkdir()
        scripts = [shutil.copy(GALLERY / name, work) for name in EXAMPLES]
        python_to_jupyter_cli(scripts, sphinx_gallery_conf={"first_notebook_cell": FIRST})
        for script in scripts:
            shutil.move(Path(script).with_suffix(".ipynb"), contents)
        command = [sys.executable, "-m", "jupyter", "lite", "build", "--lite-dir", work]
        command += ["--contents", str(contents), "--output-dir", str(given.folder.resolve())]
        command += ["--piplite-wheels", str(given.wheel.resolve()), "--no-sourcemaps"]
        subprocess.run(command, check=True, cwd=work)
    _check(given.folder, given.wheel.name)


def _check(folder: Path, wheel: str) -> None:
    """Raise an error if the site lacks the wheel or the notebooks."""
    index = folder / "pypi" / "all.json"
    found = json.loads(index.read_text("utf-8")) if index.exists() else {}
    releases = found.get("pboosting", {}).get("releases", {})
    if not any(one["filename"] == wheel for each in releases.values() for one in each):
        raise SystemExit(f"wheel: expected one for Pyodide, got {wheel}")
    contents = json.loads((folder / "api" / "contents" / "all.json").read_text("utf-8"))
    paths = {one["path"] for one in contents["content"]}
    missing = {Path(name).with_suffix(".ipynb").name for name in EXAMPLES} - paths
    if missing:
        raise SystemExit(f"notebooks that are not in the site: {', '.join(sorted(missing))}")


if __name__ == "__main__":
    main()
