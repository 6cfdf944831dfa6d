"""The law of `spelling_key`: ASCII has a faster way to the same key."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_agent.vault.links.spelling import folded_key, spelling_key

ASCII = st.text(st.characters(max_codepoint=127) | st.sampled_from("09 -._^`"), max_size=12)


@settings(max_examples=500, deadline=None)
@given(ASCII)
def test_the_key_of_ascii_is_that_of_any_name(name: str) -> None:
    assert spelling_key(name) == folded_key(name)
