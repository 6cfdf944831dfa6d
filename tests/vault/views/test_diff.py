"""Unified diffs: exact for every pair of texts, in the format of `diff -u`."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_agent.vault.views.diff import DIFFLIB_LIMIT, unified_diff


def apply(old: bytes, diff: str, folder: Path) -> bytes:
    """Return the result of `patch` on a file."""
    file = folder / "note"
    file.write_bytes(old)
    done = subprocess.run(
        ["patch", "--binary", "-s", str(file)],
        input=diff.encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return file.read_bytes() if file.exists() else b""


def test_a_new_file_is_all_plus() -> None:
    assert (
        unified_diff(None, b"a\nb\n", "x.md", "x.md")
        == "--- /dev/null\n+++ x.md\n@@ -0,0 +1,2 @@\n+a\n+b\n"
    )


def test_a_missing_final_newline_is_told() -> None:
    expected = "--- x\n+++ x\n@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n"
    assert unified_diff(b"a", b"a\nb\n", "x", "x") == expected


def test_equal_and_binary_contents_have_no_diff() -> None:
    assert unified_diff(b"a\n", b"a\n", "x", "x") == ""
    assert unified_diff(b"\xff\xfe", b"a\n", "x", "x") == ""


def test_a_carriage_return_is_part_of_its_line() -> None:
    assert "-a\r\n+a\n" in unified_diff(b"a\r\nb\n", b"a\nb\n", "x", "x")


def test_changes_far_apart_are_two_hunks() -> None:
    old = [f"{n}\n" for n in range(40)]
    new = ["x\n", *old[1:39], "y\n"]
    assert unified_diff("".join(old).encode(), "".join(new).encode(), "x", "x").count("@@ -") == 2


def test_huge_changes_are_shown_whole() -> None:
    old = "".join(f"a{n}\n" for n in range(DIFFLIB_LIMIT + 1)).encode()
    new = "".join(f"b{n}\n" for n in range(DIFFLIB_LIMIT + 1)).encode()
    diff = unified_diff(old, new, "x", "x")
    assert diff.count("\n-a") == diff.count("\n+b") == DIFFLIB_LIMIT + 1


def test_changes_among_many_equal_lines_are_shown_whole() -> None:
    old, new = b"a\n" * DIFFLIB_LIMIT, b"b\n" + b"a\nb\n" * (DIFFLIB_LIMIT // 2 - 1)
    started = time.process_time()
    diff = unified_diff(old, new, "a.md", "a.md")
    assert time.process_time() - started < 30, "difflib alone takes many minutes"
    assert diff.count("\n-a") == DIFFLIB_LIMIT


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "same"]), max_size=30).map(
    lambda lines: "\n".join(lines).encode()
)


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
@settings(max_examples=150, deadline=None)
@given(old=LINES, new=LINES)
def test_patch_turns_the_old_text_into_the_new_one(
    tmp_path_factory: pytest.TempPathFactory, old: bytes, new: bytes
) -> None:
    diff = unified_diff(old, new, "note", "note")
    if old == new:
        assert diff == ""
    elif old and new:
        assert apply(old, diff, tmp_path_factory.mktemp("patch")) == new
