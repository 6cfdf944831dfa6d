"""The health of an open vault: what its examination needs, and the findings its user ignores."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from msgspec import MsgspecError, Struct
from msgspec.json import decode

from obsidian_agent.errors import ConfigError, JournalError, ToolError, VaultError
from obsidian_agent.health.finding import KINDS, FindingKind, HealthReport
from obsidian_agent.health.survey import RULES_FILE, HealthSettings, PropertyRule
from obsidian_agent.journal.reader import JournalReader
from obsidian_agent.journal.state_folder import find
from obsidian_agent.services.run_context import note_settings
from obsidian_agent.state_files import replace_file
from obsidian_agent.tools.core.patterns import TimedPattern, compile_pattern
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.links.link_text import link_style
from obsidian_agent.vault.paths.path import app_path
from obsidian_agent.vault.transaction.actions import PutFile
from obsidian_agent.vault.views.view import VaultView

_FILE: Final = "health.json"
_GIT_SECONDS: Final = 10.0
_MAX_GIT_OUTPUT: Final = 16 << 20
_MAX_RUNS: Final = 1_000
_MAX_RULES_FILE: Final = 1 << 20
_MAX_CONFIG: Final = 4 << 20
_MAX_TREND: Final = 400
"""Reports whose counts are stored, about a year of daily ones."""

_MAX_VERSIONS: Final = 20
"""Earlier contents of one file that the journal and git each are asked for."""

_GIT: Final = (
    "git", "--no-pager", "-c", "log.showSignature=false", "-c", "core.fsmonitor=false",
)  # fmt: skip
_GIT_VERSIONS: Final = ("log", "--no-ext-diff", "--format=%H", f"--max-count={_MAX_VERSIONS}")
_GIT_LOG: Final = (
    "log", "--no-ext-diff", "--no-textconv", "--diff-filter=R", "-M", "--name-status",
    "--format=", "-z", "--relative", "--", ".",
)  # fmt: skip
"""Lists renames and starts no program that the repository names."""

_ISO_DAY: Final = "YYYY-MM-DD"
"""The format of daily notes with which their names are days as links have them."""


class _Rules(Struct, forbid_unknown_fields=True):
    """The file of the rules."""

    rules: tuple[PropertyRule, ...]


def health_settings(store: VaultStore, state: Path, now: datetime) -> HealthSettings:
    """Return what the examination of a vault depends on in addition to its files."""

    def read_day(text: str) -> date | None:
        from obsidian_agent.offline.days import parse_day

        return parse_day(text, now.date())

    def renames() -> list[tuple[str, str]]:
        return [*_journal_renames(state, store), *git_renames(store.real_path)]

    notes = note_settings(store.obsidian_config)
    document = store.obsidian_config("app")
    app = document if isinstance(document, dict) else {}
    return HealthSettings(
        now=now,
        templates=notes.templates,
        daily_notes=notes.daily_folder if notes.daily_format == _ISO_DAY else "",
        daily_folder=notes.daily_folder,
        new_notes=_new_notes(app),
        is_excluded=_exclusion(app),
        config_texts=lambda: _config_texts(store),
        property_types=_property_types(store.obsidian_config("types")),
        link_style=link_style(store),
        property_rules=_property_rules(store),
        renames=renames,
        old_versions=lambda path: old_versions(state, store, path),
        read_day=read_day,
    )


def _new_notes(settings: Mapping[str, object]) -> str | None:
    """Return the folder of Obsidian's setting “Default location for new notes”."""
    location, folder = settings.get("newFileLocation"), settings.get("newFileFolderPath")
    if location == "current":
        return None
    if location == "folder" and isinstance(folder, str):
        return folder.strip().strip("/")
    return ""


