from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.errors import ConfigError
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse
from obsidian_agent.vault.paths.patterns import PathRules, common_folder


def path(text: str) -> VaultPath:
    return parse(text, PathUse.FOLDER)


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("Private", ["Private", "Private/a.md", "Private/b/c.md", "PRIVATE/a.md"], ["Privately/a.md", "a/Private", "xPrivate"]),
        ("Private/", ["Private", "Private/a.md"], ["Private.md"]),
        ("Private/**", ["Private", "Private/a.md", "Private/b/c.md"], ["Private.md", "Public/a.md"]),
        ("/Private", ["Private/a.md"], ["a/Private/b.md"]),
        ("Journal/2025*", ["Journal/2025.md", "Journal/2025-01/a.md"], ["Journal/2024.md", "Journal/x/2025.md"]),
        ("**/secret.md", ["secret.md", "a/secret.md", "a/b/secret.md"], ["a/secret.md.txt", "nosecret.md"]),
        ("**", ["a.md", "a/b.md", ""], []),
        ("*", ["a.md", "a/b.md"], []),
        ("a?c.md", ["abc.md", "äöc.md".replace("äö", "aö")], ["a/c.md", "ac.md"]),
        ("a[bc].md", ["ab.md", "ac.md"], ["ad.md", "a[bc].md"]),
        ("a[!b].md", ["ac.md"], ["ab.md"]),
        ("a[]b].md", ["a].md", "ab.md"], ["ac.md"]),
        ("a[!].md", ["a!.md"], ["ab.md"]),
        ("a[]", ["a[]"], ["a"]),
        ("a[", ["a["], ["a"]),
        ("Projects/Plan.md", ["Projects/Plan.md", "projects/plan.MD"], ["Projects/Plan.md2", "Plan.md"]),
        ("a.b", ["a.b"], ["aXb"]),
        ("Straße", ["STRASSE/x.md"], ["Stra"]),
        ("Private\\sub", ["Private/sub/x.md"], ["Private/x.md"]),
    ],
)
def test_what_a_pattern_covers(pattern: str, inside: list[str], outside: list[str]) -> None:
    rules = PathRules((pattern,))
    assert [text for text in inside if not rules.cover(path(text))] == []
    assert [text for text in outside if rules.cover(path(text))] == []


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("Private", ["Private/a.md", "x/Private/a.md", "x/y/private"], ["Privately.md", "xPrivate/a.md"]),
        ("*.key", ["a.key", "x/y/b.KEY"], ["a.keys", "key"]),
        ("/Private", ["Private/a.md"], ["x/Private/a.md"]),
        ("Work/Private", ["Work/Private/a.md"], ["x/Work/Private/a.md"]),
    ],
)
def test_a_bare_name_may_match_at_any_depth(pattern: str, inside: list[str], outside: list[str]) -> None:
    rules = PathRules((pattern,), anywhere=True)
    assert [text for text in inside if not rules.cover(path(text))] == []
    assert [text for text in outside if rules.cover(path(text))] == []


@pytest.mark.parametrize("pattern", ["", "  ", "/", ".", "../x", "a/../b", "[z-a]"])
def test_patterns_that_name_nothing_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        PathRules((pattern,))


NAMES = st.text("abÄäßé .-[]*?!", min_size=1, max_size=6).map(lambda text: f"x{text}x")
PATHS = st.lists(NAMES, min_size=1, max_size=4)


@given(PATHS, st.sampled_from(["NFC", "NFD"]), st.booleans())
def test_another_spelling_is_no_way_round_a_rule(parts: list[str], form: str, upper: bool) -> None:
    text = "/".join(parts)
    literal = "".join(f"[{character}]" if character in "[*?" else character for character in text)
    spelled = unicodedata.normalize(form, text.upper() if upper else text)  # type: ignore[arg-type]
    assert PathRules((literal,)).cover(path(spelled))
    assert PathRules((literal,)).cover(path(f"{spelled}/below.md"))
    assert not PathRules((literal,)).cover(path(f"{spelled}y"))


@given(st.text("abc*?[]!/^\\.-&|~", max_size=12), st.text("abc/.", min_size=1, max_size=12))
def test_any_pattern_is_answered_or_refused(pattern: str, text: str) -> None:
    try:
        rules = PathRules((pattern,))
        where = path(text)
    except Exception as error:
        assert type(error).__name__ in ("ConfigError", "PathRefused")
        return
    assert rules.cover(where) in (True, False)


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        ([], ""),
        (["a.md"], ""),
        (["A/a.md"], "A"),
        (["A/a.md", "A/b.md"], "A"),
        (["A/B/a.md", "A/C/b.md"], "A"),
        (["A/B/a.md", "AB/b.md"], ""),
        (["A/B/a.md", "A/B/C/b.md"], "A/B"),
    ],
)
def test_the_common_folder(paths: list[str], folder: str) -> None:
    assert common_folder(map(path, paths)) == folder
