"""Render the recipe with rattler-build, without a network: ``python recipe/render.py``.

It fails if the recipe is invalid or its requirements differ from ``pyproject.toml``.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

HERE = Path(__file__).parent
PLATFORMS = ("linux-64", "linux-aarch64", "osx-64", "osx-arm64", "win-64")
#: The variants of conda-forge that the recipe needs.
VARIANTS = """
c_compiler: [gcc]
c_compiler_version: ["14"]
c_stdlib: [sysroot]
c_stdlib_version: ["2.17"]
python_min: ["3.11"]
"""


def main() -> int:
    """Print the defects and return their number."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))
    wanted = {
        "run": project["project"]["dependencies"],
        "host": [of.lower() for of in project["build-system"]["requires"]],
    }
    wanted["run"].append(f"python{project['project']['requires-python']}")
    wrong = 0
    recipe = Stage0Recipe.from_file(HERE / "recipe.yaml")
    for platform in PLATFORMS:
        config = RenderConfig(PlatformConfig(target_platform=platform))
        (found,) = recipe.render(VariantConfig.from_yaml(VARIANTS), config)
        has = found.recipe.to_dict()
        for section, names in wanted.items():
            given = {of.replace(" ", "") for of in has["requirements"][section]}
            for name in sorted(set(names) - given):
                print(f"{platform}, {section}: expected {name}, got {', '.join(sorted(given))}")
                wrong += 1
        if not any(of.startswith("gcc") for of in has["requirements"]["build"]):
            print(f"{platform}, build: expected a compiler")
            wrong += 1
    print(f"recipe: {len(PLATFORMS)} platforms rendered, {wrong} defects")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(), 1))