def _exclusion(settings: Mapping[str, object]) -> Callable[[str], bool]:
    """Return the test of a path by Obsidian's setting “Excluded files”.

    Each filter is the beginning of a path or, between slashes, a regular expression.
    """
    filters = settings.get("userIgnoreFilters")
    beginnings: list[str] = []
    patterns: list[TimedPattern] = []
    for text in filters if isinstance(filters, list) else ():
        if not isinstance(text, str) or not text:
            continue
        if re.fullmatch(r"/.+/", text) is None:
            beginnings.append(text)
            continue
        with contextlib.suppress(ToolError):
            patterns.append(compile_pattern(text[1:-1], literal=False, case_sensitive=True))

    def is_excluded(path: str) -> bool:
        with contextlib.suppress(ToolError):
            return path.startswith((*beginnings,)) or any(one.search(path) for one in patterns)
        return False

    return is_excluded


def _config_texts(store: VaultStore) -> list[bytes]:
    """Return the CSS snippets of a vault, its bookmarks and the settings of plugins.

    They may name files that are shown.
    """
    config = Path(store.real_path, store.config_folder)
    texts: list[bytes] = []
    for pattern in ("snippets/*.css", "plugins/*/data.json", "bookmarks.json"):
        with contextlib.suppress(OSError):
            for file in config.glob(pattern):
                is_small = not file.is_symlink() and file.stat().st_size <= _MAX_CONFIG
                if is_small and file.is_file():
                    texts.append(file.read_bytes())
    return texts


def _property_rules(store: VaultStore) -> tuple[PropertyRule, ...]:
    """Return the vault's own rules for properties. Raise ConfigError for an invalid file."""
    try:
        data = store.read(app_path("properties.json"), _MAX_RULES_FILE)
    except VaultError as error:
        if error.code == "FILE_NOT_FOUND":
            return ()
        raise
    try:
        return decode(data, type=_Rules).rules
    except MsgspecError as error:
        raise ConfigError(f"{RULES_FILE} is not valid: {error}.") from error


def _property_types(document: object) -> dict[str, str]:
    types = document.get("types") if isinstance(document, dict) else None
    if not isinstance(types, dict):
        return {}
    return {name.lower(): kind for name, kind in types.items() if isinstance(kind, str)}


def _journal_renames(state: Path, store: VaultStore) -> list[tuple[str, str]]:
    try:
        with JournalReader.open(state, store) as journal:
            entries = journal.history(_MAX_RUNS)
    except JournalError:
        return []
    return [
        (old, new) for entry in entries if not entry.undone for old, new in entry.effects.renamed
    ]


def git_renames(vault: str) -> list[tuple[str, str]]:
    """Return the renames that git knows, the newest first; none without git or a repository."""
    output = _git(vault, *_GIT_LOG)
    if output is None:
        return []
    fields = iter(output.decode("utf-8", "surrogateescape").split("\0"))
    return [
        (next(fields, ""), next(fields, "")) for field in fields if re.fullmatch(r"R\d+", field)
    ]


