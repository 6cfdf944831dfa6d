"""The gate: every case on a real disk, and the laws that hold for any text."""

from __future__ import annotations

import copy
import json
import os
import pickle
import unicodedata
from ast import literal_eval
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from faults import refused
from obsidian_agent.errors import PathRefused, ToolError, VaultError
from obsidian_agent.vault.filesystem.store import VaultStore, missing
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths import rules
from obsidian_agent.vault.paths import rules as escapes
from obsidian_agent.vault.paths.path import (
    ROOT,
    PathUse,
    VaultPath,
    app_path,
    clean_component,
    config_path,
    from_disk,
    is_reserved,
    is_trash,
    parse,
    protected,
    replace_illegal,
    trash_path,
)
from obsidian_agent.vault.paths.rules import CODE_EXTENSIONS, INSTRUCTION_FILES, MAX_CLEAN_BYTES
from obsidian_agent.vault.views.disk import DiskView

CASES = [
    json.loads(line)
    for line in Path(__file__).with_name("path_cases.jsonl").read_text().splitlines()
]


def path_of(case: dict[str, Any]) -> object:
    match case.get("gen"):
        case {"kind": "codepoints", "cps": points}:
            return "".join(map(chr, points))
        case {"kind": "repeat", "unit": unit, "n": count, **rest}:
            return f"{rest.get('prefix', '')}{unit * count}{rest.get('suffix', '')}"
        case {"kind": "concat", "parts": parts}:
            return "".join(unit * count for unit, count in parts)
        case _:
            return case["path"]


