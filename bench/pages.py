"""Generated pages: `python -m bench.pages` writes those of `PAGES`. Tests fail for a stale one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bench import catalogue
from obsidian_agent.tui.screens.help import keys_page

DOCS = Path(__file__).parents[1] / "docs"
PAGES: Mapping[str, Callable[[], str]] = {
    "keys.md": keys_page,
    "recipes.md": catalogue.page,
}


def main() -> None:
    """Write them."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
