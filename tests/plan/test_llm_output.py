"""One plan from a model's answer, or a reason: cases of real models, and attacks on parsers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from obsidian_agent.plan.llm_output import (
    MAX_BYTES,
    Parsed,
    ParsedPlan,
    ParsedProse,
    ParseFailed,
    parse_plan,
)
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.validate import validate
from obsidian_agent.tools.core.tool import Tool

PLAN: dict[str, Any] = {
    "version": "1.0",
    "goal": "g",
    "assumptions": [],
    "riskLevel": "writes",
    "steps": [{"id": "a", "tool": "vault.readFile", "args": {"path": "A.md"}, "preview": "read A"}],
}
TEXT = json.dumps(PLAN)
CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "llm_output_cases.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]

DECIDED_BY_THE_DRY_RUN = {
    "L102": "accept",
    "L127": "accept",
    "L116": "accept",
    "L122": "accept",
    "L126": "accept",
    "L128": "accept",
}
"""Cases whose verdict needs the vault: what validation says of them instead."""

DECIDED_BY_THE_CONTRACT = {"L089": "accept_with_override", "L124": "retry"}
"""`when` is a field of the language, any text is true; L124 names a tool of an MCP server."""


def generated(recipe: Mapping[str, Any]) -> str:
    """Return the plan of case L001, enlarged."""
    kind = recipe["kind"]
    size: int = next(value for name, value in recipe.items() if name != "kind")
    match kind:
        case "many_steps":
            return json.dumps(
                {
                    **PLAN,
                    "steps": [{**PLAN["steps"][0], "id": f"s{index}"} for index in range(size)],
                }
            )
        case "foreach_items":
            step = {
                "id": "a",
                "tool": "vault.createFile",
                "args": {"path": "${i}.md", "content": ""},
            }
            return json.dumps(
                {
                    **PLAN,
                    "steps": [{**step, "foreach": {"from": list(range(size)), "itemName": "i"}}],
                }
            )
        case "deep_args":
            return TEXT.replace('"A.md"', '"A.md", "x": ' + '{"a":' * size + "1" + "}" * size)
        case "big_text":
            return json.dumps({**PLAN, "goal": "x" * size})
        case "huge_int":
            return TEXT[:-1] + ', "n": ' + "9" * size + "}"
        case "open_arrays":
            return "[" * size
        case _:
            raise AssertionError(kind)


def _raw(case: Mapping[str, Any]) -> str | bytes:
    if "raw" in case:
        return str(case["raw"])
    if "raw_hex" in case:
        return bytes.fromhex(case["raw_hex"])
    return generated(case["gen"])


def verdict(case: Mapping[str, Any], tools: Mapping[str, Tool]) -> str:
    """Return the result of the path from text to a checked plan, in the words of the cases."""
    match parse_plan(_raw(case), case.get("transport", {}).get("finish_reason")):
        case ParseFailed(retry=retry):
            return "retry" if retry else "reject"
        case ParsedProse():
            return "reject"
        case ParsedPlan(document, repairs):
            policy = Policy(
                allow_deletes=bool(case.get("settings", {}).get("allowDeletes")),
                allow_commands=True,
            )
            judged = validate(document, tools, policy)
            if not judged.valid:
                return "reject" if judged.final else "retry"
            if judged.warnings or judged.flags:
                return "accept_with_override"
            return "accept_after_repair" if repairs else "accept"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']} {case['name']}")
def test_case(case: dict[str, Any], tools: Mapping[str, Tool]) -> None:
    expected = {**DECIDED_BY_THE_DRY_RUN, **DECIDED_BY_THE_CONTRACT}.get(case["id"], case["expect"])
    assert verdict(case, tools) == expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']} {case['name']}")
def test_case_with_the_tools(case: dict[str, Any], tools: Mapping[str, Tool]) -> None:
    expected = {**DECIDED_BY_THE_DRY_RUN, **DECIDED_BY_THE_CONTRACT}.get(case["id"], case["expect"])
    assert verdict(case, tools) == expected


def plan_of(parsed: Parsed) -> ParsedPlan:
    assert isinstance(parsed, ParsedPlan), parsed
    return parsed


def code_of(parsed: Parsed) -> str:
    assert isinstance(parsed, ParseFailed), parsed
    return parsed.code


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{TEXT}\n```",
        f"```{TEXT}```",
        f"\ufeff{TEXT}",
        f"Here [is] {{it}}: {TEXT} and `{{}}` too",
        f"<thinking>{{ no {TEXT}</thinking>\n{TEXT}",
        f"so I plan {TEXT}, good.</think>{TEXT}",
        f"<think>a</think>\n<think>{TEXT}</think>```json\n{TEXT}\n```",
        f"# Plan\n\n{TEXT}",
        f'<tool_call>{{"name": "propose_plan", "arguments": {{"plan": {TEXT}}}}}</tool_call>',
        json.dumps({"type": "tool_use", "name": "submit_plan", "input": PLAN}),
        json.dumps({"function_call": {"name": "submit_plan", "arguments": TEXT}}),
        json.dumps(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"function": {"name": "propose_plan", "arguments": TEXT}}],
            }
        ),
        json.dumps({"action_plan": PLAN}),
        json.dumps([PLAN]),
        json.dumps(TEXT),
        repr(PLAN),
    ],
)
def test_one_plan_is_found_and_nothing_else_is_taken(text: str) -> None:
    found = plan_of(parse_plan(text))
    assert found.document == PLAN
    assert found.repairs


def test_a_clean_plan_is_not_called_mended() -> None:
    assert parse_plan(TEXT) == ParsedPlan(PLAN, ())
    assert parse_plan(TEXT.encode()) == ParsedPlan(PLAN, ())


def test_a_plan_whose_text_speaks_of_thinking_is_left_alone() -> None:
    plan = {**PLAN, "goal": "explain </think> and <think>"}
    assert parse_plan(json.dumps(plan)) == ParsedPlan(plan, ())
    assert plan_of(parse_plan(f"```json\n{json.dumps(plan)}\n```")).document == plan


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{TEXT}{TEXT}", "MULTIPLE_PLANS"),
        (json.dumps([PLAN, PLAN]), "MULTIPLE_PLANS"),
        (f"{TEXT} or {TEXT[:-20]}", "TRUNCATED"),
        (TEXT[:-1], "TRUNCATED"),
        (f"```json\n{TEXT[:60]}", "TRUNCATED"),
        ('I will: {"vers', "TRUNCATED"),
        (f"<think>{TEXT}", "TRUNCATED"),
        (f"Well. <think>{TEXT}", "TRUNCATED"),
        (f"[{TEXT}, ", "TRUNCATED"),
        (f"[{TEXT}, ...]", "INCOMPLETE"),
        (json.dumps({"name": "submit_plan", "arguments": "{oops"}), "SYNTAX"),
        (json.dumps({"name": "submit_plan", "arguments": 3}), "SYNTAX"),
        (
            json.dumps(
                {"tool_calls": [{"function": {"name": "submit_plan", "arguments": TEXT}}] * 2}
            ),
            "MULTIPLE_PLANS",
        ),
        (
            json.dumps(
                {"tool_calls": [{"function": {"name": "vault__delete", "arguments": "{}"}}]}
            ),
            "SCHEMA_INVALID",
        ),
        (json.dumps({"error": {"message": "overloaded"}}), "UPSTREAM"),
        (json.dumps(PLAN["steps"]), "SCHEMA_INVALID"),
        ("42", "SCHEMA_INVALID"),
        ("goal: x\nsteps:\n- tool: y", "NO_JSON"),
        (TEXT.replace("A.md", "\\ud800"), "ENCODING"),
        (TEXT.replace('"g"', "NaN"), "NUMBER"),
        ("  ", "EMPTY_OUTPUT"),
        ("<think>hm</think>", "EMPTY_OUTPUT"),
    ],
)
def test_what_is_asked_for_again(text: str, code: str) -> None:
    assert code_of(parse_plan(text)) == code


@pytest.mark.parametrize(
    "text",
    [
        "Which folder?",
        "[[Project X]] has 3 tasks.",
        "Use {item} there, or [x].",
        "1. Yes\n2. No",
        "It is { that is",
        '"quoted" words',
    ],
)
def test_words_are_an_answer(text: str) -> None:
    assert parse_plan(text) == ParsedProse(text)


@pytest.mark.parametrize(
    ("reason", "code", "retry"),
    [
        ("length", "TRUNCATED", True),
        ("content_filter", "REFUSED", False),
        ("error", "UPSTREAM", False),
    ],
)
def test_the_service_has_the_last_word(reason: str, code: str, retry: bool) -> None:
    parsed = parse_plan(TEXT, reason)
    assert isinstance(parsed, ParseFailed)
    assert (parsed.code, parsed.retry) == (code, retry)


def test_size_is_counted_in_bytes() -> None:
    assert code_of(parse_plan("é" * (MAX_BYTES // 2 + 1))) == "TOO_LARGE"
    assert code_of(parse_plan("x" * (MAX_BYTES + 1))) == "TOO_LARGE"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        '{"a":' * 500_000,
        "{/*" * 400_000 + "*/ x",
        "${" * 1_000_000,
        "{" * 1_000_000,
        '{"' * 1_000_000,
    ],
    ids=["arrays", "objects", "comments", "references", "braces", "quotes"],
)
def test_hostile_brackets_end_quickly(text: str) -> None:
    assert not isinstance(parse_plan(text), ParsedPlan)


@given(st.text() | st.binary())
@example("\ud800")
def test_never_raises(raw: str | bytes) -> None:
    assert isinstance(parse_plan(raw), ParsedPlan | ParsedProse | ParseFailed)


@given(
    st.integers(0, len(TEXT)),
    st.integers(0, 12),
    st.text(alphabet="{}[]\"',:\\n.…x0 \n", max_size=6),
)
def test_a_mutated_plan_is_never_taken_for_another_one(at: int, length: int, inserted: str) -> None:
    parsed = parse_plan(TEXT[:at] + inserted + TEXT[at + length :])
    if isinstance(parsed, ParsedPlan):
        json.loads(json.dumps(parsed.document))
        assert len(parsed.document.get("steps", PLAN["steps"])) <= 1 or "tool" in inserted


@given(st.integers(1, len(TEXT) - 1))
def test_a_cut_plan_is_never_taken(at: int) -> None:
    assert not isinstance(parse_plan(TEXT[:at]), ParsedPlan)


WRITABLE = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | WRITABLE,
        lambda below: st.lists(below, max_size=3) | st.dictionaries(WRITABLE, below, max_size=3),
    )
)
def test_what_is_accepted_survives_a_round_trip(args: Any) -> None:
    plan = {**PLAN, "steps": [{**PLAN["steps"][0], "args": {"x": args}}]}
    parsed = parse_plan(json.dumps(plan))
    if isinstance(parsed, ParsedPlan):
        assert parsed.document == plan
        assert json.loads(json.dumps(parsed.document)) == plan
    else:
        assert "\\u0000" in json.dumps(plan)


@pytest.mark.parametrize("word", ["think", "reasoning"])
def test_any_number_of_thoughts_may_end_before_the_plan(word: str) -> None:
    thoughts = f"hm</{word}>" * 1200
    assert isinstance(parse_plan(thoughts + json.dumps(PLAN)), ParsedPlan)
    assert isinstance(parse_plan(thoughts + "Hello."), ParsedProse)
    assert isinstance(parse_plan(thoughts + f"<{word}>and then"), ParseFailed)


@pytest.mark.parametrize("digits", [19, 350, 399, 401, 5000])
def test_a_number_of_any_length_is_refused_as_a_number(digits: int) -> None:
    found = parse_plan(json.dumps(PLAN).replace('"steps"', f'"extra": -{"9" * digits}, "steps"'))
    assert isinstance(found, ParseFailed)
    assert found.code == "NUMBER"
