"""The entry point of `obsidian-agent` and `python -m obsidian_agent`."""

from __future__ import annotations

import gc
import os
import sys


def main() -> int:
    """Print the version without further imports, or run the command line."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from obsidian_agent import __version__

        sys.stdout.write(f"obsidian-agent {__version__}\n")
        return 0
    # Imported modules stay in memory: collecting garbage meanwhile would cost a tenth of the start.
    # The command line enables the collector again.
    gc.disable()
    # pydantic looks for plugins in the metadata of every installed package; this program has none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from obsidian_agent.cli.main import main as run

    code = run(sys.argv[1:])

    import contextlib

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    # Python's own end collects garbage, runs the exit handlers of a model's library and stops
    # background threads at any instruction. One that was importing may hold the import lock, for
    # which the library's destructors wait for ever. Nothing of ours is left to be written.
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
