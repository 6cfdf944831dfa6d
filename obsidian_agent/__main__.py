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

    try:
        code = run(sys.argv[1:])
    finally:
        # At exit Python collects garbage several times, which takes seconds once a model's library
        # is loaded, for memory that is freed anyway.
        gc.freeze()

    import contextlib
    import threading

    if threading.active_count() > 1:
        # At exit Python stops background threads at any instruction. One that was importing may
        # hold the import lock, for which a model's library waits: its destructors import.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
