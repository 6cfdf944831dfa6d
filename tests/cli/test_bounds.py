"""Input of any size: it is refused, or read in part, in bounded time and memory."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Commands, MakeCommands
from support import MakeVault

MEMORY = 1_300_000_000
"""Bytes that a command may use; a plan file has up to 64 MB, as bytes, text and values."""


@pytest.fixture
def limited(commands: MakeCommands) -> Iterator[Commands]:
    """Run commands that fail beyond `MEMORY`, where the system tells how much is in use."""
    used, limits = Path("/proc/self/statm"), resource.getrlimit(resource.RLIMIT_AS)
    if used.exists():
        pages = int(used.read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    yield commands({"Inbox.md": "one\n", "Projects/Plan.md": "two\n"})
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """Create a sparse file of 20 GB."""
    file = tmp_path / "endless"
    with open(file, "wb") as stream:
        stream.truncate(20 * 2**30)
    return file


@pytest.mark.parametrize(
    "words",
    [
        ["preview"],
        ["run", "--yes"],
        ["plan", "--parse"],
        ["do", "append selection to Inbox", "--selection-file"],
        ["plan", "append selection to Inbox", "--selection-file"],
        ["preview", "none.json", "--selection-file"],
        ["macro", "import"],
    ],
)
@pytest.mark.parametrize("source", ["file", "/dev/zero", "-"])
def test_a_file_or_stream_without_end_is_refused(
    limited: Commands,
    endless: Path,
    words: list[str],
    source: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = str(endless) if source == "file" else source
    if source == "-" and "import" in words:
        pytest.skip("macros are imported from files")
    with open("/dev/zero") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        code, document = limited.json(*words, name)
    assert code == 2, document
    assert "larger than" in json.dumps(document)


LARGE = {
    "word": "a" * 100_000,
    "accents": "é" * 50_000,
    "characters without blanks": "标" * 1_000,
    "quoted pieces": "append " + " ".join(f'"q{number}"' for number in range(12_000)),
    "empty quotes": '""' * 2_500,
    "quotes that stay open": "„" * 9_990,
    "apostrophes": "a'a" * 3_300,
    "tags": "tag notes " + " ".join(f"#t{number}" for number in range(330)),
    "many tags": "tag " + "#a-longer-tag " * 7_000,
    "the word of an example": "rename " + "to " * 300,
    "two words of an example": "replace x with y " + "in z with w " * 150,
    "days": "tomorrow " * 220,
    "mentions": "@Inbox " * 12_000,
    "names": "Inbox Plan " * 170,
    "long text in quotes": "append '" + "x " * 40_000 + "' to Inbox",
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_message_takes_bounded_time_and_memory(limited: Commands, name: str) -> None:
    code, document = limited.json("do", LARGE[name], "--yes")
    assert (code, document["outcome"]) == (3, "needs-input")


def test_a_quoted_text_of_some_pages_is_still_a_value(limited: Commands) -> None:
    _, document = limited.json("do", f"append '{'x' * 9_000}' to Inbox", "--yes")
    assert document["effects"]["modified"] == ["Inbox.md"]


def test_a_message_that_is_too_long_to_be_compared_is_never_certain(limited: Commands) -> None:
    """The end of it may say the opposite."""
    text = f"append 'x' to Inbox{' ' * 3_000}but do not write anything"
    code, document = limited.json("do", text, "--yes")
    assert (code, document["outcome"]) == (3, "needs-input")
    assert "too long to compare" in json.dumps(document["candidates"])


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are listed by Linux only")
def test_a_signal_ends_the_reading_of_a_large_message(
    tmp_path: Path, make_vault: MakeVault
) -> None:
    vault = make_vault({"Inbox.md": "one\n"}).real_path
    words = ["do", LARGE["apostrophes"], "--vault", vault, "--state-dir", str(tmp_path / "s")]
    process = subprocess.Popen(
        [sys.executable, "-m", "obsidian_agent", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL),
    )
    threads = Path(f"/proc/{process.pid}/task")
    deadline = time.monotonic() + 60
    while len(os.listdir(threads)) == 1 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, b"Interrupted" in error) == (130, True)
