"""The grammar of references: their values, their escapes, and their limits inside paths."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.errors import ObsidianAgentError, ToolError
from obsidian_agent.plan.arguments import NO_MARKS, ArgMarks, marks_of
from obsidian_agent.plan.grammar import filter_flaw
from obsidian_agent.plan.model import Step
from obsidian_agent.plan.references import Scope, compile_step, compile_value, context_values
from obsidian_agent.tools.core.filters import FilterCall, FilterContext
from obsidian_agent.tools.core.models import ToolModel
from obsidian_agent.tools.core.tool import LongText, PathText, RunContext, Selection
from obsidian_agent.vault.paths.path import PathUse, parse

PATH = ArgMarks(path=True)
LONG = ArgMarks(long_text=True)
NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)

SCOPE = Scope(
    context={
        "selection": "- a\n- b",
        "activeFile": "Notes/Day.md",
        "activeFolder": "",
        "vaultName": "V",
        "date": "2026-03-14",
    },
    params={"folder": "A/B", "title": "AC/DC", "n": 3},
    path_params=frozenset({"folder"}),
    steps={
        "list": {
            "files": [{"path": "A/b.md", "name": "b"}, {"path": "A/c.md", "name": "c"}],
            "count": 2,
            "hasMore": False,
        },
        "note": {
            "frontmatter": {"due date": "x", "folder": "Evil/Deep", "ok": None},
            "text": "${selection} ${$steps.list.count}",
        },
    },
    vars={"total": 7},
    local={"item": {"text": "One: two?", "path": "C/d.md", "tags": ["x", "y"]}, "index": 4},
    filters=FilterContext(now=NOW),
)


def resolve(value: Any, marks: ArgMarks = NO_MARKS, scope: Scope = SCOPE) -> Any:
    return compile_value(value, marks).resolve(scope)


def code_of(value: Any, marks: ArgMarks = NO_MARKS) -> str:
    with pytest.raises(ObsidianAgentError) as raised:
        resolve(value, marks)
    return raised.value.code


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("${$steps.list.count}", 2),
        ("$steps.list.count", 2),
        ("${steps.list.count}", 2),
        ("$vars.total", 7),
        ("${$vars.total}", 7),
        ("${$vars.vaultRoot}", ""),
        ("$steps.list.files.0.path", "A/b.md"),
        ("${$steps.list.files[1].path}", "A/c.md"),
        ("${item.tags}", ["x", "y"]),
        ("${item.tags.1}", "y"),
        ("${index}", 4),
        ("${n}", 3),
        ("${ item.path }", "C/d.md"),
        ("${$steps.note.frontmatter.due date}", "x"),
        ("${$steps.note.frontmatter.ok}", None),
        ("n=${n}, t=${item.tags}", 'n=3, t=["x", "y"]'),
        ("[${$steps.note.frontmatter.ok}]", "[]"),
        ("${index} of ${$steps.list.count}", "4 of 2"),
        ("$${item.text}", "${item.text}"),
        ("a $${x} ${n}", "a ${x} 3"),
        ("$$${x}", "$${x}"),
        ("$$steps.list.count", "$steps.list.count"),
        ("$$$vars.total", "$$vars.total"),
        ("$$steps", "$steps"),
        ("$steps", "$steps"),
        ("$steps.list is a list", "$steps.list is a list"),
        ("$item.text", "$item.text"),
        ("costs $5 {x}", "costs $5 {x}"),
        ("${item.nothing|default:none}", "none"),
        ("${$steps.note.frontmatter.ok|default:a: b}", "a: b"),
        ("${item.nothing|trim|default:}", ""),
        ("${item.tags|join:, }", "x, y"),
        ("${item.tags|join:\n- }", "x\n- y"),
        ("${item.tags|count}", 2),
        ("${$steps.list.files|count}", 2),
        ("$steps.list.files|count", 2),
        ("${item.text|lower}", "one: two?"),
        ("${item.text|slug|upper}", "ONE-TWO"),
        ("${item.path|basename}", "d"),
        ("${item.path|link}", "[[d]]"),
        ("${title|link}", "[[AC/DC]]"),
        ("${n|json}", "3"),
        ("${date|date:YYYY/[W]WW}", "2026/W11"),
        ("${title|filename}", "AC-DC"),
    ],
)
def test_resolves(written: str, expected: Any) -> None:
    found = resolve(written)
    assert found == expected
    assert type(found) is type(expected)


def test_a_value_may_hold_references_anywhere_but_in_keys() -> None:
    value = {"${n}": ["${n}", {"deep": "x${n}"}], "plain": [1, None, True]}
    assert resolve(value) == {"${n}": [3, {"deep": "x3"}], "plain": [1, None, True]}


def test_substituted_text_is_never_looked_at_again() -> None:
    assert resolve("${$steps.note.text}", LONG) == "${selection} ${$steps.list.count}"
    assert resolve("<${$steps.note.text}>", LONG) == "<${selection} ${$steps.list.count}>"


@given(st.text(max_size=40).map(lambda text: text + "${selection}$${x}$steps.list.count${"))
def test_no_value_is_scanned_again(hostile: str) -> None:
    scope = Scope(context={"selection": "SECRET"}, local={"item": hostile})
    assert compile_value("${item}", LONG).resolve(scope) == hostile
    assert compile_value("[${item}|${item}]").resolve(scope) == f"[{hostile}|{hostile}]"


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text().filter(lambda text: "$" not in text),
    lambda below: (
        st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=5), below, max_size=4)
    ),
)


@given(_JSON, st.sampled_from([NO_MARKS, PATH, LONG]))
def test_a_value_without_references_is_returned_as_it_is(value: Any, marks: ArgMarks) -> None:
    template = compile_value(value, marks)
    assert template.resolve(SCOPE) is value
    assert template.static


@given(st.text(alphabet="${}:.ab [0]\\\n").map(lambda text: f"x{text}"))
def test_long_text_without_known_heads_comes_out_as_written_but_for_escapes(text: str) -> None:
    assert compile_value(text, LONG).resolve(Scope()) == text.replace("$${", "${")


def test_an_unknown_head_stays_literal_in_long_text_only() -> None:
    code = "const s = `${name}: ${user.first} ${a + b} ${items.map(i => `${i}`)} ${`;"
    assert resolve(code, LONG) == code
    assert code_of("${name}") == "REFERENCE_ERROR"
    assert code_of("Notes/${undefined}.md", PATH) == "REFERENCE_ERROR"


def test_known_heads_are_resolved_in_long_text() -> None:
    assert resolve("${n} ${name} ${n}", LONG) == "3 ${name} 3"
    assert code_of("${item.nothing}", LONG) == "REFERENCE_ERROR"


@pytest.mark.parametrize(
    "written",
    [
        "${item.text.x}",
        "${item.tags.2}",
        "${item.tags.length}",
        "$steps.other.x",
        "${item.__class__}",
        "${n.real}",
        "${item.tags.99999999999}",
    ],
)
def test_missing_is_an_error_that_names_the_reference(written: str) -> None:
    with pytest.raises(ObsidianAgentError) as raised:
        resolve(written)
    assert raised.value.code == "REFERENCE_ERROR"
    assert written in raised.value.message
    assert raised.value.path == written.strip("${}").replace("steps", "$steps")


@pytest.mark.parametrize(
    "written",
    [
        "${n|nope}",
        "${n|join:,}",
        "${title|date:YYYY}",
        "${n|default}",
        "${n|upper:x}",
        "${n",
        "${a b}",
    ],
)
def test_what_cannot_be_filled_in_is_an_error(written: str) -> None:
    assert code_of(written) == "REFERENCE_ERROR"


def test_no_selection_has_its_own_code() -> None:
    run = RunContext(vault_name="V", now=NOW)
    scope = Scope(context=context_values(run))
    for written in ("${selection}", "x ${selection}", "${selection|trim}"):
        with pytest.raises(ObsidianAgentError) as raised:
            compile_value(written).resolve(scope)
        assert raised.value.code == "NO_SELECTION"
    assert compile_value("${selection|default:all}").resolve(scope) == "all"
    assert compile_value("${selection}").condition(scope) is False


def test_the_context_is_what_the_run_knows() -> None:
    run = RunContext(
        "V", NOW, active_file=parse("A/B/n.md", PathUse.READ), selection=Selection("text")
    )
    assert context_values(run) == {
        "selection": "text",
        "activeFile": "A/B/n.md",
        "activeFolder": "A/B",
        "vaultName": "V",
        "date": "2026-03-14",
        "time": "09:30",
        "now": "2026-03-14T09:30:00+00:00",
    }


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Notes/${item.text}.md", "Notes/One- two-.md"),
        ("Notes/${item.text|slug}.md", "Notes/one-two.md"),
        ("Notes/${title|filename}.md", "Notes/AC-DC.md"),
        ("${folder}/x.md", "A/B/x.md"),
        ("${activeFolder}/x.md", "x.md"),
        ("${activeFolder}/${activeFolder}/x.md", "x.md"),
        ("${activeFile}", "Notes/Day.md"),
        ("Copy of ${activeFile}", "Copy of Notes/Day.md"),
        ("Daily/${date|date:YYYY/MM/YYYY-MM-DD HH:mm}.md", "Daily/2026/03/2026-03-14 00-00.md"),
        ("Archive/${item.path}", "Archive/C/d.md"),
        ("Archive/${$steps.list.files.0.path}", "Archive/A/b.md"),
        ("N/${n}.md", "N/3.md"),
        ("N/v${index}.${n}.md", "N/v4.3.md"),
        ("${title}", "AC/DC"),
        ("/abs/${n}", "/abs/3"),
    ],
)
def test_paths(written: str, expected: str) -> None:
    assert resolve(written, PATH) == expected


@pytest.mark.parametrize("value", ["../../x", "AC/DC", "a\\b", "..", ".", " .. ", "/etc/passwd"])
def test_a_part_of_a_path_is_one_component(value: str) -> None:
    scope = Scope(local={"item": {"text": value}})
    with pytest.raises(ObsidianAgentError) as raised:
        compile_value("Projects/${item.text}.md", PATH).resolve(scope)
    assert raised.value.code == "PATH_INVALID"
    assert raised.value.hint
    assert "|filename" in raised.value.hint


@pytest.mark.parametrize(
    "written",
    [
        "N/${title}.md",
        "N/${$steps.note.frontmatter.folder}/x.md",
        "N/${item.tags}.md",
        "N/${item.text|default:x}/${title}",
        "N/${$steps.note.frontmatter.ok}.md",
        "N/${activeFolder}/x.md",
        "N/${activeFolder}",
    ],
)
def test_what_may_not_be_part_of_a_path(written: str) -> None:
    assert code_of(written, PATH) == "PATH_INVALID"


def test_replaced_characters_are_noted() -> None:
    notes: list[str] = []
    compile_value({"path": "N/${item.text}.md"}, ArgMarks(fields={"path": PATH})).resolve(
        SCOPE, notes
    )
    assert len(notes) == 1
    assert "One- two-" in notes[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        ("false", True),
        ("${n}", True),
        ([], False),
        ({}, False),
        (0, False),
        (None, False),
        ("", False),
        ("${item.missing.deeper}", False),
        ("${$steps.list.hasMore}", False),
        ("$steps.list.count", True),
        ("${$steps.note.frontmatter.ok}", False),
    ],
)
def test_conditions(value: Any, expected: bool) -> None:
    assert compile_value(value).condition(SCOPE) is expected


def test_marks_are_found_wherever_a_model_puts_them() -> None:
    class Inner(ToolModel):
        to_file: PathText

    class Input(ToolModel):
        path: PathText
        paths: list[PathText] | PathText | None = None
        maybe: LongText | None = None
        inner: list[Inner] = []
        by_name: dict[str, PathText] = {}
        plain: str = ""

    marks = marks_of(Input)
    assert marks.field("path").path
    assert marks.field("paths").path
    assert marks.field("paths").item().path
    assert marks.field("maybe").long_text
    assert marks.field("inner").item().field("toFile").path
    assert marks.field("byName").field("any").path
    assert marks.field("plain") == NO_MARKS
    assert marks_of(Input) is marks


@given(
    st.dictionaries(st.sampled_from(["a", "b"]), _JSON, max_size=2),
    st.text(alphabet="ab.0[]", max_size=8),
)
def test_resolving_answers_or_refuses_and_never_breaks(values: dict[str, Any], path: str) -> None:
    scope = Scope(steps=values)
    with contextlib.suppress(ObsidianAgentError):
        json.dumps(compile_value("${$steps." + path + "}").resolve(scope))


def test_flaws_of_filters_say_what_to_do() -> None:
    assert "did you mean 'lower'" in str(filter_flaw(FilterCall("lowr")))
    assert "slug" in str(filter_flaw(FilterCall("zzz")))
    assert "needs a text" in str(filter_flaw(FilterCall("join")))
    assert "takes no text" in str(filter_flaw(FilterCall("trim", "x")))
    assert filter_flaw(FilterCall("date")) is None
    assert filter_flaw(FilterCall("default", "")) is None


@pytest.mark.parametrize("written", ["${n|join:,}", "${n|count}", "${title|date}", "${title|nope}"])
def test_a_filter_that_cannot_take_a_value_is_an_error_of_the_reference(written: str) -> None:
    assert code_of(written) == "REFERENCE_ERROR"


LISTS = Scope(
    context={"selection": "text"},
    steps={
        "all": {"files": [1, 2], "hasMore": False, "count": 2},
        "cut": {"files": [1], "hasMore": True, "total": 9},
        "loop": [{"items": ["a"], "hasMore": True}],
    },
    vars={"cut": {"files": [1], "hasMore": True}},
)


def items(source: Any) -> list[Any]:
    step = Step.model_validate(
        {"id": "s", "tool": "t", "args": {}, "foreach": {"from": source, "itemName": "i"}}
    )
    return compile_step(step).items(LISTS)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("$steps.all.files", [1, 2]),
        ("${$steps.all.files}", [1, 2]),
        ("${steps.all.files}", [1, 2]),
        ("steps.all.files", [1, 2]),
        ("steps.all.files[0]|default:x", None),
        ([], []),
        (["${selection}", "${$steps.all.count}", {"a": "$steps.all.count"}], ["text", 2, {"a": 2}]),
        ("$steps.loop", [{"items": ["a"], "hasMore": True}]),
    ],
)
def test_lists(source: Any, expected: list[Any] | None) -> None:
    if expected is None:
        with pytest.raises(ToolError):
            items(source)
    else:
        assert items(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "$steps.all.count",
        "${selection}",
        "$steps.all",
        "a, b",
        "x ${$steps.all.files}",
        "${selection|default:a}",
    ],
)
def test_what_is_no_list(source: str) -> None:
    with pytest.raises(ToolError) as raised:
        items(source)
    assert (raised.value.code, raised.value.message) == (
        "REFERENCE_ERROR",
        f"foreach.from is not an array: {source}",
    )


@pytest.mark.parametrize(
    "source", ["$steps.cut.files", "${$vars.cut.files}", "$steps.loop.0.items"]
)
def test_a_list_that_was_cut_short(source: str) -> None:
    with pytest.raises(ToolError) as raised:
        items(source)
    assert raised.value.code == "TRUNCATED_LIST"


def test_a_missing_list_is_a_missing_reference() -> None:
    with pytest.raises(ToolError) as raised:
        items("$steps.all.nothing")
    assert raised.value.code == "REFERENCE_ERROR"
    assert "$steps.all.nothing" in raised.value.message
