"""One state of a vault as the checks see it, and the settings they depend on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import cached_property
from itertools import chain
from typing import Final

from msgspec import Struct, field

from obsidian_agent.health.conflict_names import ConflictCopy, copies_among
from obsidian_agent.health.texts import is_form
from obsidian_agent.vault.index.digest import HAS_PLACEHOLDERS, body_of
from obsidian_agent.vault.index.index import Facts, VaultIndex
from obsidian_agent.vault.links.link_text import DEFAULT_STYLE, LinkStyle
from obsidian_agent.vault.links.resolve import LinkResolver, file_name, is_relative
from obsidian_agent.vault.markdown.canvas import CANVAS
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.view import VaultView

ReadDay = Callable[[str], date | None]
"""A reader of a day in words, such as "3 March 2026"."""

_TEMPLATES: Final = re.compile(
    r"template|vorlage|plantilla|modèle|szablon|шаблон|テンプレ|模板|템플릿", re.IGNORECASE
)

RULES_FILE: Final = ".obsidian-agent/properties.json"
"""The file in which a vault has its own rules for properties."""


class PropertyRule(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The type and the values of a property, in a folder, with a tag, or everywhere.

    The types are those of Obsidian's types.json. No values: any text is allowed.
    """

    property: str
    folder: str = ""
    tag: str = ""
    type: str = ""
    values: tuple[str, ...] = ()


class HealthSettings(Struct, frozen=True, kw_only=True):
    """The settings that checks depend on, apart from the files.

    `property_rules` are the vault's own.
    `renames` returns the old and new paths of renamed files, the newest first, from the journal and
    from git, and `old_versions` the earlier contents of a file.
    `templates` is the folder of templates, "" if there is none. `new_notes` is the folder in which
    Obsidian creates a note for a link without one, None for that of the note with the link, and
    `daily_notes` the one for days by their date, "" if it is no other. `daily_folder` is the folder
    of the daily notes, whatever their names. `is_excluded` tests the path of a file by Obsidian's
    setting “Excluded files”, and `config_texts` returns the CSS snippets and settings of plugins.
    `property_types` are Obsidian's own, by lower-case name, and `link_style` is that of new links.
    """

    now: datetime
    templates: str = ""
    new_notes: str | None = ""
    daily_notes: str = ""
    daily_folder: str = ""
    is_excluded: Callable[[str], bool] = lambda path: False
    property_types: Mapping[str, str] = field(default_factory=dict)
    link_style: LinkStyle = DEFAULT_STYLE
    property_rules: tuple[PropertyRule, ...] = ()
    renames: Callable[[], list[tuple[str, str]]] = list
    old_versions: Callable[[str], list[bytes]] = lambda path: []
    config_texts: Callable[[], list[bytes]] = list
    read_day: ReadDay = lambda text: None
    stale_days: int = 730


