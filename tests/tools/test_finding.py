from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError

VAULT = {"Work/Budget 2022.md": "#money\n", "Budget.md": "---\ntags: [Money/In]\n---\n", "Notes/Bud.md": "#moneybag\n", "logo.png": b""}


def test_names_best_first(bench):
    output = bench(VAULT).run("vault.searchName", query="budget")
    assert [(item["path"], item["name"]) for item in output["items"]] == [("Budget.md", "Budget"), ("Work/Budget 2022.md", "Budget 2022")]
    assert output["items"][0]["score"] == 100 > output["items"][1]["score"]
    assert (output["total"], output["hasMore"]) == (2, False)


def test_pages_of_names(bench):
    output = bench(VAULT).run("vault.searchName", query="bud", limit=1, offset=1)
    assert (len(output["items"]), output["total"], output["hasMore"]) == (1, 3, True)
    assert bench(VAULT).run("vault.searchName", query="bud", offset=3)["items"] == []


def test_names_as_earlier_steps_left_them(bench):
    vault = bench(VAULT)
    vault.run("vault.rename", **{"from": "logo.png", "to": "Art/emblem.png"})
    assert vault.run("vault.searchName", query="logo")["items"] == []
    assert [item["path"] for item in vault.run("vault.searchName", query="emblem")["items"]] == ["Art/emblem.png"]


@pytest.mark.parametrize("query", ["money", "#money", "#MONEY/"])
def test_a_tag_includes_its_nested_ones(bench, query):
    output = bench(VAULT).run("vault.searchTag", query=query)
    assert [item["path"] for item in output["items"]] == ["Budget.md", "Work/Budget 2022.md"]
    assert "score" not in output["items"][0]
    assert bench(VAULT).run("vault.searchTag", query=query, limit=1) | {"items": []} == {"items": [], "total": 2, "hasMore": True}


def test_no_tag(bench):
    with pytest.raises(ObsidianAgentError) as caught:
        bench(VAULT).run("vault.searchTag", query=" # ")
    assert caught.value.code == "ARGUMENT_INVALID"
