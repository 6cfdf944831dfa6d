"""From options to an open vault, a context and a session. Imports when it is called: a parser that needs a check must not wait for them."""

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
    from obsidian_agent.vault.filesystem.store import VaultStore

MOST_SELECTED: Final = 4 * 1024 * 1024
"""Bytes of a selection that is read from a file."""

_RANGE = re.compile(r"(\d+):(\d+)-(\d+):(\d+)")


def find_vault(name: str | None) -> Path:
    """A folder, or a vault that Obsidian knows by name. Without a name: the folder we are in, when it is a vault."""
    from pathlib import Path

    from obsidian_agent.obsidian.registry import known_vaults

    if name is None:
        here = Path.cwd()
        if (here / ".obsidian").is_dir():
            return here
        raise UsageError(
            "No vault was named.", hint="Add --vault FOLDER, or a name that Obsidian knows."
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
    """The settings for a vault (None: for any), with what options say on top."""
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.config.settings import NO_MODEL
    from obsidian_agent.state_files import directories

    given = {
        "model": NO_MODEL if getattr(options, "offline", False) else chosen_model(options),
        "base_url": getattr(options, "base_url", None),
        "share_allow": tuple(getattr(options, "share", ())),
    }
    file = directories(options.state_dir, options.config).config
    return LiveSettings.load(
        file, vault=vault, options={name: value for name, value in given.items() if value}
    )


def open_vault(options: argparse.Namespace) -> VaultStore:
    """Open the vault that the options name. Raises `ConfigError` where the state folder would be visible in it."""
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
    """Return the path of the state folder in the vault; `None` if it lies elsewhere.

    Raises `ConfigError` where plans, models and the index would reach it. They reach no hidden folder.
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
            f"The state folder {state} lies in the vault, where plans and models reach it.",
            hint="Give a folder outside the vault: --state-dir, or OBSIDIAN_AGENT_STATE_DIR.",
        )
    return inside.as_posix()


def open_session(options: argparse.Namespace) -> Session:
    """A session on the vault that the options name, with their context as its focus."""
    from obsidian_agent.bootstrap import build_session
    from obsidian_agent.cli.output import Output

    wiring = wiring_of(options)
    session = build_session(wiring)
    session.plans.hooks.reporters.append(lambda problem: Output(options.json).problems([problem]))
    if given_context(options):
        session.vault.focus = focus_of(options, wiring.store)
    elif hasattr(options, "active_file"):
        session.vault.focus_on_obsidian()
    return session


def wiring_of(options: argparse.Namespace, *, app: bool = False) -> Wiring:
    """The vault that the options name, and how settings and options want it worked on.

    In the app the settings say what plans may do; elsewhere only options do.
    """
    from pathlib import Path

    from obsidian_agent.bootstrap import Wiring
    from obsidian_agent.plan.policy import Policy
    from obsidian_agent.state_files import directories

    folders = directories(options.state_dir, options.config)
    store = open_vault(options)
    if shared := getattr(options, "share", None):
        options.share = [note_or(store, name) for name in shared]
    deletes, commands = (
        getattr(options, "allow_deletes", False),
        getattr(options, "allow_commands", False),
    )
    settings = settings_of(options, Path(store.real_path))
    if settings.current.hooks:
        from obsidian_agent import log

        log.start(folders.log)
    return Wiring(
        store=store,
        state=folders.state,
        policy=None
        if app
        else Policy(allow_deletes=deletes, allow_commands=commands, by_options=True),
        now=moment(getattr(options, "now", None)),
        settings=settings,
        config=folders.config.parent,
    )


def chosen_model(options: argparse.Namespace) -> str | None:
    """The model that the options name; an agent is one, `acp/NAME`. None: the one of the settings."""
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


def given_context(options: argparse.Namespace) -> bool:
    """Whether options say what is open or selected."""
    return any(
        getattr(options, name, None) is not None
        for name in ("active_file", "selection_range", "selection_file", "selection")
    )


def focus_of(options: argparse.Namespace, store: VaultStore) -> Focus:
    """The open note and the selection that the options give."""
    from obsidian_agent.services.focus import Focus, selection_in
    from obsidian_agent.tools.core.tool import EditorPosition, Selection
    from obsidian_agent.vault.views.disk import DiskView
    from obsidian_agent.vault.views.view import locate_by_name

    active = getattr(options, "active_file", None)
    if active is not None:
        view = DiskView(store)
        entry = locate_by_name(view, active, "file")
        if entry is None:
            what = "is a folder" if locate_by_name(view, active) else "does not exist in the vault"
            raise ConfigError(
                f"The active file {active} {what}.",
                code="FILE_NOT_FOUND",
                path=active,
                hint="Check --active-file.",
            )
        active = entry.path.text
    given = [
        name
        for name in ("selection_range", "selection_file", "selection")
        if getattr(options, name, None) is not None
    ]
    if len(given) > 1:
        raise UsageError("Give one of --selection-range, --selection-file and --selection.")
    if not given:
        return Focus(active)
    if given == ["selection_range"]:
        match = _RANGE.fullmatch(options.selection_range)
        if match is None or active is None:
            raise UsageError(
                "--selection-range is L:C-L:C in the note of --active-file.",
                hint="Lines and columns count from 0.",
            )
        line, ch, last_line, last_ch = map(int, match.groups())
        return Focus(
            active,
            selection_in(
                DiskView(store),
                active,
                EditorPosition(line, ch),
                EditorPosition(last_line, last_ch),
            ),
        )
    if given == ["selection"]:
        return Focus(active, Selection(options.selection, from_argument=True))
    return Focus(active, Selection(read_text(options.selection_file)))


def note_or(store: VaultStore, name: str) -> str:
    """Return the path of the note that a name without `.md` names, or the name where it names something else or nothing."""
    from obsidian_agent.vault.views.disk import DiskView
    from obsidian_agent.vault.views.view import locate_by_name

    try:
        entry = locate_by_name(DiskView(store), name)
    except VaultError:
        return name
    return entry.path.text if entry is not None and entry.kind == "file" else name


def not_there(name: str) -> VaultError:
    """The error for a name that names nothing in the vault."""
    return VaultError(
        f"{name} is no file of the vault.",
        code="FILE_NOT_FOUND",
        path=name,
        hint="Write its path from the vault's root.",
    )


def moment(text: str | None) -> datetime | None:
    """An ISO date and time, local when it says no zone."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"--now {text!r} is no ISO date and time.", hint="Write it like 2026-03-14T09:30."
        ) from error
    return found if found.tzinfo is not None else found.astimezone()


def parameters(options: argparse.Namespace) -> dict[str, str]:
    """The `--param K=V` options."""
    return pairs(options.param, "--param")


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """The values of an option that is written NAME=VALUE and may be repeated."""
    found = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"{option} {text!r} has no =.", hint="Write it as NAME=VALUE.")
        found[name] = value
    return found


def read_bytes(name: str, limit: int) -> bytes:
    """Return the first `limit` bytes of a file, or of standard input for `-`, and one more if there is one."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(limit + 1)
        with open(name, "rb") as stream:
            return stream.read(limit + 1)
    except OSError as error:
        raise ConfigError(
            f"{name} cannot be read: {error.strerror or error}.", path=name
        ) from error


def read_text(name: str) -> str:
    """A UTF-8 file, or standard input for `-`."""
    data = read_bytes(name, MOST_SELECTED)
    if len(data) > MOST_SELECTED:
        raise ConfigError(
            f"{name} is larger than {MOST_SELECTED:,} bytes, the most that is read of a selection.",
            code="FILE_TOO_LARGE",
            path=name,
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is not UTF-8 text.", path=name) from error
