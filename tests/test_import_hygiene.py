"""Imports: the core needs no screen, a start needs no model, `--version` needs nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CORE = [
    "services.session",
    "services.executor",
    "bootstrap",
    "journal.undo",
    "journal.recovery",
    "plan.preview",
    "tools.registry",
    "vault.filesystem.store",
]
MOST_MODULES = 171
"""Of our own, for a sentence that is run: each costs a few milliseconds of every start."""

MOST_EXPRESSIONS = 270
"""Expressions compiled for one sentence in a new vault, those of libraries included."""

MOST_MODULES_OF_A_FRAME = 70

HEAVY = ("textual", "rich", "litellm", "openai", "httpx", "numpy", "watchdog", "markdown_it")


def imported(statement: str) -> set[str]:
    """Top-level names in sys.modules after a statement in a fresh interpreter."""
    code = f"import sys\n{statement}\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", CORE)
def test_the_core_imports_neither_screen_nor_model(module: str) -> None:
    assert imported(f"import obsidian_agent.{module}").isdisjoint(HEAVY)


def test_version_imports_nothing_of_ours_but_the_package() -> None:
    statement = "sys.argv = ['obsidian-agent', '--version']\nfrom obsidian_agent.__main__ import main\nmain()"
    code = f"import sys\n{statement}\nprint(*sorted(name for name in sys.modules if name.startswith('obsidian_agent')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1].split() == ["obsidian_agent", "obsidian_agent.__main__"]
    assert imported(statement).isdisjoint({*HEAVY, "pydantic", "argparse", "asyncio"})


def test_the_app_imports_no_model_before_it_is_asked() -> None:
    assert imported("import obsidian_agent.tui.app").isdisjoint(
        {"litellm", "openai", "httpx", "numpy"}
    )


def test_who_asks_for_no_recipe_loads_none() -> None:
    loaded = "import obsidian_agent.cli.search, obsidian_agent.cli.plan, obsidian_agent.cli.report, obsidian_agent.bootstrap"
    code = f"import sys\n{loaded}\nprint(*sorted(name for name in sys.modules if name.startswith('obsidian_agent.offline')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    assert imported("import obsidian_agent.services.offline_planner").isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["do", "--help"],
        ["ask", "--help"],
        ["undo", "--help"],
        ["macro", "run", "--help"],
    ],
)
def test_help_waits_for_nothing_that_a_command_needs(arguments: list[str]) -> None:
    statement = f"from obsidian_agent.cli.main import main\ntry: main({arguments})\nexcept SystemExit: pass\nprint()"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{statement}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "obsidian_agent.cli.parser" in loaded
    assert loaded.isdisjoint(
        {
            *HEAVY,
            "pydantic",
            "asyncio",
            "sqlite3",
            "obsidian_agent.bootstrap",
            "obsidian_agent.agent",
            "obsidian_agent.services",
        }
    )


def test_a_sentence_that_is_certain_loads_neither_model_nor_screen_nor_what_only_other_tools_need(
    tmp_path: Path,
) -> None:
    shutil.copytree(Path(__file__).parents[1] / "fixtures" / "vault", tmp_path / "vault")
    arguments = [
        "do",
        'append "x" to Inbox',
        "--vault",
        str(tmp_path / "vault"),
        "--state-dir",
        str(tmp_path / "state"),
        "--offline",
        "--yes",
    ]
    code = f"""
import sys, re._compiler as compiler
compiled, compile = 0, compiler.compile
def counted(*given):
    global compiled
    compiled += 1
    return compile(*given)
compiler.compile = counted
from obsidian_agent.cli.main import main
done = main({arguments})
print()
print(done, compiled, *sys.modules)"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    done, compiled, *modules = run.stdout.splitlines()[-1].split()
    assert done == "0"
    loaded = {name.partition(".")[0] for name in modules}
    assert loaded.isdisjoint(
        {
            "textual",
            "rich",
            "litellm",
            "openai",
            "httpx",
            "numpy",
            "watchdog",
            "rapidfuzz",
            "jsonschema",
            "jinja2",
            "aiohttp",
            "frontmatter",
            "regex",
        }
    )
    ours = {name for name in modules if name.startswith("obsidian_agent")}
    assert {
        name
        for name in ours
        if name.startswith(("obsidian_agent.tui", "obsidian_agent.providers."))
    } <= {"obsidian_agent.providers.base"}
    assert int(compiled) <= MOST_EXPRESSIONS, (
        "expressions are compiled where they are used first: obsidian_agent/expression.py"
    )
    assert len(ours) <= MOST_MODULES, (
        "what is not needed for every sentence is imported where it is used"
    )


def test_the_first_frame_is_drawn_from_the_screen_alone() -> None:
    code = """
import sys
from obsidian_agent.cli.app import app_over

seen = []

def opening():
    seen.extend(sys.modules)
    raise ValueError("no vault")

app = app_over("Vault", opening)
app.run(headless=True)
assert isinstance(app.open_error, ValueError)
print(*seen)
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "120"},
    )
    loaded = set(run.stdout.splitlines()[-1].split())
    assert loaded.isdisjoint({*HEAVY, "pydantic", "sqlite3", "markdown_it"} - {"textual", "rich"})
    ours = {
        name.removeprefix("obsidian_agent.")
        for name in loaded
        if name.startswith("obsidian_agent.")
    }
    assert "tui.screens.main" in ours
    below = {name for name in ours if not name.startswith(("tui", "cli"))}
    assert below <= {
        "services",
        "services.fields",
        "errors",
        "expression",
        "terminal_text",
    }, "opened behind the first frame, not before it"
    assert len(ours) <= MOST_MODULES_OF_A_FRAME


@pytest.mark.parametrize(
    ("command", "most"),
    [
        (["search", "Inbox"], 80),
        (["search", "#x", "--mode", "tag"], 80),
        (["links"], 57),
        (["links", "Inbox"], 80),
    ],
)
def test_looking_something_up_loads_no_pydantic_no_tool_and_no_agent(
    tmp_path: Path, command: list[str], most: int
) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "Inbox.md").write_text(
        "---\ntags: [x]\n---\n# Inbox\n- [ ] see [[Other]] #y\n"
    )
    arguments = [
        *command,
        "--vault",
        str(tmp_path / "vault"),
        "--state-dir",
        str(tmp_path / "state"),
    ]
    code = f"import sys\nfrom obsidian_agent.cli.main import main\ndone = main({arguments})\nprint()\nprint(done, *sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    done, *modules = run.stdout.splitlines()[-1].split()
    assert done == "0"
    assert {name.partition(".")[0] for name in modules} & {
        *HEAVY,
        "pydantic",
        "asyncio",
        "regex",
        "yaml",
        "ssl",
    } == set()
    ours = {name for name in modules if name.startswith("obsidian_agent")}
    assert not [
        name
        for name in ours
        if name.startswith(
            (
                "obsidian_agent.agent",
                "obsidian_agent.services",
                "obsidian_agent.plan",
                "obsidian_agent.bootstrap",
            )
        )
    ]
    assert len(ours) <= most, "what is not needed to look something up is imported where it is used"
