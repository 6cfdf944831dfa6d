"""Opening a file in the program that the person's desktop has for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from urllib.parse import quote


def in_obsidian(place: str) -> bool:
    """Ask the desktop to show the file at `place` (absolute) in Obsidian. False where there is no desktop to ask. Does not wait."""
    address = f"obsidian://open?path={quote(place, safe='')}"
    if sys.platform == "win32":
        os.startfile(address)
        return True
    opener = "open" if sys.platform == "darwin" else "xdg-open" if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") else ""
    program = shutil.which(opener) if opener else None
    if program is None:
        return False
    subprocess.Popen(
        [program, address], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    return True
