"""config from the command line."""

from __future__ import annotations

import io
import json
import tomllib
from pathlib import Path

import pytest

from cli.conftest import MakeCommands
from obsidian_agent.cli.main import main


def test_settings_are_listed_changed_and_reset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.toml"
    file.write_text("# mine\nmax_tokens = 100\n")

    def config(*words: str) -> tuple[int, dict[str, object]]:
        code = main(["config", "--json", *words, "--config", str(file)])
        document = json.loads(capsys.readouterr().out)
        return code, {
            name: (row["value"], row["source"])
            for name, row in document.get("settings", {}).items()
        }

    assert config()[1]["max_tokens"] == (100, "file")
    assert config("set", "temperature", "0.5") == (0, {"temperature": (0.5, "file")})
    assert file.read_text() == "# mine\nmax_tokens = 100\ntemperature = 0.5\n"
    assert config("unset", "max_tokens") == (0, {"max_tokens": (None, "default")})
    assert config("get", "temperature") == (0, {"temperature": (0.5, "file")})
    assert config("set", "temperature", "hot")[0] == 2
    assert config("set", "no_such", "1")[0] == 2
    assert file.read_text() == "# mine\ntemperature = 0.5\n"
    main(["config", "--config", str(file)])
    assert "streaming = on  (default)" in capsys.readouterr().out
    assert main(["config", "get", "temperature", "--config", str(file)]) == 0
    assert capsys.readouterr().out == "0.5\n"
    assert main(["config", "get", "temprature", "--config", str(file)]) == 2
    assert "Did you mean 'temperature'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("model", "gpt-5", "PROVIDER/NAME"),
        ("model", "openai/", "PROVIDER/NAME"),
        ("model", "opneai/gpt-5", "Did you mean 'openai'?"),
        ("theme", "drak", "Did you mean 'dark'?"),
        ("share_allow", "../x", "../x"),
        ("keymap", '{"no.such": "f3"}', "no.such"),
        ("base_url", "ftp://x", "https://"),
        ("streaming", "maybe", "streaming"),
        ("planning", "soon", "'auto', 'menu' or 'plan'"),
    ],
)
def test_an_invalid_value_is_refused(
    commands: MakeCommands, name: str, value: str, message: str
) -> None:
    env = commands({})
    code, document = env.json("config", "set", name, value)
    assert (code, document["errors"][0]["code"] in ("ARGUMENT_INVALID", "CONFIG_INVALID")) == (
        2,
        True,
    )
    assert message in document["message"]
    assert not env.config.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", "openai/gpt-5"),
        ("model", "none"),
        ("model", "custom/a/b"),
        ("theme", "light"),
        ("theme", "nord"),
        ("share_allow", "A/**; b.md"),
    ],
)
def test_a_valid_value_is_stored(commands: MakeCommands, name: str, value: str) -> None:
    env = commands({})
    assert env.say("config", "set", name, value).code == 0
    assert env.say("config", "get", name).out == f"{value}\n"


@pytest.fixture
def key_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys in the environment, and no keyring that is real."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


SECRET = "sk-0123456789abcdef"


def test_tables_are_printed_as_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[services]\n"custom:lab" = "http://127.0.0.1:1/v1"\n[mcp_servers.time]\ncommand = "uvx"\nargs = ["time"]\n'
    )
    for name in ("services", "mcp_servers"):
        assert main(["config", "get", name, "--config", str(file)]) == 0
        output = capsys.readouterr().out
        assert tomllib.loads(f"{name} = {output}") == {name: tomllib.loads(file.read_text())[name]}
    assert main(["config", "--json", "--config", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["mcp_servers"]["value"] == {
        "time": {"command": "uvx", "args": ["time"]}
    }


@pytest.mark.usefixtures("key_file")
def test_a_key_is_saved_from_standard_input_listed_by_source_and_forgotten(
    commands: MakeCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = commands({})
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SECRET}\n"))
    result = env.say("key", "save", "openai")
    file = env.folder / "keys.toml"
    assert (result.code, SECRET in file.read_text(), file.stat().st_mode & 0o777) == (
        0,
        True,
        0o600,
    )
    code, document = env.json("key", "list")
    sources = {row["service"]: row["source"] for row in document["keys"]}
    assert (code, sources["openai"], sources["anthropic"]) == (0, "file", None)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    listed = env.say("key", "list")
    forgotten = env.json("key", "forget", "openai")
    assert forgotten == (0, {"service": "openai", "source": "environment"})
    assert SECRET not in file.read_text()
    for text in (*result[1:], str(document), *listed[1:], str(forgotten)):
        assert SECRET not in text


@pytest.mark.usefixtures("key_file")
@pytest.mark.parametrize(("arguments", "typed", "message"), [
    (["save", "opneai"], "x\n", "Did you mean 'openai'?"),
    (["save", "openai"], "\n", "This is not a key."),
    (["save", "openai", SECRET], "", "not accepted on the command line"),
])  # fmt: skip
def test_a_key_comes_from_nowhere_else(
    commands: MakeCommands,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    typed: str,
    message: str,
) -> None:
    env = commands({})
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    result = env.say("key", *arguments)
    assert (result.code, message in result.err) == (2, True)
    assert SECRET not in result.err
    assert not (env.folder / "keys.toml").exists()
