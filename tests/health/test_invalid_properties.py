"""Properties that YAML cannot read, and repairs that keep every value's meaning."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from obsidian_agent.health.finding import HealthFinding
from obsidian_agent.health.invalid_properties import mend, without_repeated
from obsidian_agent.health.report import examine
from obsidian_agent.health.survey import HealthSettings
from obsidian_agent.vault.frontmatter.properties import read_block
from obsidian_agent.vault.views.disk import DiskView
from support import MakeVault

TEXTS = {
    "Foo: Bar": "Foo: Bar",
    "Foo:": "Foo:",
    "@ada": "@ada",
    "`x`": "`x`",
    "%50": "%50",
    "*important* stuff": "*important* stuff",
    "'It's late'": "It's late",
    '"C:\\Users\\ada\\van"': "C:\\Users\\ada\\van",
    '"\\d+ \\w"': "\\d+ \\w",
    '"Dune" by Frank Herbert': '"Dune" by Frank Herbert',
    '"Dune": a review': '"Dune": a review',
    "[Draft] My plan": "[Draft] My plan",
    "[[Ada]] and [[Bob]]": "[[Ada]] and [[Bob]]",
    "{x} of y": "{x} of y",
    '"He said "no" to me"': 'He said "no" to me',
    "a\tb: c": "a\tb: c",
}
UNCLEAR = (
    "[a, b",
    "[a, b] [c]",
    '"Dune" and "Emma"',
    '"Dune',
    "'tis the season: now",
    "'It''s John's'",
    '"a \\"b\\" \\d"',
    "Foo: Bar # or a comment",
    "> quote",
    "| x",
    "- a: b",
    "&b c: d",
    "{a: b",
)


@pytest.mark.parametrize(
    ("line", "value", "title"),
    [
        (
            "x: [[Ada]], [[Bob|B]]",
            ["[[Ada]]", "[[Bob|B]]"],
            "Quote the values that YAML cannot read",
        ),
        ("x:exam", "exam", "Put a blank behind the colon"),
    ],
)
def test_a_line_whose_meaning_is_clear_is_mended(line: str, value: object, title: str) -> None:
    mended = mend(f"before: 1\n{line}\nafter: [a, b]\n")
    assert mended is not None
    assert read_block(mended.block) == {"before": 1, "x": value, "after": ["a", "b"]}
    assert mended.title == title


@pytest.mark.parametrize("line", ["https://example.org", "10:30", "x:a: b"])
def test_a_colon_without_a_blank_may_belong_to_a_text(line: str) -> None:
    assert mend(f"before: 1\n{line}\nafter: [a, b]\n") is None


@pytest.mark.parametrize("value", TEXTS)
def test_a_value_that_yaml_cannot_read_keeps_its_text(value: str) -> None:
    mended = mend(f"before: 1\nx: {value}\nafter: [a, b]\n")
    assert mended is not None
    assert read_block(mended.block) == {"before": 1, "x": TEXTS[value], "after": ["a", "b"]}
    assert mended.title == "Quote the values that YAML cannot read"


@pytest.mark.parametrize("value", UNCLEAR)
def test_a_value_whose_meaning_is_unclear_is_not_mended(value: str) -> None:
    assert mend(f"before: 1\nx: {value}\n") is None


BLOCKS: dict[str, dict[str, object]] = {
    "tags:\n  - ok\n  - '@ada'\n  - @bob": {"tags": ["ok", "@ada", "@bob"]},
    "a:\n\tb: 1\n\tc: x": {"a": {"b": 1, "c": "x"}},
    "tags:\n\t- a\n\t- b": {"tags": ["a", "b"]},
    "a:\n  b: c: d\nx: |\n  text: y: z\n  more": {"a": {"b": "c: d"}, "x": "text: y: z\nmore"},
    "a: *x* y\nb: R & D": {"a": "*x* y", "b": "R & D"},
    "# about\na: b: c\n\n# about d\nd: 2": {"a": "b: c", "d": 2},
}
UNCLEAR_BLOCKS = (
    "tags:\n- admin\n\t- tools",  # would be the one text "admin - tools"
    "x:\n  - a: b: c",  # a text, or a property of an item
    'x:\n  - "a": b\n  - c: @d',
    "title: x\n  sub: y\nkey value",
    "a: b: c\n  more text",
    "a: &n x\nb: *n\nc: d: e",
    "a: 1\na: b: c",
    "a: b: c\n-",
    "a: b: c\n  d: e",
)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_list_or_a_map_is_mended_line_by_line(block: str, end: str) -> None:
    mended = mend((block + "\n").replace("\n", end))
    assert mended is not None
    assert read_block(mended.block) == {
        key: value + "\n" if isinstance(value, str) and "\n" in value else value
        for key, value in BLOCKS[block].items()
    }


@pytest.mark.parametrize("block", UNCLEAR_BLOCKS)
def test_a_block_whose_meaning_is_unclear_is_not_mended(block: str) -> None:
    assert mend(block + "\n") is None


def test_tabs_are_named_by_the_title() -> None:
    mended = mend("a:\n\tb: 1\n")
    assert mended is not None
    assert mended.title == "Indent with blanks instead of tabs"


READABLE = {
    "n{}: 12": 12,
    "n{}: '007'": "007",
    "n{}: 2026-01-02": "2026-01-02",
    "n{}: [a, 'b: c']": ["a", "b: c"],
    "n{}:\n  - x\n  - y: 1": ["x", {"y": 1}],
    "n{}:\n- x\n- [[Ada]]": ["x", [["Ada"]]],
    "n{}:\n  a: 1\n  b: |\n    t: u: v\n    'w\n  c: 2": {"a": 1, "b": "t: u: v\n'w\n", "c": 2},
    "n{}: >-\n  folded: text\n  @here": "folded: text @here",
    "n{}: 'a\n  b'": "a b",
    "n{}: plain\n  more": "plain more",
    "n{}:": None,
    'n{}: "tab\\tin"': "tab\tin",
    "n{}: true # why": True,
}


@pytest.mark.parametrize("seed", range(200))
def test_what_could_be_read_is_the_same_and_so_is_the_text_of_the_rest(seed: int) -> None:
    """The law of repairs: values that can be read alone and texts that cannot stay equal."""
    generator = random.Random(seed)
    expected: dict[str, object] = {}
    parts: list[str] = []
    for number in range(generator.randint(1, 6)):
        part, value = generator.choice(list(READABLE.items()))
        parts.append(part.format(number))
        expected[f"n{number}"] = value
    for number in range(generator.randint(1, 3)):
        value = generator.choice([*TEXTS, *UNCLEAR] if seed % 2 else [*TEXTS])
        parts.append(f"x{number}: {value}")
        expected[f"x{number}"] = TEXTS.get(value)
    generator.shuffle(parts)
    mended = mend("\n".join(parts) + "\n")
    is_clear = None not in [value for key, value in expected.items() if key.startswith("x")]
    assert (mended is not None) is is_clear
    if mended is not None:
        assert read_block(mended.block) == expected
        kept = [line for line in "\n".join(parts).split("\n") if not line.startswith("x")]
        assert [line for line in mended.block.split("\n")[:-1] if not line.startswith("x")] == kept


REPEATED = {
    "a: 1\nb: 2\na: 1\n": "b: 2\na: 1\n",
    "a:\nb: 2\na: x\n": "b: 2\na: x\n",
    "tags:\n  - x\ntags: [x]\n": "tags: [x]\n",
    "a: 1\na: 2\n": None,
    "a: 1\na:\n": None,
    "a: 1 # why\na: 1\n": None,
    "{a: 1, a: 1}\n": None,
}


@pytest.mark.parametrize("block", REPEATED)
def test_a_repeated_property_is_removed_if_no_value_is_lost(block: str) -> None:
    mended = without_repeated(block)
    assert (mended.block if mended is not None else None) == REPEATED[block]
    assert mended is None or read_block(mended.block) == read_block(block)


def examined(make_vault: MakeVault, files: dict[str, str]) -> list[HealthFinding]:
    settings = HealthSettings(now=datetime(2026, 11, 23, tzinfo=UTC))
    view = DiskView(make_vault(files))
    return list(examine(view, settings, only=["invalid-properties"]).findings)


def test_a_finding_names_the_line_and_repairs_nothing_else(make_vault: MakeVault) -> None:
    text = "\ufeff---\r\na: 1\r\ntitle: 'It's late'\r\n---\r\nText: x: y\r\n"
    (finding,) = examined(make_vault, {"A.md": text})
    assert (finding.line, finding.text) == (3, "“title: 'It's late'” is no valid YAML.")
    assert finding.repair is not None
    assert not finding.repair.preselected
    content = finding.repair.choices[0].steps[0].args["content"]
    assert content == text.replace("'It's late'", '"It\'s late"')


LINES = {
    "a: 1\ntags:\n  - a\n  - @b\n": (5, "“- @b” is no valid YAML."),
    "a:\n- x\n\t- y\n": (4, "“- y” is indented with a tab, which YAML does not allow."),
    "a: 1\nb: [x\nc: 2\n": (3, "“b: [x” is no valid YAML."),
    "a: 1\nword\nb: 2\n": (3, "“word” is no valid YAML."),
}


@pytest.mark.parametrize("block", LINES)
def test_a_finding_shows_the_line_that_cannot_be_read(make_vault: MakeVault, block: str) -> None:
    (finding,) = examined(make_vault, {"A.md": f"---\n{block}---\n"})
    assert (finding.line, finding.text) == LINES[block]


def test_lines_that_do_not_fit_together_have_the_reason_of_yaml(make_vault: MakeVault) -> None:
    (finding,) = examined(make_vault, {"A.md": "---\nb: 1\na: x\n  c: y\n---\n"})
    assert (finding.line, "mapping values are not allowed" in finding.text) == (3, True)


def test_a_property_that_is_there_twice_is_reported_with_its_line(make_vault: MakeVault) -> None:
    files = {
        "A.md": "---\nstatus: open\ntitle: x\nstatus: closed\n---\n",
        "B.md": "---\nb: |\n  c: 1\n  c: 2\n---\nd: 1\nd: 2\n",
        "C.md": "---\nb: |\n d: 1\nx: {e: 1}\n---\n---\nx: 1\n---\n",
    }
    (finding,) = examined(make_vault, files)
    assert (finding.path, finding.line) == ("A.md", 4)
    assert finding.text == "The property “status” is there more than once."
    assert finding.repair is None


def test_placeholders_are_no_damage(make_vault: MakeVault) -> None:
    assert not examined(make_vault, {"A.md": "---\na: {{x}}: b\n---\n"})


MISPLACED = {
    "---\ntitle: x\ntags: [y]\n\nText\n": (1, "---\ntitle: x\ntags: [y]\n---\n\nText\n"),
    "---\ntags:\n  - y\n# Text\n": (1, "---\ntags:\n  - y\n---\n# Text\n"),
    "\ufeff\r\n---\r\na: 1\r\n---\r\nText": (2, "\ufeff---\r\na: 1\r\n---\r\nText"),
    "--\na: 1\n--\nText": (1, "---\na: 1\n---\nText"),
    "---\na: 1\nb: 2": (1, "---\na: 1\nb: 2\n---\n"),
    "---\nNote: this is a text.\n\nText\n": None,
    "---\nText\n---\n": None,
    "--\nText: x: y\n--\n": None,
    "---\ntags: #a #b/c, #d\nx: 1\n---\n": (2, "---\ntags: [a, b/c, d]\nx: 1\n---\n"),
    "---\ntags: # none\n---\n": None,
    "---\ntags:\n---\ntags: #a\n": None,
}


@pytest.mark.parametrize("text", MISPLACED)
def test_properties_that_obsidian_does_not_see_are_reported(
    make_vault: MakeVault, text: str
) -> None:
    (finding, *_) = (*examined(make_vault, {"A.md": text}), None)
    if finding is None or finding.repair is None:
        assert MISPLACED[text] is None
    else:
        content = finding.repair.choices[0].steps[0].args["content"]
        assert (finding.line, content) == MISPLACED[text]


UNREAD = {
    "tag: garden, bees": ({"tags": ["garden", "bees"]}, ["tag"]),
    "tags: garden, bees": ({"tags": ["garden", "bees"]}, []),
    "tags: 'garden #bees'": ({"tags": ["garden", "bees"]}, []),
    "alias: Smith, J.\naliases: [JS]": ({"aliases": ["JS", "Smith, J."]}, ["alias"]),
    "cssclass: [wide]": ({"cssclasses": ["wide"]}, ["cssclass"]),
    "tags: garden": None,
    "tag:": None,
}


@pytest.mark.parametrize("block", UNREAD)
def test_lists_that_obsidian_does_not_read_are_reported(make_vault: MakeVault, block: str) -> None:
    findings = examined(make_vault, {"A.md": f"---\n{block}\n---\n"})
    changes = [
        (step.args["set"], step.args.get("remove", []))
        for finding in findings
        if finding.repair is not None
        for step in finding.repair.choices[0].steps
    ]
    expected = UNREAD[block]
    assert changes == ([] if expected is None else [expected])
