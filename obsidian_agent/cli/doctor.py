"""`doctor`, `tools`, `schema` and `completion`: what the program can do, whether it can do it here, and what shells are told of it."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from obsidian_agent import __version__
from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, UsageError, build_parser, whole_number
from obsidian_agent.cli.session_factory import open_session, open_vault, state_inside, wiring_of
from obsidian_agent.dataclass import asdict, dataclass
from obsidian_agent.errors import ConfigError, JournalError, ObsidianAgentError, VaultError
from obsidian_agent.terminal_text import counted

if TYPE_CHECKING:
    from pathlib import Path

    from obsidian_agent.agent.privacy.record import AuditRecord
    from obsidian_agent.bootstrap import Wiring
    from obsidian_agent.services.runs import Runs
    from obsidian_agent.vault.views.view import VaultView


def arguments(commands: Commands) -> None:
    """Add the parsers of these commands."""
    commands.add("tools", tools_command, examples=["tools", "tools --json"])
    commands.add(
        "schema", schema_command, examples=["schema plan > plan.schema.json"]
    ).add_argument("what", choices=["plan", "tools"])
    moved = commands.add(
        "doctor", doctor_command, examples=["doctor --vault ~/Notes"]
    ).add_mutually_exclusive_group()
    moved.add_argument(
        "--adopt",
        action="store_true",
        help="the vault was renamed or moved: take its history along",
    )
    moved.add_argument(
        "--start-anew",
        action="store_true",
        help="the vault was renamed or moved: leave its history, start a new one",
    )
    commands.add("log", log_command, examples=["log --tail 50"]).add_argument(
        "--tail", type=whole_number, metavar="N", help="the newest N lines"
    )
    examples = [
        "completion bash > ~/.local/share/bash-completion/completions/obsidian-agent",
        "completion zsh > ~/.zfunc/_obsidian-agent",
        "completion fish > ~/.config/fish/completions/obsidian-agent.fish",
    ]
    commands.add("completion", completion_command, examples=examples).add_argument(
        "shell", choices=["bash", "zsh", "fish", "tcsh"]
    )


SHOWN: Final = 5
"""Names in one sentence."""
LEFT_SECONDS: Final = 60.0
"""A temporary file that is younger may be at work."""
_TEMPORARY: Final = re.compile(r"\.oa-?[0-9a-f]{8}(\.\d+\.[0-9a-f]+)?")

_FILES: Final = frozenset({"FILE", "PLAN.json"})
_FOLDERS: Final = frozenset({"VAULT", "DIR"})


def completion_command(options: argparse.Namespace, out: Output) -> Exit:
    """Print the script; commands, options and their choices are completed, and files and folders outside the vault."""
    import shtab

    parser = build_parser(None)
    _complete_places(parser, shtab.FILE, shtab.DIRECTORY)
    script = shtab.complete(parser, options.shell)
    out.document({"shell": options.shell, "script": script}) if out.as_json else out.source(script)
    return Exit.DONE


def _complete_places(parser: argparse.ArgumentParser, files: object, folders: object) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in dict.fromkeys(action.choices.values()):
                _complete_places(each, files, folders)
        elif action.metavar in _FILES | _FOLDERS:
            vars(action)["complete"] = files if action.metavar in _FILES else folders


def log_command(options: argparse.Namespace, out: Output) -> Exit:
    """The log file, oldest line first."""
    from obsidian_agent import log
    from obsidian_agent.state_files import directories

    file = log.file_in(directories(options.state_dir, options.config).log)
    try:
        lines = log.lines(file)
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be read: {error.strerror or error}.", path=str(file)
        ) from error
    if options.tail is not None:
        lines = lines[-options.tail :] if options.tail > 0 else []
    if out.as_json:
        out.document({"file": str(file), "lines": lines})
    for line in lines or [f"Nothing went wrong: {file} has no lines."]:
        out.line(line)
    return Exit.DONE


def tools_command(options: argparse.Namespace, out: Output) -> Exit:
    """The registry."""
    from obsidian_agent.offline.recipe import packaged
    from obsidian_agent.tools.registry import TOOLS

    recipes = [
        {
            "name": each.name,
            "title": each.title,
            "description": each.description,
            "examples": list(each.examples),
        }
        for each in packaged()
    ]
    document = [
        {
            "name": tool.name,
            "summary": tool.summary,
            "riskLevel": tool.risk.value,
            "aliases": list(tool.aliases),
            "input": tool.input.model_json_schema(by_alias=True),
            "output": tool.output.model_json_schema(by_alias=True),
        }
        for tool in TOOLS.values()
    ]
    if out.as_json:
        out.document({"tools": document, "recipes": recipes})
    for tool in TOOLS.values():
        fields = ", ".join(
            f"{info.alias}{'' if info.is_required() else '?'}"
            for info in tool.input.model_fields.values()
        )
        out.line(f"{tool.name:28} {tool.risk.value:10} {tool.summary}  ({fields})")
    out.line()
    out.line("Without a model:")
    for recipe in recipes:
        out.line(
            f"{recipe['name']:28} {recipe['description']} For example: {recipe['examples'][0]}"
        )
    return Exit.DONE


def schema_command(options: argparse.Namespace, out: Output) -> Exit:
    """The JSON Schemas of plans and of the tools' arguments."""
    from obsidian_agent.plan.model import plan_schema, tools_schema
    from obsidian_agent.tools.registry import TOOLS

    out.document(plan_schema() if options.what == "plan" else tools_schema(TOOLS.values()))
    return Exit.DONE


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that `doctor` looked at."""

    name: str
    ok: bool
    detail: str


def doctor_command(options: argparse.Namespace, out: Output) -> Exit:
    """Look at everything a run needs, change nothing; or say what shall become of the history of a vault that was moved."""
    if options.adopt or options.start_anew:
        return _settle_move(options, out)
    checks = list(_checks(options))
    if out.as_json:
        out.document(
            {"ok": all(check.ok for check in checks), "checks": [asdict(check) for check in checks]}
        )
    for check in checks:
        out.line(f"{'ok  ' if check.ok else 'FAIL'} {check.name}: {check.detail}")
    return Exit.DONE if all(check.ok for check in checks) else Exit.FAILED


def _settle_move(options: argparse.Namespace, out: Output) -> Exit:
    """Take the history of a vault that was moved along, or leave it."""
    runs = open_session(options).runs
    moved = runs.moved()
    if moved is None:
        raise UsageError(
            "This vault's history is here: it was not moved, or was never changed by a run."
        )
    if options.adopt:
        runs.adopt()
    else:
        runs.start_new_history()
    if out.as_json:
        out.document({"movedFrom": moved.path, "adopted": options.adopt})
    told = (
        f"The history of {moved.path} is that of this vault now."
        if options.adopt
        else f"The history stays with {moved.path}."
    )
    out.line(told)
    return Exit.DONE


def _checks(options: argparse.Namespace) -> Iterator[Check]:
    from obsidian_agent.state_files import directories

    folders = directories(options.state_dir, options.config)
    yield Check(
        "program",
        True,
        f"obsidian-agent {__version__}, Python {sys.version.split()[0]} on {sys.platform}",
    )
    yield _try("settings", lambda: _settings(folders.config))
    yield _try("state folder", lambda: _writable(folders.state))
    yield _try("config folder", lambda: _private(folders.config.parent, (folders.config,), 0o022))
    yield from _vault_checks(options, folders.state)


def _vault_checks(options: argparse.Namespace, state: Path) -> Iterator[Check]:
    from obsidian_agent.bootstrap import open_record
    from obsidian_agent.journal import state_folder
    from obsidian_agent.services.runs import Runs
    from obsidian_agent.vault.paths.path import ROOT
    from obsidian_agent.vault.views.disk import DiskView

    try:
        store = open_vault(options)
    except ObsidianAgentError as error:
        yield Check("vault", False, error.problem().message)
        return
    with store:
        view = DiskView(store)
        notes = sum(1 for entry in view.walk(ROOT) if entry.path.is_note)
        unreadable = (
            f", {view.unreadable_names} names that are no text" if view.unreadable_names else ""
        )
        yield Check("vault", True, f"{store.real_path}: {counted(notes, 'note')}{unreadable}")
        yield Check(
            "vault is writable",
            store.writable(),
            "yes" if store.writable() else "no: plans can be previewed, not run",
        )
        runs = Runs(store, state)
        yield _try("journal", lambda: _journal(runs))
        yield _try("interrupted runs", lambda: _none_interrupted(runs))
        yield _try("journal and disk", lambda: _last_run(runs))
        yield _try("temporary files", lambda: _no_leftovers(store.real_path))
        if (inside := state_inside(state, store.real_path)) is not None:
            detail = f"{inside} in the vault: hidden from plans, but copied with the vault"
            yield Check("state outside the vault", False, detail)
        folder = state_folder.find(state, store)
        yield _try("state is private", lambda: _private(folder, tuple(folder.glob("*")), 0o077))
        wiring = wiring_of(options, app=True)
        yield _try("rules", lambda: _rules(wiring, view))
        yield _try("record", lambda: _record(open_record(wiring), runs))
        yield _try("model", lambda: _model(wiring))
        yield _try("index", lambda: _index(state_folder.index_folder(state, store)))
        yield Check("watcher", *_watches(store.real_path))


def _journal(runs: Runs) -> str:
    count = len(runs.history(1_000_000))
    if wrong := runs.examine(contents=True):
        raise JournalError(" ".join(problem.message for problem in wrong))
    return counted(count, "run")


def _none_interrupted(runs: Runs) -> str:
    if found := runs.interrupted():
        raise JournalError(f"{len(found)}: see obsidian-agent recover.", code="RECOVERY_NEEDED")
    return "none"


def _last_run(runs: Runs) -> str:
    """What the last run that is in effect would find if it were undone now."""
    try:
        planned = runs.undo_preview(None)
    except JournalError as error:
        if error.code == "JOURNAL_DAMAGED":
            raise
        return "no run is in effect"
    if planned.errors:
        raise JournalError(" ".join(problem.message for problem in planned.errors))
    later = ", ".join(conflict.path for conflict in planned.conflicts[:SHOWN])
    return f"run {planned.run_id}: {len(planned.restored)} as it left them" + (
        f", changed since: {later}" if later else ""
    )


def _no_leftovers(vault: str) -> str:
    """Files that were written and never took their place: a kill leaves them. Those of an interrupted run go with its recovery."""
    old = time.time() - LEFT_SECONDS
    found = []
    for place, _, names in os.walk(vault):
        for name in names:
            file = os.path.join(place, name)
            if _TEMPORARY.fullmatch(name) and os.lstat(file).st_mtime < old:
                found.append(os.path.relpath(file, vault))
    if found:
        raise VaultError(
            f"{len(found)} were left by a kill: {', '.join(sorted(found)[:SHOWN])}. Look at them, and remove them."
        )
    return "none"


def _private(folder: Path, files: Iterable[Path], forbidden: int) -> str:
    """Others must not have the rights of `forbidden` on any of these."""
    if os.name != "posix" or not folder.exists():
        return str(folder)
    wide = [
        str(place)
        for place in (folder, *files)
        if place.exists() and place.stat().st_mode & forbidden
    ]
    if wide:
        what = "change" if forbidden == 0o022 else "look into"
        raise ConfigError(
            f"Others can {what} {', '.join(wide[:SHOWN])}: chmod go-{'w' if forbidden == 0o022 else 'rwx'} takes that away."
        )
    return str(folder)


def _record(record: AuditRecord, runs: Runs) -> str:
    verified = runs.verify_record()
    if verified.first_bad is not None:
        raise ConfigError(f"Entry {verified.first_bad} is not valid: {verified.reason}.")
    sent = sum(1 for entry in record.entries() if entry.get("kind") == "sent")
    return f"{verified.entries} entries, {sent} of them of what was sent"


def _rules(wiring: Wiring, view: VaultView) -> str:
    """Return how many rules for paths there are. Names those that match nothing in this vault."""
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
    names = ", ".join(f"{name} {each.patterns[0]}" for name, each in unused)
    return counted(len(rules), "rule") + (
        f"; match nothing in this vault: {names}" if names else ""
    )


def _model(wiring: Wiring) -> str:
    """Whether the model of the settings can be asked, without asking it."""
    from obsidian_agent.bootstrap import build_keys, build_session
    from obsidian_agent.providers.registry import SCRIPTED, find_vendor

    models = build_session(wiring).models
    if models is None:
        return "none: the offline planner"
    provider = models.providers.get(models.spec)
    service = models.spec.partition("/")[0]
    if service == SCRIPTED or provider.local or not (vendor := find_vendor(service)).needs_key:
        return f"{provider.name}, which needs no key"
    source = build_keys(wiring).source(vendor)
    if source is None:
        raise ConfigError(
            f"{provider.name} needs a key: obsidian-agent key save {vendor.name}, or set {vendor.key_variables[0]}."
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
        raise VaultError(
            f"It cannot be read ({error}); it is built anew when it is needed."
        ) from error


def _watches(vault: str) -> tuple[bool, str]:
    """Whether the system lets a program watch so many folders."""
    try:
        with open("/proc/sys/fs/inotify/max_user_watches", encoding="ascii") as stream:
            most = int(stream.read())
    except (OSError, ValueError):
        return True, "the system's own"
    folders = sum(1 for _ in os.walk(vault))
    told = f"{folders:,} folders, {most:,} may be watched"
    return (
        folders < most,
        told
        if folders < most
        else f"{told}: others are compared every few minutes (sysctl fs.inotify.max_user_watches)",
    )


def _try(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except ObsidianAgentError as error:
        return Check(name, False, error.problem().message)


def _settings(file: Path) -> str:
    from obsidian_agent.config.layers import load_settings

    load_settings(file)
    return str(file) if file.exists() else f"{file} is not there: defaults"


def _writable(folder: Path) -> str:
    import tempfile

    from obsidian_agent.state_files import make_private

    try:
        make_private(folder)
        with tempfile.TemporaryFile(
            dir=folder
        ):  # without a name, where the system can: a kill leaves nothing
            pass
    except OSError as error:
        raise ObsidianAgentError(
            f"{folder} cannot be written: {error.strerror or error}."
        ) from error
    return str(folder)
