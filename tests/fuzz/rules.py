"""Which relation holds for which builder: as bits, to a tolerance, or not at all.

The one place where this is written; `docs/dev/fuzzing.rst` shows the same text.
"""

from __future__ import annotations

#: What "to a tolerance" is, relatively.
TOLERANCE = 1e-6
#: Relations that hold as bits for every builder, wherever they can be put.
ALWAYS = ("again", "threads", "layout", "labels", "file", "pickle", "continued", "weights")
#: To a tolerance, for every model that has a certificate which can be computed anew.
CERTIFICATE = ("certificate",)

#: = the same bits, ~ to TOLERANCE, - not the same, . cannot be asked.
TABLE = """
builder, what its nodes are           sorted  copies  absent  rows  permuted  constants  scaled  units
adaboost, stumps                      =       ~       =       =     ~         =          =       =
adaboost, affine                      =       ~       =       =     -         -          -       =
adaboost, linear                      =       -       =       -     -         -          =       =
adaboost, separators                  =       -       =       =     ~         =          =       =
adaboost, gaussian                    =       ~       =       ~     ~         =          =       =
adaboost, sampled                     =       -       -       -     -         =          =       =
adaboost, oracles                     =       -       =       -     -         -          .       .
adaboost, sampled oracles             =       -       -       -     -         -          .       .
boosted_tree, stumps                  =       ~       =       =     ~         =          =       =
boosted_tree, affine                  =       ~       =       =     -         -          -       =
boosted_tree, linear                  =       -       =       -     -         -          =       =
boosted_tree, separators              =       -       =       =     ~         =          =       =
boosted_tree, gaussian                =       ~       =       ~     ~         =          =       =
boosted_tree, sampled                 =       -       -       -     -         =          =       =
boosted_tree, oracles                 =       -       =       -     -         -          .       .
boosted_tree, sampled oracles         =       -       -       -     -         -          .       .
matryoshka, stumps                    =       ~       =       ~     ~         =          =       =
matryoshka, affine                    =       ~       =       ~     -         -          -       =
matryoshka, linear                    =       -       =       -     -         -          =       =
matryoshka, separators                =       -       =       ~     ~         =          =       =
matryoshka, gaussian                  =       ~       =       ~     ~         =          =       =
matryoshka, sampled                   =       -       -       -     -         =          =       =
matryoshka, oracles                   =       -       =       -     -         -          .       .
matryoshka, sampled oracles           =       -       -       -     -         -          .       .
matryoshka by sign, stumps            =       ~       =       ~     ~         =          =       =
matryoshka by sign, affine            =       ~       =       ~     -         -          -       =
matryoshka by sign, linear            =       -       =       -     -         -          =       =
matryoshka by sign, separators        =       -       =       ~     ~         =          =       =
matryoshka by sign, gaussian          =       ~       =       ~     ~         =          =       =
matryoshka by sign, sampled           =       -       -       -     -         =          =       =
matryoshka by sign, oracles           =       -       =       -     -         -          .       .
matryoshka by sign, sampled oracles   =       -       -       -     -         -          .       .
oblique_tree                          =       -       =       =     ~         =          =       =
topdown_tree                          =       =       =       =     =         =          =       =
topdown_tree, own impurity            =       =       =       =     =         =          =       =
adaboost_real, stumps                 =       ~       =       ~     ~         =          =       =
adaboost_real, columns                =       ~       =       ~     -         -          =       =
adaboost_real, affine                 =       ~       =       ~     -         -          -       =
adaboost_real, functions              =       -       =       ~     -         -          .       .
cart, classes                         =       =       =       =     =         =          =       =
cart, numbers                         =       ~       =       ~     =         =          =       =
cart, drawn columns                   =       ~       =       ~     -         -          =       =
pruned_cart                           =       -       =       -     -         ~          =       =
forest                                =       -       -       -     -         -          =       =
bagging of graphs                     -       -       -       -     -         =          =       =
bagging of trees                      =       -       -       -     -         =          =       =
stagewise, classes                    =       -       =       ~     -         =          =       =
stagewise, numbers                    =       -       =       ~     ~         =          =       =
one_vs_rest                           =       -       =       ~     ~         =          =       =
one_vs_rest of probit trees           =       -       =       -     -         =          =       =
samme                                 =       -       -       -     -         =          =       =
probitboost                           =       -       =       -     -         =          =       =
probit_tree                           =       -       =       -     -         =          =       =
sbpmt                                 =       -       -       -     -         =          =       =
"""  # noqa: E501

BITS, CLOSE, NOT, NEVER = "=~-."


def parsed(text: str) -> dict[str, dict[str, str]]:
    """Return the levels by row and relation."""
    head, *lines = text.strip().splitlines()
    width = head.index("sorted")
    relations = head[width:].split()
    table = {}
    for line in lines:
        levels = line[width:].split()
        table[line[:width].strip()] = dict(zip(relations, levels, strict=True))
    return table


RULES = parsed(TABLE)


def level(row: str, relation: str) -> str:
    """Return how well a relation holds for a row of the table."""
    if relation in ALWAYS:
        return BITS
    if relation in CERTIFICATE:
        return CLOSE
    return RULES[row][relation]
