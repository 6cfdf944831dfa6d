"""JSON documents whose values know their positions, compared with the standard library."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.vault.markdown.json_document import JsonDocumentError, JsonValue, parse

_TEXTS = st.text(st.sampled_from('ab"\\\n\t/é日😀[]|#`\u2028 '), max_size=12)

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=10,
)


@given(_VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_every_value_of_a_document_has_its_position(
    value: Any, ascii_only: bool, indent: Any
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    def check(node: JsonValue, expected: Any) -> None:
        assert json.loads(text[node.start : node.end]) == expected
        if isinstance(expected, dict):
            for key, member in expected.items():
                check(node.value[key], member)
        elif isinstance(expected, list):
            for item, member in zip(node.value, expected, strict=True):
                check(item, member)
        elif isinstance(expected, str):
            assert node.value == expected

    check(parse(text), value)


@given(st.text(st.sampled_from('{}[],:"a1-. \\'), max_size=12))
def test_what_json_refuses_is_refused(text: str) -> None:
    try:
        json.loads(text)
    except ValueError:
        with pytest.raises(JsonDocumentError):
            parse(text)
    else:
        parse(text)
