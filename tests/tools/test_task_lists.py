from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError

VAULT = {
    "a.md": "- [ ] #task/home call Ann 📅 2026-03-20\n- [x] #task paid\n- [ ] plain\n\n## Later\n\n- [-] #task dropped\n- [/] #task half [due:: 2026-03-01]\n",
    "b.md": "> - [ ] quoted #tasks\n\n```\n- [ ] code\n```\n",
    "sub/c.md": "- [ ] c (due:: 2026-04-01)\n",
}


def texts(bench, **args):
    return [item["text"] for item in bench(VAULT).run("vault.listTasks", **args)["items"]]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"path": "a.md"}, ["#task/home call Ann 📅 2026-03-20", "plain", "#task half [due:: 2026-03-01]"]),
        ({"path": "a.md", "tag": "#task"}, ["#task/home call Ann 📅 2026-03-20", "#task half [due:: 2026-03-01]"]),
        ({"path": "a.md", "status": "done"}, ["#task paid"]),
        ({"path": "a.md", "heading": "Later", "status": "all"}, ["#task dropped", "#task half [due:: 2026-03-01]"]),
        ({"text": "ann"}, ["#task/home call Ann 📅 2026-03-20"]),
        ({"folder": "sub"}, ["c (due:: 2026-04-01)"]),
        ({"dueBefore": "2026-03-20"}, ["#task half [due:: 2026-03-01]"]),
        ({"dueAfter": "2026-03-20"}, ["#task/home call Ann 📅 2026-03-20", "c (due:: 2026-04-01)"]),
        ({"files": [{"path": "sub/c.md"}, None, "b.md"]}, ["c (due:: 2026-04-01)", "quoted #tasks"]),
        ({"heading": "Later"}, ["#task half [due:: 2026-03-01]"]),
    ],
)
def test_which_tasks(bench, args, expected):
    assert texts(bench, **args) == expected


def test_what_is_told_of_a_task(bench):
    assert bench(VAULT).run("vault.listTasks", path="a.md")["items"][0] == {
        "path": "a.md",
        "name": "a",
        "text": "#task/home call Ann 📅 2026-03-20",
        "status": " ",
        "line": 1,
        "tags": ["task/home"],
        "due": "2026-03-20",
    }


def test_two_places_are_an_error(bench):
    with pytest.raises(ValueError, match="only one"):
        texts(bench, path="a.md", folder="sub")


def test_a_missing_heading_of_one_note_is_an_error(bench):
    with pytest.raises(ObsidianAgentError, match="no heading"):
        texts(bench, path="a.md", heading="Never")
