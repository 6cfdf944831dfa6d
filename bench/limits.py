"""Every limit of the program with its reason, as a page: docs/limits.md. Read from the modules' source, so that none moves unseen."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "obsidian_agent"
_INTRODUCTION = """# Limits, and why they are what they are

Made from the constants of the modules and what is said below each, by `make docs`; a test keeps it up to date. Those of the screen (`tui/`)
are left out. What a constant stands for is said once for several that stand together.
"""


def page() -> str:
    """The page, with a line for each constant."""
    rows = [
        f"| {module} | `{name}` | {value:,} | {reason} |"
        for module, name, value, reason in limits()
    ]
    return "\n".join([_INTRODUCTION, "| where | limit | is | why |\n|---|---|---|---|", *rows, ""])


def limits() -> Iterator[tuple[str, str, float, str]]:
    """Module, name, value and reason ("" when none is given) of each number that a module names, but for what it keeps to itself (`_NAME`)."""
    for file in sorted(PACKAGE.rglob("*.py")):
        module = file.relative_to(PACKAGE).as_posix()
        if not module.startswith("tui/"):
            body = ast.parse(file.read_text("utf-8")).body
            for at, node in enumerate(body):
                name, value = _number(node)
                if name.isupper() and not name.startswith("_") and value is not None:
                    yield module, name, value, _reason(body, at)


def _number(node: ast.stmt) -> tuple[str, float | None]:
    match node:
        case (
            ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            | ast.Assign(targets=[ast.Name(id=name)], value=value)
        ):
            pass
        case _:
            return "", None
    if any(
        not isinstance(each, ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop)
        for each in ast.walk(value)
    ):
        return "", None
    number = eval(compile(ast.Expression(value), "", "eval"), {"__builtins__": {}})
    return name, number if type(number) in (int, float) else None


def _reason(body: list[ast.stmt], at: int) -> str:
    """What is said below a constant, or below those that stand with it, without an empty line between."""
    for node, following in zip(body[at:], body[at + 1 :], strict=False):
        match following:
            case ast.Expr(value=ast.Constant(value=str(text))):
                return " ".join(text.split())
            case ast.Assign() | ast.AnnAssign() if following.lineno == (node.end_lineno or 0) + 1:
                continue
            case _:
                return ""
    return ""
