"""Write formulas as MathML, which browsers display without scripts or network access."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.math import get_node_equation_number

TOKEN = re.compile(r"\s*(\{|\\[a-zA-Z]+|\\.|.)", flags=re.DOTALL)
#: How many arguments a command has. TeX takes the next tokens, docutils expects braces.
ARGUMENTS = {r"\frac": 2, r"\tfrac": 2, r"\dfrac": 2, r"\sqrt": 1}
#: Commands that docutils does not have, and replacements.
SIMILAR = {r"\dots": r"\ldots"}
BIG = {r"\Big(": r"\left(", r"\Big)": r"\right)", r"\Big/": "/"}


def braced(tex: str) -> str:
    """Put braces around one-token arguments: `\\frac12` becomes `\\frac{1}{2}`."""
    for big, stretched in BIG.items():
        tex = tex.replace(big, stretched)
    written, position = "", 0
    while match := TOKEN.match(tex, position):
        written += tex[position : match.start(1)] + SIMILAR.get(match[1], match[1])
        position = match.end()
        for _ in range(ARGUMENTS.get(match[1], 0)):
            argument = TOKEN.match(tex, position)
            if argument is None or argument[1] in "{[":
                if argument is None or argument[1] == "[":
                    break
                end = group_end(tex, argument.start(1))
                written += "{" + braced(tex[argument.end() : end - 1]) + "}"
                position = end
            else:
                written += "{" + argument[1] + "}"
                position = argument.end()
    return written


def group_end(tex: str, start: int) -> int:
    """Return the position after the group that begins at `start`."""
    depth = 0
    for position in range(start, len(tex)):
        escaped = position > 0 and tex[position - 1] == "\\"
        depth += 0 if escaped else {"{": 1, "}": -1}.get(tex[position], 0)
        if depth == 0:
            return position + 1
    raise ValueError(f"a brace is not closed: {tex!r}")


#: A letter with an accent above and a subscript, which docutils writes below the letter.
ACCENTED = re.compile(
    r"<munderover>\s*(<mi>[^<]*</mi>)\s*(<m\w+>[^<]*</m\w+>|<mrow>(?:(?!</?mrow>).)*</mrow>)\s*"
    r"(<mo[^>]*>[\u02c6\u02c9\u02dc^~]</mo>)\s*</munderover>",
    flags=re.DOTALL,
)


def mathml(tex: str, as_block: bool) -> str:
    """Return a formula in MathML."""
    text = tex2mathml(braced(tex), as_block=as_block)
    return ACCENTED.sub(r'<msub><mover accent="true">\1\3</mover>\2</msub>', text)


def visit_math(self: Any, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body.append(mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_displaymath(self: Any, node: nodes.math_block) -> None:
    """Write a display formula, with its number if it has one."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    for part in filter(None, map(str.strip, node.astext().split("\n\n"))):
        self.body.append(mathml(part, as_block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
