"""Figures on how the source reads: `python -m bench.reading [--list KIND]`.

One row per package, or every location of one kind. tests/test_reading.py holds all but the last two
kinds to zero.
"""

from __future__ import annotations

import argparse
import ast
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "obsidian_agent"
COLUMNS = 100

CHECKS = {
    "docstring": "a docstring (of an attribute too) that starts with a question or a word to avoid",
    "name": "an identifier to avoid",
    "phrase": "a phrase to avoid, in a comment or a text",
    "nested": "a conditional expression inside another",
    "constant": "a constant below the first definition of its module",
    "typing": "a second or an empty TYPE_CHECKING block",
    "class": "a public class name that another module has too",
}
"""The kinds that tests/test_reading.py holds to zero."""

FIGURES = {
    "long": f"a line over {COLUMNS} columns",
    "positional": "a call with six or more positional arguments",
}
"""The kinds that are only counted here; ruff checks the first."""

_QUESTIONS = "what whether where how who why which whatever whoever"
_ALONE = "asked cut each found given kept listen made none place say shown take taken wanted way"
_ANYWHERE = """anew besides customs hear kin lasting nobody person said settle settled somebody tell
told whichever whoever"""

AVOIDED = frozenset(_ALONE.split())
"""Words that are no name by themselves; as a part of one (`in_place`) they may be right."""

AVOIDED_ANYWHERE = frozenset(_ANYWHERE.split())
"""Words that are not even a part of a name."""

AVOIDED_FIRST = AVOIDED | AVOIDED_ANYWHERE | set(_QUESTIONS.split())
"""Words that start no docstring."""

PHRASES = re.compile(
    r"\b(the person|who uses it|nobody|somebody|whoever|(?<!-)anew|left alone|what came of|"
    r"put away|kept ready|(?<![\"'`])besides(?![\"'`]))\b",
    re.IGNORECASE,
)
"""Phrases to avoid; a quoted "besides" is the name of a stored field, `--start-anew` an option."""
MANY_ARGUMENTS = 6
TAKES_MANY = frozenset({"max", "min", "print", "frozenset", "pack"})


class Location(NamedTuple):
    """One line that reads badly."""

    kind: str
    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(PACKAGE.parent)}:{self.line}: {self.kind}: {self.text}"

    @property
    def part(self) -> str:
        """The package below obsidian_agent, or the module at its top."""
        return self.path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def locations(paths: Iterable[Path]) -> list[Location]:
    """Return every location of every kind in the modules."""
    every: list[Location] = []
    classes: defaultdict[str, list[Location]] = defaultdict(list)
    for path in sorted(paths):
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        for kind, line, note in _module(tree, text):
            every.append(Location(kind, path, line, note))
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(Location("class", path, node.lineno, node.name))
    for repeated in classes.values():
        if len(repeated) > 1:
            every.extend(repeated)
    return every


def _module(tree: ast.Module, text: str) -> Iterator[tuple[str, int, str]]:
    """Yield kind, line and text of what one module alone shows."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > COLUMNS:
            yield "long", number, line.strip()
    yield from _phrases(text)
    yield from _constants(tree)
    yield from _typing_blocks(tree)
    for node in ast.walk(tree):
        yield from _docstrings(node)
        yield from _names(node)
        if isinstance(node, ast.IfExp):
            if any(isinstance(part, ast.IfExp) for part in (node.test, node.body, node.orelse)):
                yield "nested", node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and _takes_many(node):
            yield "positional", node.lineno, ast.unparse(node)


def _phrases(text: str) -> Iterator[tuple[str, int, str]]:
    """Search comments and strings; names have a check of their own."""
    lines = iter(text.splitlines(keepends=True))
    for token in tokenize.generate_tokens(lambda: next(lines, "")):
        if tokenize.tok_name[token.type] in ("COMMENT", "STRING", "FSTRING_MIDDLE"):
            for offset, line in enumerate(token.string.splitlines()):
                if PHRASES.search(line):
                    yield "phrase", token.start[0] + offset, line.strip()


def _constants(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Yield constants that could stand above the first definition: their value uses none."""
    defined: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif defined and isinstance(node, ast.Assign | ast.AnnAssign):
            used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if used & defined:
                defined.update(target.id for target in targets if isinstance(target, ast.Name))
            elif isinstance(targets[0], ast.Name):
                yield "constant", node.lineno, targets[0].id


def _typing_blocks(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    blocks = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    ]
    for block in blocks[1:]:
        yield "typing", block.lineno, "a second block"
    for block in blocks:
        if all(isinstance(node, ast.Pass) for node in block.body):
            yield "typing", block.lineno, "an empty block"


def _docstrings(node: ast.AST) -> Iterator[tuple[str, int, str]]:
    """Check the texts at the start of a body and those behind an assignment."""
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return
    for before, statement in zip([None, *body], body, strict=False):
        match statement:
            case ast.Expr(value=ast.Constant(value=str(text))) if text.strip() and isinstance(
                before, ast.Assign | ast.AnnAssign | None
            ):
                first = text.split(maxsplit=1)[0].strip(".,:;—'’").lower()
                if first in AVOIDED_FIRST:
                    yield "docstring", statement.lineno, text.strip().splitlines()[0]


def _names(node: ast.AST) -> Iterator[tuple[str, int, str]]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            pass
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            pass
        case ast.Attribute(attr=name, ctx=ast.Store()):
            pass
        case _:
            return
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
    alone = words[0] if len(words) == 1 else ""
    if {alone, alone.removesuffix("s")} & AVOIDED or AVOIDED_ANYWHERE & set(words):
        yield "name", getattr(node, "lineno", 1), name


def _takes_many(call: ast.Call) -> bool:
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    return (
        len(call.args) >= MANY_ARGUMENTS
        and name not in TAKES_MANY
        and not any(isinstance(argument, ast.Starred) for argument in call.args)
    )


def main() -> None:
    """Print the table, or the locations of one kind."""
    parser = argparse.ArgumentParser(prog="bench.reading", description=__doc__)
    parser.add_argument("--list", choices=[*CHECKS, *FIGURES], dest="kind")
    parser.add_argument("--part", help="only this package, or this module at the top")
    options = parser.parse_args()
    every = [
        location
        for location in locations(PACKAGE.rglob("*.py"))
        if options.part in (None, location.part)
    ]
    if options.kind:
        print(*(location for location in every if location.kind == options.kind), sep="\n")
        return
    kinds = [*CHECKS, *FIGURES]
    counts = Counter((location.part, location.kind) for location in every)
    print(f"{'':16}" + "".join(f"{kind:>11}" for kind in kinds))
    for part in sorted({location.part for location in every}):
        print(f"{part:16}" + "".join(f"{counts[part, kind]:>11}" for kind in kinds))
    sums = Counter(location.kind for location in every)
    print(f"{'all':16}" + "".join(f"{sums[kind]:>11}" for kind in kinds))


if __name__ == "__main__":
    main()
