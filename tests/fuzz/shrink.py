"""Make a program that differs smaller, as long as it still differs."""

import ast
import itertools
from collections.abc import Callable, Iterator


def shrunk(source: str, differs: Callable[[str], bool], attempts: int = 2000) -> str:
    """The smallest program found that still differs: statements removed, bodies put in the place of their blocks."""
    tree = ast.parse(source)
    passed = 0  # how many reductions of this tree, in order, are known to lose the difference
    whole = False
    while not whole and attempts > 0:
        whole = passed == 0
        for smaller in itertools.islice(_smaller(tree), passed, None):
            attempts -= 1
            text = ast.unparse(smaller)
            if differs(text):
                tree, whole = ast.parse(text), False
                break
            passed += 1
            if attempts <= 0:
                break
        else:
            passed = 0
    return ast.unparse(tree)


def _smaller(tree: ast.Module) -> Iterator[ast.Module]:
    """Copies of `tree` with less in them, greatest reduction first."""
    text = ast.unparse(tree)
    places = [
        (number, field)
        for number, node in enumerate(ast.walk(tree))
        for field in ("body", "orelse", "finalbody", "handlers", "cases")
        if isinstance(getattr(node, field, None), list)
    ]
    for number, field in places:
        length = len(getattr(_nth(tree, number), field))
        size = length
        while size >= 1:
            for start in range(length - size, -1, -size):
                copied = ast.parse(text)
                node = _nth(copied, number)
                items = getattr(node, field)
                if [type(item) for item in items[start : start + size]] == [ast.Pass]:
                    continue
                items[start : start + size] = [] if field != "body" or len(items) > size else [ast.Pass()]
                yield ast.fix_missing_locations(copied)
            size //= 2
    for number, field in places:
        for position, statement in enumerate(getattr(_nth(tree, number), field)):
            if field in ("body", "orelse", "finalbody") and isinstance(
                getattr(statement, "body", None), list
            ):
                if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                    continue
                copied = ast.parse(text)
                items = getattr(_nth(copied, number), field)
                items[position : position + 1] = items[position].body
                yield ast.fix_missing_locations(copied)
    yield from _smaller_expressions(tree, text)


def _smaller_expressions(tree: ast.Module, text: str) -> Iterator[ast.Module]:
    for number, node in enumerate(ast.walk(tree)):
        for field, value in ast.iter_fields(node):
            if not isinstance(value, ast.expr) or isinstance(value, ast.Name | ast.Constant):
                continue
            inner = [child for child in ast.iter_child_nodes(value) if isinstance(child, ast.expr)]
            for position in range(len(inner)):
                copied = ast.parse(text)
                parent = _nth(copied, number)
                found = getattr(parent, field)
                parts = [child for child in ast.iter_child_nodes(found) if isinstance(child, ast.expr)]
                setattr(parent, field, parts[position])
                yield ast.fix_missing_locations(copied)


def _nth(tree: ast.AST, number: int) -> ast.AST:
    for position, node in enumerate(ast.walk(tree)):
        if position == number:
            return node
    raise IndexError(number)
