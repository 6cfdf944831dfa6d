from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tools.items import FILTER_ITEMS

ITEMS = [{"t": "a", "s": " ", "n": 1}, None, {"t": "b", "s": "x", "n": True}, {"t": "c"}]


@pytest.mark.parametrize(
    ("where", "exclude", "kept"),
    [
        ({"s": " "}, False, ["a"]),
        ({"s": " "}, True, ["b", "c"]),
        ({"s": [" ", "x"]}, False, ["a", "b"]),
        ({"s": None}, False, ["c"]),
        ({"n": 1}, False, ["a"]),
        ({}, False, ["a", "b", "c"]),
        ({"s": " ", "t": "b"}, False, []),
    ],
)
def test_items_are_kept_by_their_fields(bench, where, exclude, kept):
    output = bench().run(FILTER_ITEMS, items=ITEMS, where=where, exclude=exclude)
    assert [item["t"] for item in output["items"]] == kept
    assert output["count"] == len(kept)


def test_items_must_be_objects(bench):
    with pytest.raises(ObsidianAgentError):
        bench().run(FILTER_ITEMS, items=["a"], where={"x": 1})
