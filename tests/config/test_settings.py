"""Settings: their defaults, where values come from, and changing them."""

from __future__ import annotations

import stat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from obsidian_agent.config.live import LiveSettings
from obsidian_agent.config.settings import Settings, load_settings
from obsidian_agent.errors import ConfigError

FILE = """\
# My settings
model = "openai/gpt-5"  # the good one
share_allow = [
  "Projects/**",
  "Daily",
]

[keymap]
send = "ctrl+enter"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config" / "config.toml"
    path.parent.mkdir()
    path.write_text(FILE, encoding="utf-8")
    return path


DEFAULTS = {
    "temperature": 0.2,
    "streaming": True,
    "confirm_writes": True,
    "confirm_commands": True,
    "allow_commands": True,
    "allow_deletes": False,
    "auto_approve_read_only": False,
    "share_local": False,
    "auto_title": False,
    "tracing": False,
    "requests_per_minute": 10,
    "max_tokens": None,
    "model": None,
    "spending_cap": None,
    "system_message": "",
    "insert_at_cursor": False,
    "prompt": "auto",
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name: str) -> None:
    assert getattr(Settings(), name) == DEFAULTS[name]


def test_the_environment_is_stronger_than_the_file(file: Path) -> None:
    settings = load_settings(file, {"OBSIDIAN_AGENT_MODEL": "ollama/qwen3", "OBSIDIAN_AGENT_SHARE_ALLOW": "A; B/**"})
    assert (settings.model, settings.share_allow) == ("ollama/qwen3", ("A", "B/**"))
    live = LiveSettings.load(file, {"OBSIDIAN_AGENT_MODEL": "ollama/qwen3"})
    rows = {row.name: row for row in live.rows()}
    assert [rows[name].source for name in ("model", "share_allow", "temperature")] == ["environment", "file", "default"]
    assert rows["temperature"].kind == "number"
    assert rows["streaming"].kind == "switch"
    assert (rows["context_fusion"].kind, rows["context_fusion"].choices) == ("choice", ("plain", "structured"))
    assert rows["share_allow"].kind == "list"
    assert all(row.title and row.description and row.group for row in rows.values())


@pytest.mark.parametrize(
    ("line", "name"), [("enableLangSmith = true", "tracing"), ("langsmithEnabled = true", "tracing"), ("maxTokens = 5", "max_tokens")]
)
def test_old_names_mean_ours(line: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(line, encoding="utf-8")
    assert getattr(load_settings(path, {}), name)
    live = LiveSettings.load(path, {})
    live.set("theme", "dark")
    assert getattr(load_settings(path, {}), name)


def test_a_change_keeps_everything_else_in_the_file(file: Path) -> None:
    live = LiveSettings.load(file, {})
    live.set("temperature", "0.5")
    live.set("model", "anthropic/claude")
    live.set("share_allow", "One; Größe/**")
    live.set("streaming", "off")
    text = file.read_text(encoding="utf-8")
    assert text.startswith('# My settings\nmodel = "anthropic/claude"\n')
    assert '[keymap]\nsend = "ctrl+enter"\n' in text
    again = load_settings(file, {})
    assert again == live.current
    assert (again.temperature, again.streaming, again.share_allow) == (0.5, False, ("One", "Größe/**"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in file.parent.iterdir()] == ["config.toml"]


def test_back_to_the_default(file: Path) -> None:
    live = LiveSettings.load(file, {})
    live.set("share_allow", None)
    live.set("keymap", None)
    assert file.read_text(encoding="utf-8") == '# My settings\nmodel = "openai/gpt-5"  # the good one\n\n'
    live.set("keymap", {"quit": "f10"})
    assert load_settings(file, {}).keymap == {"quit": "f10"}
    live.set("max_tokens", "")
    assert live.current.max_tokens is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 1.5),
        ("temperature", "hot"),
        ("nonsense", 1),
        ("streaming", "maybe"),
        ("base_url", "ftp://x"),
        ("context_fusion", "soup"),
    ],
)
def test_a_bad_value_changes_nothing(name: str, value: Any, file: Path) -> None:
    live = LiveSettings.load(file, {})
    with pytest.raises(ConfigError):
        live.set(name, value)
    assert file.read_text(encoding="utf-8") == FILE
    assert live.current.temperature == 0.2


def test_a_file_that_does_not_exist_is_made(tmp_path: Path) -> None:
    live = LiveSettings.load(tmp_path / "new" / "config.toml", {})
    live.set("system_message", 'Say "hi"\nin two lines')
    assert load_settings(tmp_path / "new" / "config.toml", {}).system_message == 'Say "hi"\nin two lines'
    LiveSettings().set("theme", "dark")


def test_what_is_no_settings_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("model = [", encoding="utf-8")
    with pytest.raises(ConfigError):
        LiveSettings.load(path, {})
    path.write_text('api_key = "sk-secret-secret"', encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_settings(path, {})
    assert "sk-secret" not in caught.value.problem().message


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
@example("a\x7fb")
@example("a\u2028b\u0085c")
def test_any_text_can_be_a_setting_and_comes_back(text: str) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, "config.toml")
        settings = LiveSettings.load(file)
        settings.set("system_message", text)
        settings.set("auto_title", "on")
        assert load_settings(file, {}).system_message == text
        settings.set("system_message", "other")
        assert load_settings(file, {}).system_message == "other"
