from __future__ import annotations

from obsidian_agent.tui.screens.unexpected import redacted, report


def test_paths_quotes_and_keys_are_left_out() -> None:
    text = redacted("cannot read /home/me/Vault/Diary.md or C:\\Users\\me\\x with 'secret words' and sk-abcdefgh12 Bearer abc.def")
    for part in ("home", "Diary", "Users", "secret words", "sk-abc", "abc.def"):
        assert part not in text


def test_the_report_names_the_places_in_the_code_and_the_cause() -> None:
    try:
        try:
            raise ValueError("inner 'text'")
        except ValueError as inner:
            raise RuntimeError("outer") from inner
    except RuntimeError as error:
        text = report(error)
    assert "builtins.RuntimeError: outer" in text
    assert "builtins.ValueError: inner <text>" in text
    assert "test_unexpected.py" in text
    assert str(__file__).rpartition("/")[0] not in text
