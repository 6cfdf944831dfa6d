"""`doctor`: check everything that a run needs, and resolve the history of a moved vault."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import asdict

from obsidian_agent import __version__
from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, UsageError
from obsidian_agent.cli.session_factory import open_session, open_vault, state_inside, wiring_of
from obsidian_agent.errors import ConfigError, JournalError, ObsidianAgentError, VaultError
from obsidian_agent.terminal_text import counted

if TYPE_CHECKING:
    from pathlib import Path

    from obsidian_agent.agent.privacy.record import AuditRecord
    from obsidian_agent.bootstrap import Wiring
    from obsidian_agent.services.runs import Runs
    from obsidian_agent.vault.filesystem.store import VaultStore
    from obsidian_agent.vault.views.disk import DiskView
    from obsidian_agent.vault.views.view import VaultView

MAX_NAMES: Final = 5
"""Names that one sentence lists."""

LEFTOVER_SECONDS: Final = 60.0
"""The age from which a temporary file counts as a leftover. A younger one may be in use."""

READABLE_BY_OTHERS: Final = 0o077
WRITABLE_BY_OTHERS: Final = 0o022
"""Mode bits that grant other users any access to a file, or write access."""

_TEMPORARY: Final = re.compile(r"\.oa-?[0-9a-f]{8}(\.\d+\.[0-9a-f]+)?")


class Check(Struct, frozen=True):
    """The result of one check."""

    name: str
    ok: bool
    detail: str


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    command = commands.add("doctor", doctor_command, examples=["doctor --vault ~/Notes"])
    moved = command.add_mutually_exclusive_group()
    moved.add_argument(
        "--adopt",
        action="store_true",
        help="the vault was renamed or moved: continue its history here",
    )
    moved.add_argument(
        "--start-anew",
        action="store_true",
        help="the vault was renamed or moved: start a new history",
    )


def doctor_command(options: argparse.Namespace, out: Output) -> Exit:
    """Print the result of every check, changing nothing, or resolve a moved vault's history."""
    if options.adopt or options.start_anew:
        return _resolve_move(options, out)
    checks = list(_checks(options))
    ok = all(check.ok for check in checks)
    if out.as_json:
        out.document({"ok": ok, "checks": [asdict(check) for check in checks]})
    for check in checks:
        out.line(f"{'ok  ' if check.ok else 'FAIL'} {check.name}: {check.detail}")
    return Exit.DONE if ok else Exit.FAILED


def _resolve_move(options: argparse.Namespace, out: Output) -> Exit:
    runs = open_session(options).runs
    moved = runs.moved()
    if moved is None:
        raise UsageError(
            "This vault was not moved: its history is here, or no run has changed it yet."
        )
    if options.adopt:
        runs.adopt()
        message = f"The history of {moved.path} now belongs to this vault."
    else:
        runs.start_new_history()
        message = f"The history stays with {moved.path}. This vault starts a new one."
    if out.as_json:
        out.document({"movedFrom": moved.path, "adopted": options.adopt})
    out.line(message)
    return Exit.DONE


def _checks(options: argparse.Namespace) -> Iterator[Check]:
    from obsidian_agent.state_files import directories

    folders = directories(options.state_dir, options.config)
    python = sys.version.split()[0]
    yield Check("program", True, f"obsidian-agent {__version__}, Python {python} on {sys.platform}")
    yield _check("settings", lambda: _settings(folders.config))
    yield _check("state folder", lambda: _writable(folders.state))
    yield _check(
        "config folder",
        lambda: _private(folders.config.parent, (folders.config,), WRITABLE_BY_OTHERS),
    )
    try:
        store = open_vault(options)
    except ObsidianAgentError as error:
        yield Check("vault", False, error.problem().message)
        return
    with store:
        yield from _vault_checks(options, store, folders.state)


