"""Where things of the person lie: settings, the journal and logs; never inside a vault or a synced folder."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import PlatformDirs

from obsidian_agent.dataclass import dataclass

STATE_VARIABLE = "OBSIDIAN_AGENT_STATE_DIR"
CONFIG_VARIABLE = "OBSIDIAN_AGENT_CONFIG"


@dataclass(frozen=True, slots=True)
class Directories:
    """`state` holds the journal and usage counts, one folder a vault; `config` is the settings file; `log` a folder."""

    state: Path
    config: Path
    log: Path


def directories(state_dir: str | None = None, config_file: str | None = None) -> Directories:
    """The person's folders; options win over environment variables, these over the platform's custom."""
    platform = PlatformDirs("obsidian-agent", appauthor=False)
    state = state_dir or os.environ.get(STATE_VARIABLE)
    config = config_file or os.environ.get(CONFIG_VARIABLE)
    state_path = Path(state) if state else platform.user_state_path
    return Directories(
        state=state_path.absolute(),
        config=Path(config).absolute() if config else platform.user_config_path / "config.toml",
        log=state_path.absolute() / "log" if state else platform.user_log_path,
    )
