"""Settings: their defaults, where values come from, and changing them."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from obsidian_agent.config.layers import load_settings
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.config.settings import Settings
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
    "allow_commands": False,
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
    settings = load_settings(
        file, {"OBSIDIAN_AGENT_MODEL": "ollama/qwen3", "OBSIDIAN_AGENT_SHARE_ALLOW": "A; B/**"}
    )
    assert (settings.model, settings.share_allow) == ("ollama/qwen3", ("A", "B/**"))
    live = LiveSettings.load(file, {"OBSIDIAN_AGENT_MODEL": "ollama/qwen3"})
    rows = {row.name: row for row in live.rows()}
    assert [rows[name].source for name in ("model", "share_allow", "temperature")] == [
        "environment",
        "file",
        "default",
    ]
    assert rows["temperature"].kind == "number"
    assert rows["streaming"].kind == "switch"
    assert (rows["context_fusion"].kind, rows["context_fusion"].choices) == (
        "choice",
        ("plain", "structured"),
    )
    assert rows["share_allow"].kind == "list"
    assert all(row.title and row.description and row.group for row in rows.values())


VAULTS = """
theme = "dark"
level = "scoped-write"  # everywhere else

[vaults."{here}"]
level = "read-only" # here

[vaults."/somewhere/else"]
nonsense = 5
"""


def test_a_vault_can_have_settings_of_its_own(tmp_path: Path) -> None:
    path, vault = tmp_path / "c.toml", (tmp_path / "Notes").resolve()
    vault.mkdir()
    (tmp_path / "link").symlink_to(vault)
    text = VAULTS.replace("{here}", str(tmp_path / "link"))
    path.write_text(text, encoding="utf-8")
    assert load_settings(path, {}).level == "scoped-write"
    live = LiveSettings.load(path, {}, vault=vault)
    assert (live.current.level, live.current.theme) == ("read-only", "dark")
    assert {row.name: row.source for row in live.rows() if row.source != "default"} == {
        "theme": "file",
        "level": "vault",
    }
    live.set("level", "full-write")
    live.set("theme", "light")
    assert path.read_text("utf-8") == text.replace('"read-only"', '"full-write"').replace(
        '"dark"', '"light"'
    )
    live.change({"model": "ollama/x"}, for_vault=True)
    assert (live.current.model, load_settings(path, {}).model) == ("ollama/x", None)
    live.set("level", None)
    assert (live.current.level, load_settings(path, {}).level) == ("scoped-write", "scoped-write")
    fresh = LiveSettings.load(tmp_path / "new.toml", {}, vault=vault)
    fresh.change({"level": "read-only"}, for_vault=True)
    assert tomllib.loads((tmp_path / "new.toml").read_text("utf-8")) == {
        "vaults": {str(vault): {"level": "read-only"}}
    }
    for damaged in ("vaults = 1", "[vaults]\nx = 1", f"[vaults.'{vault}']\nlevel = 'all'"):
        path.write_text(damaged, encoding="utf-8")
        with pytest.raises(ConfigError):
            LiveSettings.load(path, {}, vault=vault)


def test_options_are_stronger_and_an_address_goes_with_its_model(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(
        "model = 'custom/a'\nbase_url = 'http://127.0.0.1:1/v1'\nshare_allow = ['A']\n",
        encoding="utf-8",
    )
    live = LiveSettings.load(path, {}, options={"model": "openai/x", "share_allow": ("B",)})
    assert (live.model, live.current.base_url, live.current.share_allow) == (
        "openai/x",
        None,
        ("A", "B"),
    )
    assert {row.name for row in live.rows() if row.source == "option"} == {"model", "share_allow"}
    live.set("model", "ollama/y")
    assert (live.model, load_settings(path, {}).model) == ("openai/x", "ollama/y")
    assert (
        LiveSettings.load(path, {"OBSIDIAN_AGENT_MODEL": "ollama/z"}).current.base_url
        == "http://127.0.0.1:1/v1"
    )


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("enableLangSmith = true", "tracing"),
        ("langsmithEnabled = true", "tracing"),
        ("maxTokens = 5", "max_tokens"),
    ],
)
def test_old_names_mean_ours(line: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(line, encoding="utf-8")
    assert getattr(load_settings(path, {}), name)
    live = LiveSettings.load(path, {})
    live.set("theme", "dark")
    assert getattr(load_settings(path, {}), name)


def test_a_setting_that_is_gone_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("confirm_commands = false\ntheme = 'dark'\n", encoding="utf-8")
    live = LiveSettings.load(path, {})
    live.set("allow_deletes", True)
    assert (load_settings(path, {}).theme, load_settings(path, {}).allow_deletes) == ("dark", True)


def test_a_change_keeps_everything_else_in_the_file(file: Path) -> None:
    live = LiveSettings.load(file, {})
    live.set("temperature", "0.5")
    live.set("model", "anthropic/claude")
    live.set("share_allow", "One; Größe/**")
    live.set("streaming", "off")
    text = file.read_text(encoding="utf-8")
    assert text.startswith('# My settings\nmodel = "anthropic/claude"  # the good one\n')
    assert '[keymap]\nsend = "ctrl+enter"\n' in text
    again = load_settings(file, {})
    assert again == live.current
    assert (again.temperature, again.streaming, again.share_allow) == (
        0.5,
        False,
        ("One", "Größe/**"),
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in file.parent.iterdir()] == ["config.toml"]


def test_back_to_the_default(file: Path) -> None:
    live = LiveSettings.load(file, {})
    live.set("share_allow", None)
    live.set("keymap", None)
    assert (
        file.read_text(encoding="utf-8")
        == '# My settings\nmodel = "openai/gpt-5"  # the good one\n\n'
    )
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
    assert (
        load_settings(tmp_path / "new" / "config.toml", {}).system_message
        == 'Say "hi"\nin two lines'
    )
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


MULTILINE = '''\
# What every conversation is told
system_message = """
Write it so:
allow_deletes = true
[keymap]
theme = "dark"
"""
allow_deletes = true  # for the move only
'''


def test_a_line_of_a_long_text_is_no_key(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(MULTILINE, encoding="utf-8")
    live = LiveSettings.load(path, {})
    before = live.current.system_message
    live.set("allow_deletes", "off")
    assert path.read_text("utf-8") == MULTILINE.replace("true  # for", "false  # for")
    live.set("allow_deletes", None)
    live.set("theme", "light")
    again = load_settings(path, {})
    assert (again.system_message, again.allow_deletes, again.theme) == (before, False, "light")


@pytest.mark.parametrize(
    "line",
    [
        "allowDeletes = true",
        "allow_deletes = true\nallowDeletes = true",
        '"allow_deletes"=true',
        "'allow_deletes' = true",
    ],
)
def test_what_is_unset_does_not_come_back(line: str, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(f"# mine\n{line}\ntheme = 'dark'\n", encoding="utf-8")
    live = LiveSettings.load(path, {})
    live.set("allow_deletes", None)
    assert (live.current.allow_deletes, load_settings(path, {}).allow_deletes) == (False, False)
    assert path.read_text("utf-8") == "# mine\ntheme = 'dark'\n"


def test_comments_and_order_stay_inside_of_what_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    text = "share_allow = [\n  'A', # work\n  'B', # home\n]\r\n\r\n# keys\r\n[keymap]\r\nsend = 'f2' # as at work\r\nquit = 'f9'\r\n"
    path.write_bytes(text.encode())
    live = LiveSettings.load(path, {})
    live.set("keymap", {"send": "f2", "quit": "f10"})
    assert path.read_bytes() == text.replace("'f9'", '"f10"').encode()
    live.set("share_allow", "A; B; C")
    assert load_settings(path, {}).share_allow == ("A", "B", "C")
    assert b"# work" in path.read_bytes()
    assert b"# home" in path.read_bytes()


@pytest.mark.parametrize(
    "content",
    [b"model = [", b"theme = 'x'\ntheme = 'y'", b"\xff\xfe", b"temperature = 7", b"nonsense = 1"],
)
def test_a_damaged_file_is_never_overwritten(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("theme = 'dark'\n", encoding="utf-8")
    live = LiveSettings.load(path, {})
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        live.set("model", "openai/x")
    assert (path.read_bytes(), live.current.model) == (content, None)
    assert "model is not valid" not in caught.value.message, "the other line is what is wrong"


_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
_LINES = st.one_of(
    st.just("# a comment\n"),
    st.just("\n"),
    st.sampled_from(
        [
            "temperature = 0.5 # t\n",
            "allow_deletes = true\n",
            "streaming = false\n",
            "share_allow = ['A',\n 'B']\n",
            "max_tokens = 5\n",
        ]
    ),
    st.sampled_from(
        [
            'system_message = """\nallow_deletes = true\n[keymap]\n"""\n',
            "theme = '''\nstreaming = true'''\n",
            "model = 'a/b' # model = 'c'\n",
        ]
    ),
    st.just("maxTokens = 9\n"),
)
_TABLES = st.sampled_from(["", "[keymap]\nsend = 'f2'\n# c\nquit = 'f3'\n", "\n# keys\n[keymap]\n"])
_CHANGES = st.one_of(
    st.tuples(st.just("allow_deletes"), st.booleans() | st.none()),
    st.tuples(st.just("system_message"), _TEXTS | st.none()),
    st.tuples(st.just("share_allow"), st.lists(_TEXTS, max_size=3) | st.none()),
    st.tuples(st.just("keymap"), st.dictionaries(_TEXTS, _TEXTS, max_size=2) | st.none()),
    st.tuples(st.just("max_tokens"), st.integers(1, 99) | st.none()),
    st.tuples(st.just("temperature"), st.floats(0, 1) | st.none()),
)


@given(
    st.lists(_LINES, max_size=6, unique=True),
    st.booleans(),
    _TABLES,
    st.lists(_CHANGES, min_size=1, max_size=4),
)
@example([], True, "", [("keymap", {"": "", "0": ""}), ("keymap", {})])
def test_a_change_changes_one_setting_whatever_the_file_looks_like(
    lines: list[str], early: bool, table: str, changes: list[tuple[str, Any]]
) -> None:
    text = "".join(lines) + ("keymap.send = 'f7'\n" if early and not table else table)
    with TemporaryDirectory() as place:
        path = Path(place) / "c.toml"
        path.write_text(text, encoding="utf-8", newline="")
        live = LiveSettings.load(path, {})
        for name, value in changes:
            before = live.current.model_dump()
            comments = re.findall(r"^#.*", path.read_text("utf-8"), re.MULTILINE)
            after = live.set(name, value)
            assert after == load_settings(path, {})
            assert {key: each for key, each in after.model_dump().items() if key != name} == {
                key: each for key, each in before.items() if key != name
            }
            assert value is not None or getattr(after, name) == getattr(Settings(), name)
            if name != "keymap":
                assert re.findall(r"^#.*", path.read_text("utf-8"), re.MULTILINE) == comments


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


def test_the_rows_of_all_settings_cost_one_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas: list[dict[str, Any]] = []
    make = Settings.model_json_schema

    def counted() -> dict[str, Any]:
        schemas.append(make())
        return schemas[-1]

    monkeypatch.setattr(Settings, "model_json_schema", counted)
    assert [row.name for row in LiveSettings().rows()] == list(Settings.model_fields)
    assert len(schemas) == 1
