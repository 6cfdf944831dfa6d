"""`obsidian-agent` and `python -m obsidian_agent`."""

from __future__ import annotations

import gc
import os
import sys


def main() -> int:
    """Answer `--version` before anything else is imported; leave the rest to the command line."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from obsidian_agent import __version__

        sys.stdout.write(f"obsidian-agent {__version__}\n")
        return 0
    # What is imported stays: looking for garbage meanwhile would cost a tenth of the start. The command line says when to look again.
    gc.disable()
    # Nobody gives this program plugins of pydantic; looking for them reads the metadata of every package that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from obsidian_agent.cli.main import main as run

    try:
        return run(sys.argv[1:])
    finally:
        # At its end Python looks for garbage several times: seconds, once a model's library is loaded, for memory that is freed anyway.
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
