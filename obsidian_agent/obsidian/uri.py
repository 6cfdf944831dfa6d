"""Showing a file by an `obsidian://` address, which the desktop hands to Obsidian. Nothing comes back.

Source: Obsidian help, "Obsidian URI".
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from urllib.parse import quote


def open_address(place: str, *, new_pane: bool = False) -> str:
    """The address that shows the file at `place` (absolute)."""
    return f"obsidian://open?path={quote(place, safe='')}{'&paneType=split' if new_pane else ''}"


def opener() -> str | None:
    """The program of the desktop that opens addresses ("" on Windows, where the system does); None without a desktop."""
    if sys.platform == "win32":
        return ""
    name = "open" if sys.platform == "darwin" else "xdg-open" if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") else ""
    return shutil.which(name) if name else None


def open_by_uri(place: str, *, new_pane: bool = False) -> bool:
    """Ask the desktop to show the file at `place` (absolute) in Obsidian. False where there is no desktop to ask. Does not wait."""
    address, program = open_address(place, new_pane=new_pane), opener()
    if program is None:
        return False
    if sys.platform == "win32":
        os.startfile(address)
        return True
    subprocess.Popen(
        [program, address], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    return True
