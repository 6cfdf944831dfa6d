"""Opening the vault, settings, context and session that the options of a command name.

Functions import what they need when they are called, because parsing must not wait for it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from obsidian_agent.cli.parser import UsageError
from obsidian_agent.errors import ConfigError, VaultError

if TYPE_CHECKING:
    from pathlib import Path

    from obsidian_agent.bootstrap import Wiring
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.services.focus import Focus
    from obsidian_agent.services.session import Session
    from obsidian_agent.tools.core.tool import Selection
    from obsidian_agent.vault.filesystem.store import VaultStore

MAX_SELECTION_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a selection that is read from a file."""

SELECTION_OPTIONS: Final = ("selection_range", "selection_file", "selection")
"""Options that select text. Only one of them may be present."""

_RANGE = re.compile(r"(\d+):(\d+)-(\d+):(\d+)")


def find_vault(name: str | None) -> Path:
    """Return the folder of a vault from its path, or from a name that Obsidian knows.

    Without a name it is the current folder, if that is a vault.
    """
    from pathlib import Path

    from obsidian_agent.obsidian.registry import known_vaults

    if name is None:
        current = Path.cwd()
        if (current / ".obsidian").is_dir():
            return current
        raise UsageError(
            "No vault is named.", hint="Add --vault FOLDER, or a name that Obsidian knows."
        )
    if not name.strip():
        raise UsageError("--vault is empty.", hint="Give a folder, or a name that Obsidian knows.")
    folder = Path(name).expanduser()
    if folder.exists() or folder.is_symlink():
        return folder
    matches = [vault for vault in known_vaults() if vault.name.casefold() == name.casefold()]
    if len(matches) == 1:
        return matches[0].path
    if matches:
        raise ConfigError(
            f"Obsidian knows several vaults named {name!r}.", hint="Give the folder instead."
        )
    raise ConfigError(
        f"There is no vault {name!r}: neither a folder nor a name that Obsidian knows.",
        code="VAULT_NOT_FOUND",
        hint="Check the spelling.",
    )


def settings_of(options: argparse.Namespace, vault: Path | None = None) -> LiveSettings:
    """Return the settings for a vault, or for any vault, with the options as the last layer."""
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.config.settings import NO_MODEL
    from obsidian_agent.state_files import directories

    overrides = {
        "model": NO_MODEL if getattr(options, "offline", False) else chosen_model(options),
        "base_url": getattr(options, "base_url", None),
        "share_allow": tuple(getattr(options, "share", ())),
    }
    return LiveSettings.load(
        directories(options.state_dir, options.config).config,
        vault=vault,
        options={name: value for name, value in overrides.items() if value},
    )


def open_vault(options: argparse.Namespace) -> VaultStore:
    """Open the vault. Raises `ConfigError` if the state folder would be visible in it."""
    from obsidian_agent.state_files import directories
    from obsidian_agent.vault.filesystem.store import VaultStore

    store = VaultStore.open(find_vault(options.vault))
    try:
        state_inside(directories(options.state_dir, options.config).state, store.real_path)
    except ConfigError:
        store.close()
        raise
    return store


def state_inside(state: Path, vault: str) -> str | None:
    """Return the path of the state folder in the vault, or None if it lies elsewhere.

    Raises `ConfigError` unless it is hidden: plans, models and the index never reach hidden
    folders.
    """
    import os
    from pathlib import Path

    from obsidian_agent.vault.paths.path import protected

    real = Path(os.path.realpath(state))
    for folder in (real, *real.parents):
        if folder.exists() and folder.samefile(vault):
            break
    else:
        return None
    inside = real.relative_to(folder)
    if not any(map(protected, inside.parts)):
        raise ConfigError(
            f"The state folder {state} lies in the vault, where plans and models can reach it.",
            hint="Give a folder outside the vault: --state-dir, or OBSIDIAN_AGENT_STATE_DIR.",
        )
    return inside.as_posix()


def open_session(options: argparse.Namespace) -> Session:
    """Open a session on the vault, with the focus of the options or of a running Obsidian."""
    from obsidian_agent.bootstrap import build_session
    from obsidian_agent.cli.output import Output

    wiring = wiring_of(options)
    session = build_session(wiring)
    session.plans.hooks.reporters.append(lambda problem: Output(options.json).problems([problem]))
    if has_context(options):
        session.vault.focus = focus_of(options, wiring.store)
    elif hasattr(options, "active_file"):
        session.vault.focus_on_obsidian()
    return session


def wiring_of(options: argparse.Namespace, *, app: bool = False) -> Wiring:
    """Return the vault with its settings and policy.

    The policy comes from the settings in the app, and from the options elsewhere.
    """
    from pathlib import Path

    from obsidian_agent.bootstrap import Wiring
    from obsidian_agent.plan.policy import Policy
    from obsidian_agent.state_files import directories

    folders = directories(options.state_dir, options.config)
    store = open_vault(options)
    if shared := getattr(options, "share", None):
        options.share = [note_path(store, name) for name in shared]
    settings = settings_of(options, Path(store.real_path))
    if settings.current.hooks:
        from obsidian_agent import log

        log.start(folders.log)
    policy = None
    if not app:
        policy = Policy(
            allow_deletes=getattr(options, "allow_deletes", False),
            allow_commands=getattr(options, "allow_commands", False),
            by_options=True,
        )
    return Wiring(
        store=store,
        state=folders.state,
        policy=policy,
        now=parse_now(getattr(options, "now", None)),
        settings=settings,
        config=folders.config.parent,
    )


