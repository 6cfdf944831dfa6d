"""The editor that the user's environment names, for the message."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from obsidian_agent import terminal_text
from obsidian_agent.child_process import runnable, split_command
from obsidian_agent.errors import ConfigError

FILE_NAME = "message.md"


def editor_command(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the command in VISUAL or EDITOR. Raise `ConfigError` NO_EDITOR without one."""
    line = environment.get("VISUAL") or environment.get("EDITOR") or ""
    try:
        command = split_command(line)
    except ValueError:
        command = ()
    if not command:
        raise ConfigError(
            "No editor is set. Set the environment variable EDITOR, such as EDITOR=nano.",
            code="NO_EDITOR",
        )
    return runnable(command)


def edit(command: Sequence[str], text: str) -> str:
    """Return the text after the user has edited it. Blocks until the editor ends.

    Raise `ConfigError` EDITOR_FAILED if the editor cannot be started or reports an error.
    """
    with TemporaryDirectory(prefix="obsidian-agent-") as folder:
        file = Path(folder) / FILE_NAME
        file.write_text(text, encoding="utf-8")
        try:
            subprocess.run([*command, str(file)], check=True)
            edited = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, subprocess.CalledProcessError) as error:
            raise ConfigError(
                f"The editor “{command[0]}” did not save the message, which is unchanged.",
                code="EDITOR_FAILED",
            ) from error
    return terminal_text.block(terminal_text.LINE_END.sub("\n", edited)).rstrip("\n")
