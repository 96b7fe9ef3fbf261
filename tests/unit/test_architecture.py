"""What the import contracts cannot say about the source tree.

Source: STYLE (Shape, Docstrings).
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("config", "examples", "proxy", "registry")
SOURCES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def _functions(file: Path) -> Iterator[Function]:
    return (node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, Function))


def _own_lines(function: Function) -> int:
    """Lines of the body, docstring and nested functions not counted."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not body:
        return 0
    nested = [node for node in ast.walk(function) if isinstance(node, Function) and node is not function]
    inner = {line for node in nested for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return len(set(range(body[0].lineno, (body[-1].end_lineno or 0) + 1)) - inner)


@pytest.mark.parametrize("file", SOURCES, ids=_name)
def test_a_source_file_has_at_most_300_lines(file: Path) -> None:
    assert len(file.read_text("utf-8").splitlines()) <= 300


@pytest.mark.parametrize("file", SOURCES, ids=_name)
def test_a_function_has_at_most_25_lines_of_its_own(file: Path) -> None:
    assert {f.name: _own_lines(f) for f in _functions(file) if _own_lines(f) > 25} == {}


@pytest.mark.parametrize("file", SOURCES + TESTS, ids=_name)
def test_a_module_says_what_it_is_for(file: Path) -> None:
    text = file.read_text("utf-8")

    assert not text.strip() or ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize("file", SOURCES, ids=_name)
def test_a_suppression_names_its_code_and_its_reason(file: Path) -> None:
    unexplained = [
        line.strip()
        for line in file.read_text("utf-8").splitlines()
        if ("# noqa" in line or "# type: ignore" in line) and not _is_explained(line)
    ]

    assert unexplained == []


def _is_explained(line: str) -> bool:
    comment = line.partition("# noqa")[2] or line.partition("# type: ignore")[2]
    code, _, reason = comment.lstrip(":[ ").partition(" ")
    return code.strip("],:").replace("-", "").isalnum() and bool(reason.strip(" #"))


def test_the_wire_spellings_of_the_store_stay_at_its_edge() -> None:
    outside = [file for file in SOURCES if (ROOT / "registry/mongo") not in file.parents]

    assert [_name(file) for file in outside if "registryDisabledTools" in _code(file)] == []


def test_the_spellings_of_the_api_stay_at_its_edge() -> None:
    edges = {ROOT / "registry/api", ROOT / "config/banner.py"}  # the banner shows a request to paste
    outside = [file for file in SOURCES if not edges.intersection((file, *file.parents))]

    assert [_name(file) for file in outside if '"disabledTools"' in _code(file)] == []


def _code(file: Path) -> str:
    """The text without docstrings and comments."""
    return ast.unparse(_Bare().visit(ast.parse(file.read_text("utf-8")))).replace("'", '"')


class _Bare(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        bare = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return ast.Pass() if bare else node
