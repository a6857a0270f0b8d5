"""No offset of the kernels is a product of ints, which overflows at 2**31: Py_ssize_t throughout.

``n_classes * e`` and ``NODE_INTS * e`` of trees were computed in int: with 10 classes and more than
214 million nodes arrays were read and written outside their bounds. Cython says what type each
product has that is an index, or is added to a pointer.
"""

from pathlib import Path

import pytest

pytest.importorskip("Cython")
from Cython.Compiler import Errors, Main, Pipeline, PyrexTypes
from Cython.Compiler.ParseTreeTransforms import AnalyseExpressionsTransform
from Cython.Compiler.Visitor import TreeVisitor

KERNELS = Path(__file__).parents[2] / "pboost" / "_core"

SOURCE = """
cdef struct Node:
    int n
    Py_ssize_t size

cdef double at(const double* a, Node* node, int i, const double[:, ::1] b) noexcept nogil:
    return {}
"""


class Offsets(TreeVisitor):
    """Collects the places of products that are computed in int and are offsets."""

    def __init__(self):
        super().__init__()
        self.found, self._depth = set(), 0

    def visit_Node(self, node):
        self.visitchildren(node)

    def visit_IndexNode(self, node):
        self.visit(node.base)
        self._visit_offsets(node.index)

    def visit_MemoryViewIndexNode(self, node):
        self.visit(node.base)
        self._visit_offsets(*node.indices)

    def visit_AddNode(self, node):
        if node.type.is_ptr:
            self._visit_offsets(node.operand1, node.operand2)
        else:
            self.visitchildren(node)

    def visit_SubNode(self, node):
        self.visit_AddNode(node)

    def visit_MulNode(self, node):
        if self._depth and is_narrow(node):
            self.found.add((Path(node.pos[0].get_description()).name, node.pos[1]))
        self.visitchildren(node)

    def visit_IntBinopNode(self, node):
        self.visit(node.operand1)
        if node.operator not in ("<<", ">>"):
            self.visit(node.operand2)

    def _visit_offsets(self, *nodes):
        self._depth += 1
        for node in nodes:
            self.visit(node)
        self._depth -= 1


def is_narrow(product):
    """Whether C computes a product in int, constants left aside; to Cython these can be long."""
    factors = [
        f
        for f in (product.operand1, product.operand2)
        if not (f.has_constant_result() or f.type.is_enum)
    ]
    return bool(factors) and all(
        f.type.is_int and f.type.rank <= PyrexTypes.c_int_type.rank for f in factors
    )


def until_typed(pipeline, offsets):
    """Return the part of a pipeline after which expressions have types, and a look at them."""
    end = next(i for i, p in enumerate(pipeline) if isinstance(p, AnalyseExpressionsTransform)) + 1

    def look(tree):
        offsets.visit(tree)
        return tree

    return [*pipeline[:end], look], pipeline[end:]


def find(paths, monkeypatch):
    """Return the int products that are offsets in sources, and in what these include."""
    offsets = Offsets()
    of_pxd = Pipeline.create_pxd_pipeline

    def looked_at(*arguments):
        first, rest = until_typed(of_pxd(*arguments), offsets)
        return first + rest

    options = Main.CompilationOptions(Main.default_options, language_level=3)
    context = Main.Context.from_options(options)
    monkeypatch.setattr(Pipeline, "create_pxd_pipeline", looked_at)
    for path in paths:
        file, name = Main.FileSourceDescriptor(str(path), str(path)), f"pboost._core.{path.stem}"
        source = Main.CompilationSource(file, name, str(path.parent))
        result = Main.create_default_resultobj(source, options)
        Errors.init_thread()
        pipeline, _ = until_typed(Pipeline.create_pyx_pipeline(context, options, result), offsets)
        error, _ = Pipeline.run_pipeline(pipeline, source)
        assert error is None, error
    return offsets.found


@pytest.mark.full
@pytest.mark.skipif(not KERNELS.is_dir(), reason="needs the sources of the kernels")
def test_no_offset_of_a_kernel_is_a_product_of_ints(monkeypatch):
    monkeypatch.chdir(KERNELS.parents[1])
    paths = sorted(KERNELS.glob("*.pyx"))
    assert len(paths) >= 10
    assert find(paths, monkeypatch) == set()


@pytest.mark.full
@pytest.mark.parametrize(
    ("expression", "is_found"),
    [
        ("a[3 * i]", True),
        ("a[i + node.n * i]", True),
        ("(a + 2 * i)[0]", True),
        ("b[0, node.n * node.n]", True),
        ("a[node.size * i]", False),
        ("a[3 * <Py_ssize_t>i]", False),
        ("a[2 * 3 + i]", False),
        ("a[i + 2 * node.size]", False),
        ("a[i] * 3 * i", False),
        ("a[(node.size >> (8 * i)) & 255]", False),
        ("a[(8 * i) & 255]", True),
    ],
)
def test_what_is_found(expression, is_found, tmp_path, monkeypatch):
    (tmp_path / "kernel.pyx").write_text(SOURCE.format(expression))
    actual = find([tmp_path / "kernel.pyx"], monkeypatch)
    assert actual == ({("kernel.pyx", 7)} if is_found else set())
