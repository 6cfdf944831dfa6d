"""The law of rolling over: no open task is lost or doubled, whatever the notes, also after a kill.

It is held for some days in a plain run and for 10,000 under `-m soak`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from faults import power_cut
from laws.test_runs import held
from obsidian_agent.offline.recipe import packaged, recipe_named
from obsidian_agent.offline.recipe_plan import fill
from obsidian_agent.vault.markdown.lines import tasks
from stories import World, world

TODAY = "2026-03-14.md"
DAYS = [f"2026-03-{day:02}.md" for day in range(5, 14)]
TEMPLATE = "Templates/Day.md"
CHUNKS = (
    *(
        "- [ ] a\n",
        "- [ ] b\n",
        "- [/] a\n",
        "* [ ] c 📅 2026-03-01\n",
        "1. [ ] d\n",
        "- [ ] e ^id\n",
    ),
    *("- [x] a\n", "- [-] b\n", "- [>] c\n", "- item\n", "text\n", "\n", "[[2026-03-12#^id]]\n"),
    *("- [ ] f\n\t- [ ] g\n\t- [x] h\n\t  more\n", "- item\n\t- [ ] i\n", "> - [ ] quoted\n"),
    *("```\n- [ ] code\n```\n", "%%\n- [ ] hidden\n%%\n", "## Tasks\n", "## Log\n", "# Day\n"),
)
texts = st.lists(st.sampled_from(CHUNKS), max_size=8).map("".join)
notes = st.dictionaries(st.sampled_from([*DAYS, TODAY]), texts, min_size=1, max_size=6)
options = st.fixed_dictionaries(
    {"count": st.integers(1, 9), "leave": st.sampled_from(["nothing", "mark", "link"])}
)


def open_tasks(texts: Mapping[str, str]) -> Counter[str]:
    return Counter(
        task.text
        for name, text in texts.items()
        if name != TEMPLATE
        for task in tasks(text)
        if task.status in " /"
    )


def texts_of(home: World) -> dict[str, str]:
    return {
        name: data.decode()
        for name, (kind, _, data) in home.seen().items()
        if kind == "file" and name.endswith(".md")
    }


def no_task_is_lost(
    notes: Mapping[str, str],
    template: str,
    options: Mapping[str, Any],
    windows: bool,
    cut: int,
    finish: bool,
) -> None:
    files = {**notes, TEMPLATE: template}
    if windows:
        files = {name: text.replace("\n", "\r\n") for name, text in files.items()}
    recipe = recipe_named("roll-over-tasks", packaged())
    assert recipe is not None
    with world({name: (text, 0o644) for name, text in files.items()}, set()) as home:
        settings = home.root / ".obsidian" / "daily-notes.json"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text('{"template": "Templates/Day"}')
        untouched = texts_of(home)
        before = open_tasks({TODAY: untouched[TEMPLATE], **untouched})
        preview = home.session.plans.dry_run(fill(recipe, {"period": "day", **options}))
        if not preview.valid:
            event("no note")
            assert not set(DAYS) & set(notes)
            return
        with power_cut(cut):
            home.run(preview)
        runs = home.session.runs
        if runs.interrupted():
            runs.recover(None, finish)
            event(f"interrupted, {'finished' if finish else 'rolled back'}")
        now = texts_of(home)
        if now == untouched:
            return
        after = open_tasks(now)
        of_template = open_tasks({"": template})
        today = open_tasks({TODAY: untouched.get(TODAY, untouched[TEMPLATE])})
        for text in before | after:
            if text in of_template:
                # An old task that today's template gives again counts as that one.
                assert max(today[text], min(before[text], 1)) <= after[text] <= before[text], text
            else:
                assert after[text] == before[text], text


story = given(
    notes=notes,
    template=texts,
    options=options,
    windows=st.booleans(),
    cut=st.integers(0, 40),
    finish=st.booleans(),
)


@held(60)
@story
@example(
    notes={"2026-03-13.md": "- [ ] a\n- [ ] b\n"},
    template="- [ ] a\n",
    options={"count": 9, "leave": "link"},
    windows=True,
    cut=1000,
    finish=True,
)
def test_no_task_is_lost_or_doubled(**story: Any) -> None:
    no_task_is_lost(**story)


@pytest.mark.soak
@held(10_000)
@story
def test_no_task_is_lost_or_doubled_on_10_000_days(**story: Any) -> None:
    no_task_is_lost(**story)