class VaultSurvey:
    """One state of a vault, as the checks look at it."""

    def __init__(self, view: VaultView, settings: HealthSettings) -> None:
        self.view = view
        self.settings = settings

    @cached_property
    def index(self) -> VaultIndex:
        """The index of the vault."""
        return self.view.index

    @cached_property
    def files(self) -> list[VaultPath]:
        """All files."""
        return list(self.index.files())

    @cached_property
    def all_notes(self) -> list[VaultPath]:
        """All notes."""
        return [file for file in self.files if file.is_note]

    @cached_property
    def resolver(self) -> LinkResolver:
        """The resolver of links among all files; faster than the index for all of them."""
        return LinkResolver(self.files)

    @cached_property
    def linkable(self) -> list[VaultPath]:
        """All notes that a link may mean: neither templates nor conflict copies."""
        return [note for note in self.all_notes if self.is_linkable(note)]

    @cached_property
    def notes(self) -> list[VaultPath]:
        """The linkable notes without those that Obsidian excludes, which have no findings."""
        return [note for note in self.linkable if not self.settings.is_excluded(note.text)]

    @cached_property
    def templates(self) -> set[VaultPath]:
        """The notes in folders of templates, and those with properties or a title to fill in."""
        notes = self.all_notes
        marked = [note for note in notes if self.facts[note].digest.flags & HAS_PLACEHOLDERS]
        folders = {self.settings.templates, *(_template_folder(note) for note in marked)} - {""}
        forms = {note for note in marked if is_form(self.index.text(note))}
        prefixes = tuple(f"{folder}/" for folder in folders)
        return forms | {note for note in notes if note.text.startswith(prefixes)}

    @cached_property
    def copies(self) -> dict[VaultPath, ConflictCopy]:
        """The conflict copies of files. They are settled by being merged, and by nothing else."""
        return copies_among(self.files, self._body)

    def _body(self, file: VaultPath) -> bytes:
        has_versions = file.is_note and file not in self.templates
        return body_of(self.index.text(file)) if has_versions else b""

    @cached_property
    def sources(self) -> list[VaultPath]:
        """The notes and canvases that may link to files, templates included."""
        return [file for file in self.files if file.is_note or file.suffix == CANVAS]

    @cached_property
    def facts(self) -> dict[VaultPath, Facts]:
        """The facts of every note and canvas."""
        return {source: self.index.facts(source) for source in self.sources}

    @cached_property
    def targets(self) -> dict[VaultPath, dict[str, VaultPath | None]]:
        """The file that each link target means, for each note and canvas."""
        resolve, candidates = self.resolver.resolve, self.resolver.candidates
        unique: dict[str, VaultPath | None] = {}
        targets: dict[VaultPath, dict[str, VaultPath | None]] = {}
        for source, facts in self.facts.items():
            files = targets[source] = {}
            for target in facts.targets:
                if target in unique:
                    files[target] = unique[target]
                    continue
                files[target] = resolve(target, source)
                # One candidate at most means the same file from every note.
                if target and not is_relative(target) and len(candidates(target)) <= 1:
                    unique[target] = files[target]
        return targets

    @cached_property
    def linked_files(self) -> dict[VaultPath, set[VaultPath]]:
        """The files that each note and canvas links to, itself included."""
        return {
            source: {file for file in targets.values() if file is not None}
            for source, targets in self.targets.items()
        }

    @cached_property
    def backlinks(self) -> Counter[VaultPath]:
        """The number of other notes and canvases that link to a file."""
        counts = Counter(chain.from_iterable(self.linked_files.values()))
        for source, files in self.linked_files.items():
            if source in files:
                counts[source] -= 1
        return counts

    @cached_property
    def tags_by_folder(self) -> Counter[tuple[VaultPath, str]]:
        """The number of notes in each folder with each tag, and of all with ""."""
        tags = ((note, tag) for note in self.notes for tag in (*self.facts[note].tags, ""))
        return Counter((note.parent, tag) for note, tag in tags)

    @cached_property
    def links_to_namesakes(self) -> dict[VaultPath, list[tuple[VaultPath, str]]]:
        """The links, as their note and target, to each note that shares its name with another."""
        named = Counter(map(file_name, self.linkable))
        links: dict[VaultPath, list[tuple[VaultPath, str]]] = {
            note: [] for note in self.linkable if named[file_name(note)] > 1
        }
        for source, files in self.targets.items() if links else ():
            for target, file in files.items():
                if file in links and source != file:
                    links[file].append((source, target))
        return links

    def is_linkable(self, file: VaultPath) -> bool:
        """Return whether a file is neither a template nor a conflict copy."""
        return file not in self.templates and file not in self.copies


def _template_folder(note: VaultPath) -> str:
    """Return the outermost folder around a note whose name is that of one for templates, or ""."""
    names = note.parent.parts
    ends = (end for end, name in enumerate(names, 1) if _TEMPLATES.search(name))
    return "/".join(names[: next(ends, 0)])
