"""The directive ``changes``: the headings, lists and tables of CHANGELOG.md as a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective
from sphinx.util.parsing import nested_parse_to_nodes

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"


def lines() -> Iterator[str]:
    """Yield the changelog in reStructuredText, without its title."""
    in_table = False
    for line in CHANGELOG.read_text("utf-8").splitlines():
        text = re.sub(r"`([^`]+)`", r"``\1``", line)
        if in_table and not text.startswith("|"):
            yield ""
        if heading := re.match(r"(##+) (.*)", text):
            yield from (heading[2], "-~"[len(heading[1]) - 2] * len(heading[2]), "")
        elif text.startswith("|"):
            if not in_table:
                yield from (".. list-table::", "   :header-rows: 1", "")
            if not text.startswith("|---"):
                for column, cell in enumerate(text.strip("| ").split(" | ")):
                    yield f"   {' ' if column else '*'} - {cell}"
        elif not text.startswith("# "):
            yield text
        in_table = text.startswith("|")


class Changes(SphinxDirective):
    """Insert the changelog."""

    def run(self) -> list[Any]:
        """Return the nodes of all releases."""
        self.env.note_dependency(str(CHANGELOG))
        text = StringList(list(lines()), source=str(CHANGELOG))
        return nested_parse_to_nodes(self.state, text, allow_section_headings=True)


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("changes", Changes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
