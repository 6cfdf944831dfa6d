"""config from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from obsidian_agent.cli.main import main


def test_settings_are_told_changed_and_put_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.toml"
    file.write_text("# mine\nmax_tokens = 100\n")

    def config(*words: str) -> tuple[int, dict[str, object]]:
        code = main(["config", "--json", *words, "--config", str(file)])
        document = json.loads(capsys.readouterr().out)
        return code, {name: (each["value"], each["source"]) for name, each in document.get("settings", {}).items()}

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