def _vault_checks(options: argparse.Namespace, store: VaultStore, state: Path) -> Iterator[Check]:
    from obsidian_agent.bootstrap import open_record
    from obsidian_agent.journal import state_folder
    from obsidian_agent.services.runs import Runs
    from obsidian_agent.vault.views.disk import DiskView

    view = DiskView(store)
    yield Check("vault", True, _contents(store, view))
    is_writable = store.is_writable()
    yield Check(
        "vault is writable",
        is_writable,
        "yes" if is_writable else "no: plans can be previewed, not run",
    )
    runs = Runs(store, state)
    yield _check("journal", lambda: _journal(runs))
    yield _check("interrupted runs", lambda: _no_interrupted_run(runs))
    yield _check("journal and disk", lambda: _last_run(runs))
    yield _check("temporary files", lambda: _no_leftovers(store.real_path))
    if (inside := state_inside(state, store.real_path)) is not None:
        detail = f"{inside} in the vault: hidden from plans, but copied with the vault"
        yield Check("state outside the vault", False, detail)
    folder = state_folder.find(state, store)
    yield _check(
        "state is private",
        lambda: _private(folder, tuple(folder.glob("*")), READABLE_BY_OTHERS),
    )
    wiring = wiring_of(options, app=True)
    yield _check("rules", lambda: _rules(wiring, view))
    yield _check("record", lambda: _record(open_record(wiring), runs))
    yield _check("model", lambda: _model(wiring))
    yield _check("index", lambda: _index(state_folder.index_folder(state, store)))
    yield _watches(store.real_path)


def _check(name: str, check: Callable[[], str]) -> Check:
    """Run a check that returns its detail, or raises an error if it fails."""
    try:
        return Check(name, True, check())
    except ObsidianAgentError as error:
        return Check(name, False, error.problem().message)


def _settings(file: Path) -> str:
    from obsidian_agent.config.layers import load_settings

    load_settings(file)
    return str(file) if file.exists() else f"{file} does not exist: defaults"


def _writable(folder: Path) -> str:
    import tempfile

    from obsidian_agent.state_files import make_private

    try:
        make_private(folder)
        # Where possible this file has no name, so that a kill leaves nothing behind.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ObsidianAgentError(
            f"{folder} cannot be written: {error.strerror or error}."
        ) from error
    return str(folder)


def _private(folder: Path, files: Iterable[Path], forbidden: int) -> str:
    """Check that none of the paths has one of the `forbidden` mode bits."""
    if os.name != "posix" or not folder.exists():
        return str(folder)
    open_paths = [
        str(path) for path in (folder, *files) if path.exists() and path.stat().st_mode & forbidden
    ]
    if open_paths:
        verb, rights = "read", "rwx"
        if forbidden == WRITABLE_BY_OTHERS:
            verb, rights = "change", "w"
        raise ConfigError(
            f"Other users can {verb} {', '.join(open_paths[:MAX_NAMES])}: "
            f"remove their access with chmod go-{rights}."
        )
    return str(folder)


def _contents(store: VaultStore, view: DiskView) -> str:
    from obsidian_agent.vault.paths.path import ROOT

    notes = counted(sum(1 for entry in view.walk(ROOT) if entry.path.is_note), "note")
    if not view.unreadable_names:
        return f"{store.real_path}: {notes}"
    return f"{store.real_path}: {notes}, {view.unreadable_names} names that are not valid text"


def _journal(runs: Runs) -> str:
    count = len(runs.history(1_000_000))
    if problems := runs.examine(contents=True):
        raise JournalError(" ".join(problem.message for problem in problems))
    return counted(count, "run")


def _no_interrupted_run(runs: Runs) -> str:
    if interrupted := runs.interrupted():
        raise JournalError(
            f"{counted(len(interrupted), 'run')}: see obsidian-agent recover.",
            code="RECOVERY_NEEDED",
        )
    return "none"


def _last_run(runs: Runs) -> str:
    """Compare the files of the last run in effect with the disk."""
    try:
        undo = runs.undo_preview(None)
    except JournalError as error:
        if error.code == "JOURNAL_DAMAGED":
            raise
        return "no run to compare"
    if undo.errors:
        raise JournalError(" ".join(problem.message for problem in undo.errors))
    detail = f"run {undo.run_id}: {len(undo.restored)} unchanged since"
    if not undo.conflicts:
        return detail
    names = ", ".join(conflict.path for conflict in undo.conflicts[:MAX_NAMES])
    return f"{detail}, changed: {names}"