def _git(vault: str, *args: str) -> bytes | None:
    """Return the output of git in a vault; None if there is no repository, or on an error."""
    if not os.path.lexists(os.path.join(vault, ".git")):
        return None
    environment = os.environ | {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        result = subprocess.run(
            (*_GIT, *args),
            cwd=vault,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    if result.returncode or len(result.stdout) > _MAX_GIT_OUTPUT:
        return None
    return result.stdout


def old_versions(state: Path, store: VaultStore, path: str) -> list[bytes]:
    """Return the earlier contents of a file that the journal and git know, the newest first."""
    return [*_journal_versions(state, store, path), *_git_versions(store.real_path, path)]


def _journal_versions(state: Path, store: VaultStore, path: str) -> list[bytes]:
    versions: list[bytes] = []
    try:
        with JournalReader.open(state, store) as journal:
            for entry in journal.history(_MAX_RUNS):
                effects = entry.effects
                if path not in effects.modified and path not in effects.created:
                    continue
                record = journal.run(entry.run_id)
                if record is None:
                    continue
                actions, images = journal.load(record)
                for stored in reversed(actions):
                    action = stored.action
                    if isinstance(action, PutFile) and action.path.text == path:
                        hashes = (action.after, action.before)
                        contents = [images.find(hash) for hash in hashes if hash is not None]
                        versions += [content for content in contents if content is not None]
                if len(versions) >= _MAX_VERSIONS:
                    break
    except JournalError:
        pass
    return versions[:_MAX_VERSIONS]


def _git_versions(vault: str, path: str) -> list[bytes]:
    log = _git(vault, *_GIT_VERSIONS, "--", f":(literal){path}")
    commits = log.decode("ascii", "ignore").split() if log is not None else []
    contents = (_git_text(vault, commit, path) for commit in commits)
    return [content for content in contents if content is not None]


def _git_text(vault: str, commit: str, path: str) -> bytes | None:
    return _git(vault, "cat-file", "blob", f"{commit}:./{path}")


class HealthRecord:
    """The findings that the user ignores in one vault, and the counts of earlier reports."""

    def __init__(self, state: Path, store: VaultStore) -> None:
        self._file = find(state, store) / _FILE

    def ignored(self) -> dict[str, str]:
        """Return the reasons by the ids of ignored findings."""
        ignored = self._document().get("ignored")
        if not isinstance(ignored, dict):
            return {}
        return {key: str(reason) for key, reason in ignored.items()}

    def ignore(self, finding: str, reason: str) -> None:
        """Leave a finding out of later reports. Raises OSError."""
        document = self._document()
        document["ignored"] = self.ignored() | {finding: reason}
        self._write(document)

    def unignore(self, finding: str) -> bool:
        """Report a finding again; False if it was not ignored. Raises OSError."""
        ignored = self.ignored()
        if ignored.pop(finding, None) is None:
            return False
        self._write(self._document() | {"ignored": ignored})
        return True

    def trend(self) -> list[tuple[str, int]]:
        """Return the day and number of findings of earlier whole reports, one a day."""
        entries = self._document().get("trend")
        if not isinstance(entries, list):
            return []
        return [
            (str(entry[0]), int(entry[1]))
            for entry in entries
            if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], int)
        ]

    def add(self, report: HealthReport, now: datetime) -> None:
        """Store the number of findings of a whole report. A full disk is not an error here."""
        day = now.date().isoformat()
        trend = [entry for entry in self.trend() if entry[0] != day]
        trend.append((day, len(report.findings)))
        with contextlib.suppress(OSError):
            self._write(self._document() | {"trend": trend[-_MAX_TREND:]})

    def _document(self) -> dict[str, Any]:
        try:
            document = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            return {}
        return document if isinstance(document, dict) else {}

    def _write(self, document: dict[str, Any]) -> None:
        replace_file(self._file, json.dumps(document, ensure_ascii=False, indent=1).encode())


class Checkup(Struct, frozen=True):
    """A report, and the day and number of findings of the last whole report before it, if any."""

    report: HealthReport
    earlier: tuple[str, int] | None = None


class VaultHealth:
    """The examination of one vault. Every method may block."""

    def __init__(self, state: Path, store: VaultStore) -> None:
        self._state = state
        self._store = store

    @property
    def record(self) -> HealthRecord:
        """The ignored findings and the trend."""
        return HealthRecord(self._state, self._store)

    def examine(
        self,
        view: VaultView,
        now: datetime,
        *,
        only: Collection[FindingKind] = KINDS,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Checkup:
        """Examine the vault, and add a whole report to the trend.

        `progress` is called with the number of finished checks and their total; an exception that
        it raises ends the examination.
        """
        from obsidian_agent.health.report import examine

        record = self.record
        report = examine(
            view,
            health_settings(self._store, self._state, now),
            only=only,
            ignored=record.ignored(),
            progress=progress,
        )
        trend = record.trend()
        if frozenset(only) == frozenset(KINDS):
            record.add(report, now)
        return Checkup(report, trend[-1] if trend else None)

    def rules(self, view: VaultView, now: datetime) -> list[PropertyRule]:
        """Return the rules for properties: the vault's own, Obsidian's types, inferred ones."""
        from obsidian_agent.health.properties import property_rules
        from obsidian_agent.health.survey import VaultSurvey

        return property_rules(VaultSurvey(view, health_settings(self._store, self._state, now)))
