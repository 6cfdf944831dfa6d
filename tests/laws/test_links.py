"""The law of renames: links keep their targets, other bytes stay equal, and undo is exact."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.plan.policy import Policy
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.links.graph import links_of
from obsidian_agent.vault.links.references import references_in
from obsidian_agent.vault.links.resolve import LinkResolver
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.paths.path import VaultPath
from previews import vault_path

FOLDERS = ["", "A", "A/B", "B", "C d"]
NAMES = ["one.md", "two.md", "Dad's (day).md", "Zwölf.md", "100%.md", "pic.png", "board.canvas"]
PATHS = [f"{folder}/{name}".lstrip("/") for folder in FOLDERS for name in NAMES]
NEW_NAMES = ["Two.md", "ONE.md", "new.md", "new.png", "c$x.md", "a`b.md", "deep.er.md"]
NEW_FOLDERS = ["a", "D", "B/D", "A/E f", "é"]
NEW_PATHS = [f"{folder}/{name}".lstrip("/") for folder in (*FOLDERS, "N/w") for name in NEW_NAMES]


def _targets(path: str) -> list[str]:
    """Right and wrong ways to write a link to a file."""
    bare = path.removesuffix(".md")
    name = path.rpartition("/")[2]
    return [
        path,
        bare,
        name,
        name.removesuffix(".md"),
        name.upper(),
        f"/{bare}",
        f"./{name}",
        f"../{path}",
        f"../{name}",
        f"../B/{name}",
    ]


ODD_TARGETS = ["missing", "A/missing", "", ".", "..", "../..", "new", "N/w/new", "a/"]
INLINE = [
    "see [[{t}]] here",
    "[[{t}#Head|one]]",
    "[[ {t} |pic]]",
    "![[{t}]] ![[{t}|100]]",
    "[one]({m}) and [pic]({m} 'title')",
    "[![pic.png]({q})](<{t}>)",
    "[text]({q}#Head)",
    "# [[{t}]]",
    "> - [ ] [[{t}|one]] ^block",
    "`[[{t}]]` $[[{t}]]$ \\[[{t}]]",
    "costs $5 [[{t}]]",
    "[ref]: {m} 'pic'\n[two]: <{t}>",
    "> - [ref]: {q}#Head",
    'see <a class="x" href="{h}">one</a> `<a href=\'{h}\'>`',
    "<div>\n<img src='{h}'>\n</div>",
    "```\n[ref]: {m}\n<a href='{h}'>\n```",
    "```\n[[{t}]]\n```",
    "%%\n[[{t}]]\n%%",
    "| a | [[{t}\\|two]] |\n| - | - |\n| [[{t}]] | ![pic]({m}) |",
]
PROPERTIES = [
    'up: "[[{t}]]"',
    "list:\n  - '[[{t}|one]]'\n  - x # [[{t}]]",
    'other: ["[[{t}#H]]", "no [[{t}]]"]',
]


def _filled(template: str, target: str) -> str:
    quotes = "''" if "'[[" in template else "'"
    return (
        template.replace("{t}", target.replace("'", quotes))
        .replace("{m}", target.replace("%", "%25").replace(" ", "%20"))
        .replace("{q}", quote(target))
        .replace("{h}", target.replace("%", "%25").replace("&", "&amp;").replace("'", "&#39;"))
    )


def _note(mark: str, front: list[str], body: list[str], newline: str) -> bytes:
    block = (
        ["---", *(f"k{number}_{line}" for number, line in enumerate(front)), "---"] if front else []
    )
    return (
        (mark + "\n\n".join(["\n".join(block), *body] if block else body) + "\n")
        .replace("\n", newline)
        .encode()
    )


def _canvas(cards: list[tuple[str, str]], indent: int | None) -> bytes:
    nodes = [
        {"id": str(number), "type": kind, "file" if kind == "file" else "text": text}
        for number, (kind, text) in enumerate(cards)
    ]
    return json.dumps(
        {"nodes": nodes, "edges": []}, indent=indent, ensure_ascii=indent is None
    ).encode()


@dataclass(frozen=True)
class Story:
    """A vault and the renames that are asked for."""

    files: dict[str, bytes]
    renames: list[dict[str, Any]]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    paths = draw(st.lists(st.sampled_from(PATHS), min_size=2, max_size=9, unique=True))
    target = st.sampled_from(
        sorted({target for path in paths for target in _targets(path)})
    ) | st.sampled_from(ODD_TARGETS)
    inline = st.builds(_filled, st.sampled_from(INLINE), target)
    front = st.lists(st.builds(_filled, st.sampled_from(PROPERTIES), target), max_size=2)
    notes = st.builds(
        _note,
        st.sampled_from(["", "\ufeff"]),
        front,
        st.lists(inline, max_size=5),
        st.sampled_from(["\n", "\r\n"]),
    )
    cards = st.tuples(st.just("file"), st.sampled_from(paths)) | st.tuples(st.just("text"), inline)
    canvases = st.builds(_canvas, st.lists(cards, max_size=4), st.sampled_from([None, 2]))
    kinds = {".md": notes, ".canvas": canvases, ".png": st.just(b"\x89PNG\xff")}
    files = {path: draw(kinds[path[path.rindex(".") :]]) for path in paths}
    return Story(files, draw(st.lists(_renames(paths), min_size=1, max_size=3)))


def _renames(paths: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    folders = sorted({path.rpartition("/")[0] for path in paths} - {""})
    everywhere = st.sampled_from(PATHS + NEW_PATHS)
    file = st.builds(
        lambda a, b, o: {"from": a, "to": b, "overwrite": o},
        st.sampled_from(paths),
        everywhere,
        st.booleans(),
    )
    folder = st.builds(
        lambda a, b: {"from": a, "to": b},
        st.sampled_from(folders or ["A"]),
        st.sampled_from(NEW_FOLDERS),
    )
    return st.one_of(file, file, folder)


def _plan(found: list[dict[str, Any]]) -> dict[str, Any]:
    steps = [
        {"id": f"s{number}", "tool": "vault.rename", "args": args, "onError": "skip"}
        for number, args in enumerate(found)
    ]
    return {"version": "1.0", "goal": "law", "riskLevel": "writes", "steps": steps}


@dataclass
class Vault:
    """The files of one state, and what links mean there."""

    files: Mapping[str, bytes]
    resolver: LinkResolver = field(init=False)

    def __post_init__(self) -> None:
        self.resolver = LinkResolver(map(vault_path, self.files))

    def meanings(self, path: str) -> list[str | None]:
        source = vault_path(path)
        return [
            _text(self.resolver.resolve(link.target, source))
            for link in links_of(source, self.files[path])
        ]

    def references(self, path: str) -> list[Link]:
        return list(references_in(self.files[path]).links) if path.lower().endswith(".md") else []

    def referred(self, path: str) -> list[str | None]:
        return [
            _text(self.resolver.resolve(link.target, vault_path(path)))
            for link in self.references(path)
        ]

    def between_links(self, path: str) -> list[bytes]:
        data, pieces, position = self.files[path], [], 0
        for link in sorted(
            [*links_of(vault_path(path), data), *self.references(path)], key=lambda link: link.start
        ):
            if link.start >= position:
                pieces.append(data[position : link.start])
                position = link.end
        return [*pieces, data[position:]]

    def targets(self, path: str) -> list[str]:
        return [link.target for link in links_of(vault_path(path), self.files[path])]


def _text(path: VaultPath | None) -> str | None:
    return None if path is None else path.text


def _files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.relative_to(root).as_posix().startswith(".")
    }


def _follow(where: dict[str, str], old: str, new: str) -> set[str]:
    """Follow every file through a rename. Return the files that it replaces."""
    lost = {
        path for path, now in where.items() if now.casefold() == new.casefold() != old.casefold()
    }
    where.update(dict.fromkeys(lost, new))
    for path, now in where.items():
        if now == old or now.startswith(f"{old}/"):
            where[path] = new + now[len(old) :]
    return lost


@settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(stories())
def test_links_keep_their_meaning(story: Story) -> None:
    files = story.files
    with TemporaryDirectory() as place:
        root = Path(place) / "vault"
        root.mkdir()
        for name, content in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        with VaultStore.open(root) as store:
            session = build_session(
                Wiring(
                    store,
                    Path(place) / "state",
                    Policy(allow_deletes=True),
                    now=datetime(2026, 3, 14, tzinfo=UTC),
                )
            )
            ready = session.plans.dry_run(_plan(story.renames))
            done = [output for output in ready.outputs.values() if output]
            event(f"{len(done)} renames, {sum(output['linksUpdated'] for output in done)} links")
            where = {path: path for path in files}
            lost: set[str] = set()
            for output in done:
                lost |= _follow(where, output["from"], output["to"])
            assert session.plans.apply(ready, lambda _: None, threading.Event()).success
            before, after = Vault(files), Vault(_files(root))
            doubtful = {
                problem.path for problem in ready.warnings if problem.code == "LINK_AMBIGUOUS"
            }
            for path in files.keys() - lost:
                now = where[path]
                if now in doubtful or now.lower()[-3:] != path.lower()[-3:]:
                    continue
                for old, new in (
                    (before.meanings(path), after.meanings(now)),
                    (before.referred(path), after.referred(now)),
                ):
                    assert len(old) == len(new)
                    assert [found for meant, found in zip(old, new, strict=True) if meant] == [
                        where[meant] for meant in old if meant
                    ]
                assert before.between_links(path) == after.between_links(now)
                _needed(before, after, path, now, done)
            if ready.change_set.operations:
                session.runs.undo(None)
            assert _files(root) == files


def _needed(before: Vault, after: Vault, path: str, now: str, done: list[dict[str, Any]]) -> None:
    """Assert that a link keeps its old text if that still leads to the file by rule."""
    if len(done) != 1 or path.endswith(".canvas"):
        return
    source = vault_path(now)
    for old, new, meant in zip(
        before.targets(path), after.targets(now), after.meanings(now), strict=True
    ):
        lengths = [len(file.text) for file in after.resolver.candidates(old)[:2]]
        if _text(after.resolver.resolve(old, source)) == meant and len(set(lengths)) == len(
            lengths
        ):
            assert old == new
