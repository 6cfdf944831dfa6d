"""The resolution of links."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.vault.links.resolve import LinkResolver
from obsidian_agent.vault.paths import path as paths
from previews import vault_path


def resolve(files: Sequence[str], target: str, source: str = "src.md") -> str | None:
    found = LinkResolver(map(vault_path, files)).resolve(target, vault_path(source))
    return found.text if found else None


class TestRules:
    @pytest.mark.parametrize(
        ("files", "target", "found"),
        [
            (["Note.md"], "note", "Note.md"),
            (["Note.md"], "NOTE.MD", "Note.md"),
            (["Note.md"], "", "src.md"),
            (["Übung.md"], "U\u0308BUNG", "Übung.md"),
            (["U\u0308bung.md"], "übung", "U\u0308bung.md"),
            (["a b.md"], "a\u00a0b", "a b.md"),
            (["a\u00a0b.md"], "a b", "a\u00a0b.md"),
            (["a/pic.png"], "pic.png", "a/pic.png"),
            (["a/pic.png"], "pic", None),
            (["v1.2.md"], "v1.2", "v1.2.md"),
            (["x", "x.md"], "x", "x"),
            (["a/x", "b/x.md"], "b/x", None),
            (["a/b/c.md"], "b/c", "a/b/c.md"),
            (["a/bb/c.md"], "b/c", None),
            (["a/c.md"], "/c", None),
            (["a/c.md", "c.md"], "/c", "c.md"),
            (["a.md"], "a/", "a.md"),
            (["a.md"], "/", None),
            (["a%20b.md"], "a%20b", "a%20b.md"),
        ],
    )
    def test_one_file_or_none(self, files: list[str], target: str, found: str | None) -> None:
        assert resolve(files, target) == found

    @pytest.mark.parametrize(
        ("files", "target", "source", "found"),
        [
            (["zz/N.md", "a/b/N.md", "N.md"], "N", "a/b/src.md", "N.md"),
            (["zz/N.md", "a/b/N.md"], "N", "a/b/src.md", "a/b/N.md"),
            (["zz/N.md", "a/b/N.md"], "N", "a/src.md", "zz/N.md"),
            (["zz/N.md", "aaa/N.md"], "N", "src.md", "zz/N.md"),
            (["bb/N.md", "aa/N.md"], "N", "src.md", "aa/N.md"),
            (["q/x/N.md", "p/x/N.md", "p/q/x/N.md"], "x/N", "src.md", "p/x/N.md"),
            (["q/x/N.md", "p/x/N.md"], "x/N", "q/x/src.md", "q/x/N.md"),
            (["q/x/N.md", "p/x/N.md"], "q/x/N", "p/x/src.md", "q/x/N.md"),
        ],
    )
    def test_of_several(self, files: list[str], target: str, source: str, found: str) -> None:
        assert resolve(files, target, source) == found
        assert resolve(files[::-1], target, source) == found

    @pytest.mark.parametrize(
        ("target", "source", "found"),
        [
            ("./N", "a/src.md", "a/N.md"),
            ("./n.MD", "a/src.md", "a/N.md"),
            ("../N", "a/src.md", "N.md"),
            ("../N", "src.md", None),
            ("./b/../N", "a/src.md", "a/N.md"),
            ("../a/N.md", "b/src.md", "a/N.md"),
            ("./other", "a/src.md", None),
        ],
    )
    def test_relative_to_the_note(self, target: str, source: str, found: str | None) -> None:
        assert resolve(["N.md", "a/N.md", "b/other.md"], target, source) == found

    def test_the_files_that_a_name_can_mean(self) -> None:
        resolver = LinkResolver(map(vault_path, ["zz/N.md", "a/b/N.md", "M.md"]))
        assert [each.text for each in resolver.candidates("n")] == ["zz/N.md", "a/b/N.md"]
        assert resolver.candidates("none") == ()
        assert [each.text for each in resolver.candidates("b/n")] == ["a/b/N.md"]


_NAMES = st.sampled_from(["n.md", "N.md", "m.md", "n", "x.y.md", "é.md", "e\u0301.md", "p.png"])
_FOLDERS = st.sampled_from(["", "a/", "b/", "a/b/", "b/a/", "A/", "aa/", "a/b/c/"])
_FILES = st.lists(
    st.builds(lambda folder, name: folder + name, _FOLDERS, _NAMES), max_size=12, unique=True
)
_TARGETS = st.builds(
    lambda lead, folder, name: lead + folder + name,
    st.sampled_from(["", "", "", "/", "./", "../"]),
    _FOLDERS,
    st.sampled_from(["n", "N", "n.md", "m", "x.y", "é", "p.png", "p", "q"]),
)
_SOURCES = st.builds(lambda folder: folder + "src.md", _FOLDERS)


def _by_the_book(files: Sequence[str], target: str, source: str) -> str | None:
    """Resolve by the rules as written, looking at every file."""

    def fold(text: str) -> str:
        return paths.parse(text, paths.PathUse.READ).nfc.lower()

    folder = source.rpartition("/")[0]
    ordered = sorted(files, key=lambda file: (len(file), file))
    if target.startswith(("./", "../")):
        parts = folder.split("/") if folder else []
        for part in target.split("/"):
            if part == "..":
                if not parts:
                    return None
                parts.pop()
            elif part != ".":
                parts.append(part)
        wanted = fold("/".join(parts))
        return next(
            (file for end in ("", ".md") for file in ordered if fold(file) == wanted + end), None
        )
    wanted = fold(target.strip("/"))
    for end in ("", ".md"):
        key = wanted + end
        if not any(fold(file).rpartition("/")[2] == key.rpartition("/")[2] for file in files):
            continue
        matching = [
            file
            for file in ordered
            if fold(file) == key or (target[0] != "/" and fold(file).endswith("/" + key))
        ]
        exact = [file for file in matching if fold(file) == key]
        beside = [file for file in matching if file.rpartition("/")[0] == folder]
        return next(iter(exact or beside or matching), None)
    return None


@given(_FILES, _TARGETS, _SOURCES)
def test_the_dictionaries_say_what_the_rules_say(
    files: list[str], target: str, source: str
) -> None:
    assert resolve(files, target, source) == _by_the_book(files, target, source)
