"""Input of any size: it is refused, or read in part, in bounded time and memory."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support import MakeVault

Run = Callable[..., "subprocess.CompletedProcess[str]"]
MEMORY = 1_500_000_000
"""Bytes of address space; a plan file may have 64 MB, and is read as bytes, text and values."""


@pytest.fixture
def run(make_vault: MakeVault, tmp_path: Path) -> Run:
    vault = make_vault({"Inbox.md": "one\n", "Projects/Plan.md": "two\n"}).real_path

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
        place = ["--vault", vault, "--state-dir", str(tmp_path / "s")]
        return subprocess.run(
            [sys.executable, "-m", "obsidian_agent", *words, "--json", *place],
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=limited,
            **options,  # type: ignore[call-overload]
        )

    return run


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
    run: Run, endless: Path, words: list[str], source: str
) -> None:
    name = str(endless) if source == "file" else source
    if source == "-" and "import" in words:
        pytest.skip("macros are imported from files")
    with open("/dev/zero", "rb") as stdin:
        done = run(*words, name, stdin=stdin)
    assert done.returncode == 2, done.stderr
    assert "larger than" in done.stdout


LARGE = {
    "word": "a" * 100_000,
    "accents": "é" * 50_000,
    "characters without blanks": "标" * 30_000,
    "quoted pieces": "append " + " ".join(f'"q{number}"' for number in range(12_000)),
    "empty quotes": '""' * 4_990,
    "quotes that stay open": "„" * 9_990,
    "apostrophes": "a'a" * 3_300,
    "tags": "tag notes " + " ".join(f"#t{number}" for number in range(330)),
    "many tags": "tag " + "#t " * 30_000,
    "the word of an example": "rename " + "to " * 600,
    "two words of an example": "replace x with y " + "in z with w " * 150,
    "days": "tomorrow " * 220,
    "mentions": "@Inbox " * 12_000,
    "names": "Inbox Plan " * 170,
    "long text in quotes": "append '" + "x " * 40_000 + "' to Inbox",
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_message_takes_bounded_time_and_memory(run: Run, name: str) -> None:
    started = time.monotonic()
    done = run("do", LARGE[name], "--yes")
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (3, "needs-input")
    assert time.monotonic() - started < 45


def test_a_quoted_text_of_some_pages_is_still_a_value(run: Run) -> None:
    done = run("do", f"append '{'x' * 9_000}' to Inbox", "--yes")
    assert json.loads(done.stdout)["effects"]["modified"] == ["Inbox.md"]


def test_a_message_that_is_too_long_to_be_compared_is_never_certain(run: Run) -> None:
    """The end of it may say the opposite."""
    done = run("do", f"append 'x' to Inbox{' ' * 3_000}but do not write anything", "--yes")
    document = json.loads(done.stdout)
    assert (done.returncode, document["outcome"]) == (3, "needs-input")
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
    deadline = time.monotonic() + 30
    while len(os.listdir(threads)) == 1 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=45)
    assert (process.returncode, b"Interrupted" in error) == (130, True)
