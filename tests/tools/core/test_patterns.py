from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.patterns import TimedPattern, compile_pattern, expand


def spans(source: str, text: str) -> list[tuple[int, int]]:
    return [
        (found.start(), found.end())
        for found in compile_pattern(source, literal=False, case_sensitive=True).finditer(text)
    ]


def python_spans(source: str, text: str) -> list[tuple[int, int]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return [found.span() for found in re.finditer(source, text, re.MULTILINE)]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("^a*", "aab\nb\n"),
        ("x*", "abxd"),
        (r"a$", "a\na"),
        ("(?:foo){e<=1}", "fo foo{e<=1}"),
        ("a{i}", "ab a{i}"),
        ("{{date}}", "on {{date}}"),
        (r"\{\{(.+?)\}\}", "{{a}} {{b}}"),
        ("a{2}b{1,}c{,2}", "aabbcc"),
        ("a{,}", "aaa"),
        ("[[:alpha:]]", "a: a] :]"),
        ("[[a]]", "[a] a]"),
        ("[]a]+", "]a]"),
        ("[^]a]+", "b]a"),
        (r"[\]{e}]+", "]{e}"),
        (r"[a&&b]", "a&b"),
        (r"\N{BULLET} {e}", "• {e}"),
        (r"(?i)ÉTÉ", "été"),
        (r"(?P<x>a)(?P=x)", "aa"),
        (r"\Aa|b\Z", "a\nb"),
        (r"(?<=\[)[^\]]+", "[[x]]"),
        ("(?>a+)b", "aab"),
        (r"\[\[([^\]|#]+)(?:#[^\]|]*)?(?:\|[^\]]*)?\]\]", "[[a]] [[b#c|d]]"),
    ],
)
def test_patterns_mean_what_they_mean_in_python(source, text):
    assert spans(source, text) == python_spans(source, text)


@settings(deadline=None, max_examples=400)
@given(
    source=st.text("ab[]{}()^$|*+?.\\,e1<=:-&", max_size=9),
    text=st.text("ab[]{e}1:&-\n", max_size=9),
)
def test_any_pattern_is_refused_or_means_what_it_means_in_python(source, text):
    try:
        expected = python_spans(source, text)
    except (re.error, RecursionError):
        with pytest.raises(ToolError):
            compile_pattern(source, literal=False, case_sensitive=True)
        return
    assert spans(source, text) == expected


@pytest.mark.parametrize("source", ["(", "*a", r"\p{L}", "(?R)", "a**", "(?<n>x)", "[z-a]"])
def test_what_python_refuses_is_refused(source):
    with pytest.raises(ToolError) as caught:
        compile_pattern(source, literal=False, case_sensitive=True)
    assert caught.value.code == "ARGUMENT_INVALID"


def test_a_pattern_that_would_never_end_is_stopped():
    pattern = compile_pattern("(a|aa)+$", literal=False, case_sensitive=True)
    pattern.seconds_left = 0.2
    with pytest.raises(ToolError) as caught:
        pattern.search("a" * 90 + "!")
    assert caught.value.code == "ARGUMENT_INVALID"
    assert pattern.seconds_left < 0.01


def test_literal_text_is_no_pattern():
    pattern = compile_pattern("a.c (x", literal=True, case_sensitive=False)
    assert isinstance(pattern, TimedPattern)
    assert pattern.search("abc (x") is None
    assert pattern.search("__A.C (X") is not None


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("$1-$2", "a-"),
        ("$$1", "$1"),
        ("$0$0", "abab"),
        (r"\1 $ $x", r"\1 $ $x"),
        ("$10", "a0"),
        ("€$1", "€a"),
        ("$$$1", "$a"),
    ],
)
def test_expand(template, expected):
    pattern = compile_pattern("(a)b(c)?", literal=False, case_sensitive=True)
    found = pattern.search("ab")
    assert found is not None
    assert expand(template, found, pattern.groups) == expected


def test_a_group_that_is_not_there_is_an_error():
    pattern = compile_pattern("(a)", literal=False, case_sensitive=True)
    found = pattern.search("a")
    assert found is not None
    with pytest.raises(ToolError):
        expand("$2", found, pattern.groups)