@dataclass
class Attempt:
    """A tool's use of a path, reduced to the gate, the view and the store."""

    store: VaultStore
    view: DiskView
    setup: Sequence[Sequence[str]]

    def run(self, op: str, text: object) -> VaultPath:
        match op:
            case "read":
                path = parse(text, PathUse.READ)
                self.view.read(path)
            case "update":
                path = parse(text, PathUse.UPDATE)
                self.view.read(path)
                self.store.write_atomic(self.existing(path), b"new content\n")
            case "write" | "create":
                path = parse(text, PathUse.CREATE)
                if self.view.twin(path) is not None:
                    raise ToolError("exists", code="FILE_EXISTS")
                self.store.make_folder(path.parent)
                self.store.write_atomic(path, b"new content\n")
            case "list":
                path = parse(text, PathUse.FOLDER)
                self.view.children(path)
            case "ensure_folder":
                path = parse(text, PathUse.MAKE_FOLDER)
                self.store.make_folder(path)
            case "delete":
                path = parse(text, PathUse.READ)
                self.store.remove(self.existing(path))
            case "rename_to":
                path = parse(text, PathUse.CREATE)
                self.rename(parse(self.setup[0][1], PathUse.READ), path)
            case _:
                raise AssertionError(op)
        return path

    def existing(self, path: VaultPath) -> VaultPath:
        entry = self.view.locate(path)
        if entry is None:
            raise missing(path)
        return entry.path

    def rename(self, source: VaultPath, target: VaultPath) -> None:
        if target.within(source):
            raise ToolError("into itself", code="MOVE_INTO_ITSELF")
        if (twin := self.view.twin(target)) not in (None, source):
            raise ToolError(f"{twin} exists", code="FILE_EXISTS")
        os.rename(Path(self.store.real_path, source.text), Path(self.store.real_path, target.text))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case_on_disk(
    case: dict[str, Any],
    store: VaultStore,
    vault: Path,
    build: Callable[[Sequence[Sequence[str]]], None],
    snapshot: Callable[[], dict[str, object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setup = case.get("setup", [])
    if ["root_link"] in setup:
        setup = [step for step in setup if step != ["root_link"]]
        link = vault.parent / "v"
        link.symlink_to(vault)
        store = VaultStore.open(link)
    if case.get("platform") == "windows":
        monkeypatch.setattr(paths, "_WINDOWS", True)
    build(setup)
    before = snapshot()
    attempt = Attempt(store, DiskView(store), setup)
    text = path_of(case)
    if case["expect"] == "allow":
        assert attempt.run(case["op"], text).text == case.get("normalized", text)
        outside = [
            name
            for name in snapshot()
            if not name.startswith(str(vault)) and name != str(vault.parent / "v")
        ]
        assert outside == []
    else:
        with pytest.raises((VaultError, ToolError)) as caught:
            attempt.run(case["op"], text)
        assert caught.value.code == case["code"]
        assert snapshot() == before


def test_invariants_of_allowed_cases(
    handle_store: VaultStore, vault: Path, build: Callable[[Sequence[Sequence[str]]], None]
) -> None:
    build(
        [
            ["file", "Real/n.md"],
            ["link", "Alias", "Real"],
            ["file", "Real.md"],
            ["link", "Alias.md", "Real.md"],
        ]
    )
    build([["file", unicodedata.normalize("NFD", "Café.md")], ["file", "note.md"]])
    view = DiskView(handle_store)

    Attempt(handle_store, view, []).run("update", "Alias/n.md")
    assert (vault / "Alias").is_symlink()
    assert (vault / "Real/n.md").read_bytes() == b"new content\n"

    Attempt(handle_store, view, []).run("delete", "Alias.md")
    assert not (vault / "Alias.md").is_symlink()
    assert (vault / "Real.md").read_bytes() == b"content of Real.md\n"

    Attempt(handle_store, view, []).run("update", unicodedata.normalize("NFC", "Café.md"))
    assert unicodedata.normalize("NFD", "Café.md") in os.listdir(vault)
    assert unicodedata.normalize("NFC", "Café.md") not in os.listdir(vault)

    Attempt(handle_store, view, [["file", "note.md"]]).run("rename_to", "Note.md")
    assert [name for name in os.listdir(vault) if name.lower() == "note.md"] == ["Note.md"]


# --- laws ---

HOSTILE = st.sampled_from(
    [
        *"./\\~:%$#|^[]<>*?\"' -_;\x00\n\x7f\u0085\u2028\u202e\u200b\u200d\u2025\u2026\uff0e\uff0f\uff3c\uff5e\u00e9e\u0301"
    ]
)
PIECES = st.sampled_from(
    [
        "..",
        ".",
        ".obsidian",
        ".git",
        "git~1",
        "CON",
        "%2e",
        "%2F",
        "a",
        "Note.md",
        "${x}",
        "C:",
        "\uff0e\uff0e",
        " ",
        "opencode.json",
    ]
)
TEXTS = st.one_of(
    st.text(),
    st.text(HOSTILE),
    st.lists(st.one_of(PIECES, HOSTILE, st.text(max_size=3))).map("".join),
)


def verdict(text: str, use: PathUse) -> VaultPath | PathRefused:
    try:
        return parse(text, use)
    except PathRefused as refusal:
        return refusal


@settings(deadline=None)
@given(TEXTS, st.sampled_from(PathUse))
@example("．．／x", PathUse.READ)
@example("a/.. /b", PathUse.READ)
def test_what_the_gate_lets_through_stays_inside(text: str, use: PathUse) -> None:
    path = verdict(text, use)
    assume(isinstance(path, VaultPath))
    assert isinstance(path, VaultPath)
    assert parse(str(path), use) == path
    assert parse(path.text, PathUse.FOLDER) == path
    assert not path.text.startswith("/")
    for part in path.parts:
        assert part not in ("", ".", "..")
        assert not protected(part)
        assert "/" not in part
        assert "\\" not in part
        assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in part)
        assert os.fsencode(part).decode() == part


@settings(deadline=None)
@given(TEXTS, st.sampled_from(PathUse))
def test_refusals_can_be_shown_and_suggestions_taken(text: str, use: PathUse) -> None:
    refusal = verdict(text, use)
    assume(isinstance(refusal, PathRefused))
    assert isinstance(refusal, PathRefused)
    assert refusal.code in ("PATH_OUTSIDE_VAULT", "PATH_NOT_ALLOWED", "PATH_INVALID")
    assert refusal.path is not None
    assert refusal.path.isprintable()
    assert refusal.message.isprintable()
    if refusal.hint is not None:
        suggestion = literal_eval(refusal.hint.removeprefix("Use ").removesuffix(" instead."))
        assert parse(suggestion, use).text == suggestion


@settings(deadline=None)
@given(TEXTS)
@example("．obsidian")
@example("opencode.json")
@example("nul .txt")
@example("%2e%2e")
@example("$A")
@example("%PATH%")
@example("%$A%")
@example("%[00")
def test_clean_components_are_names(text: str) -> None:
    name = clean_component(text)
    assert 0 < len(name.encode()) <= MAX_CLEAN_BYTES
    assert clean_component(name) == name
    assert parse(name, PathUse.MAKE_FOLDER).text == name
    assume(f"{name}.md".casefold() not in INSTRUCTION_FILES)
    assert parse(f"{name}.md", PathUse.CREATE).parts == (f"{name}.md",)


@settings(deadline=None)
@given(TEXTS)
def test_disk_names_can_be_asked_for(name: str) -> None:
    """Listed paths can be read, and readable ones are listed: `from_disk` and the gate agree."""
    for folder in (ROOT, parse("Folder", PathUse.FOLDER)):
        asked = verdict(name if folder.is_root else f"Folder/{name}", PathUse.READ)
        try:
            path = from_disk(folder, name)
        except PathRefused:
            assert not isinstance(asked, VaultPath) or asked.name != name
        else:
            assert path.parent == folder
            assert asked == path


@settings(deadline=None)
@given(
    st.text(
        alphabet=st.characters(categories=["L", "M"], max_codepoint=0x2FF), min_size=1, max_size=8
    )
)
def test_keys_fold_case_and_composition(name: str) -> None:
    spellings = {from_disk(ROOT, unicodedata.normalize(form, name)) for form in ("NFC", "NFD")}
    assert len({path.nfc for path in spellings}) == 1
    assert len({path.key for path in spellings}) == 1
    assert from_disk(ROOT, name.casefold()).key == from_disk(ROOT, name).key


# --- the value ---


def test_only_the_gate_makes_paths() -> None:
    path = parse("a/b.md", PathUse.READ)
    with pytest.raises(TypeError):
        VaultPath("a/b.md")
    with pytest.raises(TypeError):
        type("Sub", (VaultPath,), {})
    with pytest.raises(TypeError):
        pickle.dumps(path)
    with pytest.raises(AttributeError):
        path.text = "../x"
    with pytest.raises(AttributeError):
        del path.text
    assert copy.deepcopy([path])[0] is path


def test_parts_of_a_path() -> None:
    path = parse("Projects/Area/Plan v1.2.MD", PathUse.READ)
    assert (path.name, path.stem, path.suffix, path.is_note) == (
        "Plan v1.2.MD",
        "Plan v1.2",
        ".md",
        True,
    )
    assert path.parent.text == "Projects/Area"
    assert path.parent.parent.parent is ROOT
    assert ROOT.parent is ROOT
    assert path.parts == ("Projects", "Area", "Plan v1.2.MD")
    assert ROOT.parts == ()
    assert (str(path), repr(path)) == (
        "Projects/Area/Plan v1.2.MD",
        "VaultPath('Projects/Area/Plan v1.2.MD')",
    )
    assert path.key == "projects/area/plan v1.2.md"


@pytest.mark.parametrize(
    ("name", "stem", "suffix"),
    [
        ("1. Intro", "1. Intro", ""),
        ("a.tar.gz", "a.tar", ".gz"),
        ("..c.md", "..c", ".md"),
        ("Dr. Who", "Dr. Who", ""),
        ("x", "x", ""),
        ("..c", "..c", ""),
    ],
)
def test_extension_of_odd_names(name: str, stem: str, suffix: str) -> None:
    path = from_disk(ROOT, name)
    assert (path.stem, path.suffix) == (stem, suffix)


def test_within_compares_components() -> None:
    folder = parse("Notes", PathUse.FOLDER)
    assert parse("Notes/a.md", PathUse.READ).within(folder)
    assert not parse("Notes2/a.md", PathUse.READ).within(folder)
    assert not folder.within(folder)
    assert folder.within(ROOT)
    assert not ROOT.within(ROOT)


def test_rebased_replaces_the_prefix() -> None:
    old, new = parse("A/B", PathUse.FOLDER), parse("C", PathUse.FOLDER)
    assert parse("A/B/x/y.md", PathUse.READ).rebased(old, new).text == "C/x/y.md"
    assert old.rebased(old, new) == new
    assert parse("x.md", PathUse.READ).rebased(ROOT, new).text == "C/x.md"
    assert parse("A/B/x.md", PathUse.READ).rebased(old, ROOT).text == "x.md"
    with pytest.raises(ValueError, match="not below"):
        parse("A/Bx.md", PathUse.READ).rebased(old, new)


def test_order_and_equality_follow_the_text() -> None:
    names = ["b.md", "a/b.md", "a b.md", "a.md"]
    assert [path.text for path in sorted(parse(name, PathUse.READ) for name in names)] == sorted(
        names
    )
    assert parse("a//b.md", PathUse.READ) == parse("a/b.md", PathUse.UPDATE)
    assert len({parse("a//b.md", PathUse.READ), parse("a/b.md", PathUse.UPDATE)}) == 1
    assert parse("a.md", PathUse.READ) != "a.md"


def test_reserved_places_have_their_own_doors() -> None:
    assert trash_path("Old note.md").text == ".trash/Old note.md"
    assert is_trash(trash_path("x.md"))
    assert is_trash(trash_path())
    assert not is_trash(parse(".trashy".lstrip("."), PathUse.READ))
    assert app_path("macros", "m.json").text == ".obsidian-agent/macros/m.json"
    assert config_path("app.json").text == ".obsidian/app.json"
    assert config_path("plugins", "x", folder=".config").text == ".config/plugins/x"
    assert all(
        map(
            is_reserved,
            (
                trash_path("x"),
                app_path("macros"),
                config_path("app.json"),
                config_path("app.json", folder=".config"),
            ),
        )
    )
    assert not is_reserved(parse("Notes/x.md", PathUse.READ))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\x00", "../../x"])
@pytest.mark.parametrize(
    "door", [trash_path, app_path, config_path, lambda name: app_path("macros", name)]
)
def test_reserved_doors_take_plain_names_only(door: Callable[[str], VaultPath], name: str) -> None:
    with pytest.raises(PathRefused):
        door(name)


# --- what is new and what is old ---


def test_folders_that_exist_are_not_judged_anew() -> None:
    def exists(folder: VaultPath) -> bool:
        return folder.text == "C#"

    assert parse("C#/new.md", PathUse.CREATE, exists=exists).text == "C#/new.md"
    with pytest.raises(PathRefused, match="folder's name 'F#'"):
        parse("F#/new.md", PathUse.CREATE, exists=exists)
    with pytest.raises(PathRefused, match=r"name 'a\?\.md'"):
        parse("C#/a?.md", PathUse.CREATE, exists=exists)


def test_a_move_keeps_the_name_that_is_there() -> None:
    old = from_disk(ROOT, "What is C#.html")
    assert (
        parse("Web/What is C#.html", PathUse.CREATE, moved_from=old).text == "Web/What is C#.html"
    )
    assert parse("Web/Other.html", PathUse.CREATE, moved_from=old).suffix == ".html"
    with pytest.raises(PathRefused):
        parse("Web/What is F#.html", PathUse.CREATE, moved_from=old)
    with pytest.raises(PathRefused):
        parse("Web/What is C#.sh", PathUse.CREATE, moved_from=old)


@pytest.mark.parametrize("extension", sorted(CODE_EXTENSIONS))
def test_code_is_not_made_but_can_be_read(extension: str) -> None:
    with refused("PATH_NOT_ALLOWED"):
        parse(f"x{extension}", PathUse.CREATE)
    assert parse(f"x{extension}", PathUse.READ).suffix == extension


def test_windows_refuses_odd_names_for_reading_too(monkeypatch: pytest.MonkeyPatch) -> None:
    parse("Notes/a.md:stream", PathUse.READ)
    monkeypatch.setattr(paths, "_WINDOWS", True)
    for text in ("Notes/a.md:stream", "NUL", "Notes/a.md."):
        with pytest.raises(PathRefused):
            parse(text, PathUse.READ)


# --- names made from text ---


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("AC/DC", "AC-DC"),
        ("What is X?", "What is X"),
        ("12:30 meeting", "12-30 meeting"),
        ("Title: a subtitle", "Title - a subtitle"),
        ("[[Linked|shown]]", "Linked-shown"),
        ("C# tips", "C tips"),
        ('"Quoted" word', "Quoted- word"),
        ("  two\n lines\t", "two lines"),
        ("...hidden", "hidden"),
        ("-rf", "rf"),
        ("~home", "home"),
        ("CON", "CON-"),
        ("nul.tar", "nul-.tar"),
        ("../../etc/passwd", "etc-passwd"),
        ("git~1", "git-1"),
        ("a\u202eb\u200bc", "abc"),
        ("e\u0301", "é"),
        ("\U0001f469\u200d\U0001f4bb log", "\U0001f469\u200d\U0001f4bb log"),
        ("日本語", "日本語"),
        ("", "Untitled"),
        ("???", "Untitled"),
        ("\ud800", "Untitled"),
        ("…", "Untitled"),
    ],
)
def test_clean_component(text: str, name: str) -> None:
    assert clean_component(text) == name


def test_clean_component_cuts_between_characters() -> None:
    assert clean_component("é" * 200) == "é" * 120
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert clean_component(family * 20) == family * (MAX_CLEAN_BYTES // len(family.encode()))


def test_dash_illegal_replaces_one_for_one() -> None:
    assert replace_illegal('a:b*c?d"e<f>g|h\ni') == "a-b-c-d-e-f-g-h-i"
    assert replace_illegal("C# [x] ^y, 100% é…") == "C# [x] ^y, 100% é…"


@given(st.from_regex(rules.PLAIN.pattern, fullmatch=True))
def test_plain_names_are_those_that_no_rule_is_against(name: str) -> None:
    assert paths._name_problem(name) is None
    assert not escapes.foreign_code(name, new=False)
    assert not escapes.foreign_start(name, new=False)


@pytest.mark.parametrize("folder", ["Notes", ".trash", ".obsidian-agent", "..", "./x", ""])
def test_what_cannot_be_obsidians_own_folder_is_refused(folder: str) -> None:
    with pytest.raises(PathRefused):
        config_path("app.json", folder=folder)