def state_of(options: argparse.Namespace, *, app: bool = False) -> Wiring:
    """Return the vault as `wiring_of`, for its rules and waiting plans.

    Raise `JournalError` for a moved vault: they belong to its earlier path until the user decides.
    """
    from obsidian_agent.journal.reader import vault_moved
    from obsidian_agent.services.runs import Runs

    wiring = wiring_of(options, app=app)
    moved = Runs(wiring.store, wiring.state).moved()
    if moved is not None:
        raise vault_moved(moved)
    return wiring


def chosen_model(options: argparse.Namespace) -> str | None:
    """Return the model that the options name, an agent as `acp/NAME`, or None for the settings'."""
    model: str | None = getattr(options, "model", None)
    backend, agent = getattr(options, "backend", None), getattr(options, "agent", None)
    if backend is None and agent is None:
        return model
    if model is not None or (backend == "opencode" and agent not in (None, "opencode")):
        raise UsageError(
            "Name one model or one agent.", hint="Give --model, or --backend acp --agent NAME."
        )
    if backend == "acp" and agent is None:
        raise UsageError("--backend acp needs --agent NAME.", hint="Such as --agent claude.")
    return f"acp/{agent or backend}"


def has_context(options: argparse.Namespace) -> bool:
    """Return True if the options name the open note or a selection."""
    return any(
        getattr(options, name, None) is not None for name in ("active_file", *SELECTION_OPTIONS)
    )


def focus_of(options: argparse.Namespace, store: VaultStore) -> Focus:
    """Return the open note and the selection that the options name."""
    from obsidian_agent.services.focus import Focus

    active = getattr(options, "active_file", None)
    if active is not None:
        active = _active_file(active, store)
    return Focus(active, _selection(options, active, store))


def _active_file(name: str, store: VaultStore) -> str:
    from obsidian_agent.vault.views.disk import DiskView
    from obsidian_agent.vault.views.view import locate_by_name

    view = DiskView(store)
    entry = locate_by_name(view, name, "file")
    if entry is not None:
        return entry.path.text
    is_folder = locate_by_name(view, name) is not None
    raise ConfigError(
        f"The active file {name} {'is a folder' if is_folder else 'does not exist in the vault'}.",
        code="FILE_NOT_FOUND",
        path=name,
        hint="Check --active-file.",
    )


def _selection(
    options: argparse.Namespace, active: str | None, store: VaultStore
) -> Selection | None:
    from obsidian_agent.services.focus import selection_in
    from obsidian_agent.tools.core.tool import EditorPosition, Selection
    from obsidian_agent.vault.views.disk import DiskView

    present = [name for name in SELECTION_OPTIONS if getattr(options, name, None) is not None]
    if len(present) > 1:
        raise UsageError("Give one of --selection-range, --selection-file and --selection.")
    match present:
        case ["selection_range"]:
            limits = _RANGE.fullmatch(options.selection_range)
            if limits is None or active is None:
                raise UsageError(
                    "--selection-range is L:C-L:C in the note of --active-file.",
                    hint="Lines and columns count from 0.",
                )
            start_line, start_ch, end_line, end_ch = map(int, limits.groups())
            return selection_in(
                DiskView(store),
                active,
                EditorPosition(start_line, start_ch),
                EditorPosition(end_line, end_ch),
            )
        case ["selection_file"]:
            return Selection(read_text(options.selection_file))
        case ["selection"]:
            return Selection(options.selection, from_argument=True)
        case _:
            return None


def note_path(store: VaultStore, name: str) -> str:
    """Return the path of a note from a name without `.md`.

    A name of anything else, or of nothing, is returned unchanged.
    """
    from obsidian_agent.vault.views.disk import DiskView
    from obsidian_agent.vault.views.view import locate_by_name

    try:
        entry = locate_by_name(DiskView(store), name)
    except VaultError:
        return name
    return entry.path.text if entry is not None and entry.kind == "file" else name


def file_not_found(name: str) -> VaultError:
    """Return the error for a name that names nothing in the vault."""
    return VaultError(
        f"{name} does not exist in the vault.",
        code="FILE_NOT_FOUND",
        path=name,
        hint="Write its path from the vault's root.",
    )


def parse_now(text: str | None) -> datetime | None:
    """Parse the ISO date and time of `--now`, which is local without a time zone."""
    if text is None:
        return None
    try:
        now = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"--now {text!r} is not an ISO date and time.", hint="Write it like 2026-03-14T09:30."
        ) from error
    return now if now.tzinfo is not None else now.astimezone()


def parameters(options: argparse.Namespace) -> dict[str, str]:
    """Return the values of the `--param K=V` options."""
    return pairs(options.param, "--param")


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Parse the values of a repeatable option that is written NAME=VALUE."""
    values = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"{option} {text!r} has no =.", hint="Write it as NAME=VALUE.")
        values[name] = value
    return values


def read_bytes(name: str, limit: int) -> bytes:
    """Read a file, or standard input for `-`.

    At most `limit` + 1 bytes are read, so that the caller can detect a longer file.
    """
    try:
        if name == "-":
            return sys.stdin.buffer.read(limit + 1)
        with open(name, "rb") as stream:
            return stream.read(limit + 1)
    except OSError as error:
        raise ConfigError(
            f"{name} cannot be read: {error.strerror or error}.", path=name
        ) from error


def _source(name: str) -> str:
    return "standard input" if name == "-" else name


def read_text(name: str) -> str:
    """Read a selection from a UTF-8 file, or from standard input for `-`."""
    data = read_bytes(name, MAX_SELECTION_BYTES)
    if len(data) > MAX_SELECTION_BYTES:
        raise ConfigError(
            f"The selection in {_source(name)} is larger than {MAX_SELECTION_BYTES >> 20} MB.",
            code="FILE_TOO_LARGE",
            path=None if name == "-" else name,
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"The selection in {_source(name)} is not UTF-8 text.",
            path=None if name == "-" else name,
        ) from error
