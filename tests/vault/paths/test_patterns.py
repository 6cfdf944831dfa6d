"""Patterns in rules: none that users write is accepted and covers nothing of what it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsidian_agent.errors import ConfigError
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.paths.patterns import PathRules

HERE = "/home/me/My [vault]"


def covers(pattern: str, path: str, *, anywhere: bool = True, root: str = HERE) -> bool:
    """Return whether a rule of one pattern covers a path."""
    return PathRules((pattern,), anywhere, root).cover(parse(path, PathUse.READ))


@pytest.mark.parametrize("anywhere", [True, False])
@pytest.mark.parametrize(
    "pattern",
    [
        "Private",
        "./Private",
        "././Private/",
        ".\\Private",
        "/Private",
        "//Private//",
        "Private/.",
        "/./Private/**",
        f"{HERE}/Private",
        f"{HERE}/Private/**",
        f"{HERE.upper()}/private/*",
        f"/home/me/../me{HERE.removeprefix('/home/me')}/Private",
    ],
)
def test_every_spelling_of_a_folder_is_that_folder(pattern: str, anywhere: bool) -> None:
    assert covers(pattern, "Private/a.md", anywhere=anywhere)
    assert not covers(pattern, "Public/a.md", anywhere=anywhere)


@pytest.mark.parametrize("pattern", ["./Private", "/Private", f"{HERE}/Private"])
def test_a_pattern_from_the_root_stays_there(pattern: str) -> None:
    assert not covers(pattern, "Work/Private/a.md")


def test_an_inner_slash_may_be_written_twice() -> None:
    assert covers("Work//Private", "Work/Private/a.md")
    assert covers("Work/./Private", "Work/Private/a.md")


@pytest.mark.parametrize(
    "name", ["A[b]", "A[!b]", "[draft]", "Why?", "2*3", "a]b", "x{y}", "50% (old)", "a&b|c~d^e"]
)
def test_an_exact_name_counts(name: str) -> None:
    assert covers(name, f"{name}/x.md")
    assert covers(f"Sub/{name}", f"Sub/{name}/x.md")
    assert covers(f"{name}/**", f"{name}/x.md")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("/!x", "!x/a.md"), ("**/!x", "deep/!x/a.md"), ("a[[]", "a[/b.md"), ("[{]a,b}", "{a,b}/c.md")],
)
def test_the_spelling_that_a_refusal_names_works(pattern: str, path: str) -> None:
    assert covers(pattern, path)


def test_a_note_may_be_named_without_its_extension_where_a_rule_takes_away() -> None:
    assert covers("Private/diary", "Private/diary.md")
    assert covers("diary", "Private/diary.md")
    assert not covers("*.key", "a.key.md")
    assert not covers("Private/diary", "Private/diary.md", anywhere=False)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("!x", "exception"),
        (" !x/**", "exception"),
        ("[", "without a ]"),
        ("a[", "without a ]"),
        ("a[]", "without a ]"),
        ("a[b/c]", "without a ]"),
        ("{Private,Work}", "braces"),
        ("~", "outside the vault"),
        ("~/x", "outside the vault"),
        ("C:\\Users\\me\\Notes", "outside the vault"),
        (f"{HERE}/../Other", "out of the vault"),
        (HERE, "names no note or folder"),
        ("[[Private]]", "looks like a link"),
        ('"Private"', "character"),
        ("tag:#private", "character"),
        ("file:///vault/Private", "character"),
        ("Private\u200b", "character"),
        ("Private\x00", "character"),
    ],
)
def test_what_would_cover_nothing_is_refused_with_a_sentence(pattern: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        PathRules((pattern,), True, HERE)
    assert refused.value.hint


def test_the_home_folder_and_links_lead_into_the_vault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = tmp_path / "disk" / "vault"
    vault.mkdir(parents=True)
    (tmp_path / "Notes").symlink_to(vault)
    monkeypatch.setenv("HOME", str(tmp_path))
    for pattern in ("~/Notes/Private", "~/disk/vault/Private/**", f"{tmp_path}/Notes/Private"):
        assert covers(pattern, "Private/a.md", root=str(vault))
        assert not covers(pattern, "Public/a.md", root=str(vault))
    with pytest.raises(ConfigError, match="outside the vault"):
        PathRules(("~/Other",), True, str(vault))