def _no_leftovers(vault: str) -> str:
    """Check for temporary files that a killed write left behind.

    Recovery removes those of an interrupted run.
    """
    newest = time.time() - LEFTOVER_SECONDS
    leftovers = []
    for folder, _, names in os.walk(vault):
        for name in names:
            file = os.path.join(folder, name)
            if _TEMPORARY.fullmatch(name) and os.lstat(file).st_mtime < newest:
                leftovers.append(os.path.relpath(file, vault))
    if leftovers:
        raise VaultError(
            f"{len(leftovers)} from an interrupted write: "
            f"{', '.join(sorted(leftovers)[:MAX_NAMES])}. Check and remove them."
        )
    return "none"


def _rules(wiring: Wiring, view: VaultView) -> str:
    """Return the number of rules for paths, and those that match nothing in this vault."""
    from obsidian_agent.bootstrap import policy_of
    from obsidian_agent.vault.paths.path import ROOT

    policy = policy_of(wiring)
    if policy.problems:
        raise ConfigError(" ".join(problem.message for problem in policy.problems))
    rules = dict.fromkeys(policy.path_rules())
    unused = dict(rules)
    for entry in view.walk(ROOT):
        for rule in [rule for rule in unused if rule[1].cover(entry.path)]:
            del unused[rule]
    detail = counted(len(rules), "rule")
    if not unused:
        return detail
    names = ", ".join(f"{name} {paths.patterns[0]}" for name, paths in unused)
    return f"{detail}; match nothing in this vault: {names}"


def _record(record: AuditRecord, runs: Runs) -> str:
    verified = runs.verify_record()
    if verified.first_bad is not None:
        raise ConfigError(f"Entry {verified.first_bad} is not valid: {verified.reason}.")
    sent = sum(1 for entry in record.entries() if entry.get("kind") == "sent")
    return f"{counted(verified.entries, 'entry', 'entries')}, {sent} about data sent to models"


def _model(wiring: Wiring) -> str:
    """Check that the model of the settings has a key, without sending a request."""
    from obsidian_agent.bootstrap import build_keys, build_session
    from obsidian_agent.providers.registry import SCRIPTED, find_vendor

    models = build_session(wiring).open_models()
    if models is None:
        return "none: the offline planner"
    provider = models.providers.get(models.spec)
    service = models.spec.partition("/")[0]
    if service == SCRIPTED or provider.local or not (vendor := find_vendor(service)).needs_key:
        return f"{provider.name}, which needs no key"
    source = build_keys(wiring).source(vendor)
    if source is None:
        raise ConfigError(
            f"{provider.name} needs a key: obsidian-agent key save {vendor.name}, "
            f"or set {vendor.key_variables[0]}."
        )
    return f"{provider.name}, its key from the {source}"


def _index(folder: Path) -> str:
    from obsidian_agent.vault.index.keeper import SNAPSHOT_NAME
    from obsidian_agent.vault.index.snapshot import Snapshot
    from obsidian_agent.vault.index.snapshot_file import UnusableIndex

    if not (folder / SNAPSHOT_NAME).exists():
        return "not built yet"
    try:
        return counted(len(Snapshot(folder / SNAPSHOT_NAME)), "file")
    except (UnusableIndex, OSError) as error:
        raise VaultError(f"It cannot be read ({error}); it will be rebuilt.") from error


def _watches(vault: str) -> Check:
    """Check that the system's limit of watched folders suffices for the vault."""
    try:
        with open("/proc/sys/fs/inotify/max_user_watches", encoding="ascii") as stream:
            limit = int(stream.read())
    except (OSError, ValueError):
        return Check("watcher", True, "the system's own")
    folders = sum(1 for _ in os.walk(vault))
    detail = f"{folders:,} folders, limit {limit:,}"
    if folders < limit:
        return Check("watcher", True, detail)
    return Check(
        "watcher",
        False,
        f"{detail}: folders beyond it are compared every few minutes. "
        "Raise it with sysctl fs.inotify.max_user_watches.",
    )
