"""Validation reports all defects of a plan with their paths, before anything runs."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.errors import PlanError
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.references import CompiledStep, compile_step
from obsidian_agent.plan.validate import Validated, edges, execution_order, validate
from obsidian_agent.tools.core.tool import Risk, Tool

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda below: st.lists(below, max_size=5) | st.dictionaries(st.text(), below, max_size=5),
    max_leaves=30,
)
READ = {"id": "r", "tool": "vault.readFile", "args": {"path": "A.md"}}
CREATE = {"id": "c", "tool": "vault.createFile", "args": {"path": "B.md", "content": "x"}}


def document(*steps: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "version": "1.0",
        "goal": "g",
        "riskLevel": "writes",
        "steps": [copy.deepcopy(dict(step)) for step in steps],
        **fields,
    }


@pytest.fixture
def judge(tools: Mapping[str, Tool]) -> Any:
    def judged(*steps: Mapping[str, Any], policy: Policy | None = None, **fields: Any) -> Validated:
        return validate(document(*steps, **fields), tools, policy or Policy())

    return judged


def codes(judged: Validated) -> list[str]:
    return [problem.code for problem in judged.problems]


def test_a_valid_plan(judge: Any) -> None:
    judged = judge(READ, {**CREATE, "args": {"path": "B.md", "content": "${$steps.r.content}"}})
    assert judged.valid
    assert (judged.problems, judged.warnings, judged.flags) == ((), (), ())
    assert [step.id for step in judged.order] == ["r", "c"]
    assert judged.needed == {"r": frozenset(), "c": frozenset({"r"})}
    assert judged.compiled.keys() == {"r", "c"}


@pytest.mark.parametrize(
    ("change", "pointer", "words"),
    [
        ({"goal": 3}, "/goal", "must be text, not the number 3"),
        ({"goal": None}, "/goal", "must be text, not null"),
        ({"version": 1.0}, "/version", "must be '1.0'"),
        ({"riskLevel": "high"}, "/riskLevel", "'read-only', 'writes' or 'commands'"),
        ({"risk": "x"}, "/risk", "Unknown field 'risk'"),
        (
            {"risk_level": "writes"},
            "/risk_level",
            "Unknown field 'risk_level'. Did you mean 'riskLevel'?",
        ),
        ({"steps": {}}, "/steps", "must be a list, not an object"),
        ({"steps": [3]}, "/steps/0", "must be an object"),
        ({"steps": [{**READ, "id": "1a"}]}, "/steps/0/id", "begin with a letter"),
        ({"steps": [{**READ, "id": "a-b"}]}, "/steps/0/id", "begin with a letter"),
        ({"steps": [{**READ, "depends_on": []}]}, "/steps/0/depends_on", "Unknown field"),
        (
            {"steps": [{**READ, "retry": {"maxAttempts": 0}}]},
            "/steps/0/retry/maxAttempts",
            "at least 1",
        ),
        (
            {"steps": [{**READ, "retry": {"maxAttempts": True}}]},
            "/steps/0/retry/maxAttempts",
            "whole number",
        ),
        (
            {"steps": [{**READ, "retry": {"maxAttempts": 1.5}}]},
            "/steps/0/retry/maxAttempts",
            "whole number",
        ),
        (
            {"steps": [{**READ, "retry": {"backoffMs": -1}}]},
            "/steps/0/retry/backoffMs",
            "at least 0",
        ),
        (
            {"steps": [{**READ, "foreach": {"from": {"x": 1}, "itemName": "i"}}]},
            "/steps/0/foreach/from",
            "must be",
        ),
        (
            {"steps": [{**READ, "foreach": {"from": [], "itemName": "$steps"}}]},
            "/steps/0/foreach/itemName",
            "begin with a letter",
        ),
        (
            {"steps": [{**READ, "onError": "ignore"}]},
            "/steps/0/onError",
            "'stop', 'skip' or 'retry'",
        ),
        ({"parameters": ["a"]}, "/parameters", "must be an object"),
        ({"parameters": {"a": {"type": "int"}}}, "/parameters/a/type", "must be"),
        (
            {"parameters": {"a": {"type": "number", "default": "x"}}},
            "/parameters/a/default",
            "must be a number",
        ),
        ({"parameters": {"a b": {}}}, "/parameters/a b", "cannot be the name"),
        ({"goal": "\ud800"}, "/goal", "surrogate"),
        ({"goal": "\x00"}, "/goal", "NUL"),
        ({"assumptions": [float("nan")]}, "/assumptions/0", "NaN"),
        ({"assumptions": [10**30]}, "/assumptions/0", "too large"),
        ({"assumptions": [object()]}, "/assumptions/0", "not a JSON value"),
        ({"assumptions": [{3: 4}]}, "/assumptions/0", ""),
    ],
)
def test_form(tools: Mapping[str, Tool], change: dict[str, Any], pointer: str, words: str) -> None:
    judged = validate({**document(READ), **change}, tools)
    assert judged.plan is None
    assert set(codes(judged)) == {"SCHEMA_INVALID"}
    problem = next(each for each in judged.problems if str(each.path).startswith(pointer))
    assert words in problem.message
    assert not judged.final


@pytest.mark.parametrize("field", ["version", "goal", "riskLevel", "steps"])
def test_required_fields(tools: Mapping[str, Tool], field: str) -> None:
    judged = validate(
        {name: value for name, value in document(READ).items() if name != field}, tools
    )
    assert [(each.code, each.path) for each in judged.problems] == [("SCHEMA_INVALID", f"/{field}")]


def test_an_unknown_version_is_final(judge: Any) -> None:
    judged = judge(READ, version="2.0")
    assert codes(judged) == ["SCHEMA_INVALID"]
    assert judged.final
    assert "'2.0'" in judged.problems[0].message


def test_problems_of_form_name_the_step(judge: Any) -> None:
    judged = judge(READ, {"id": "x", "tool": "vault.readFile"})
    assert [(each.step_id, each.path) for each in judged.problems] == [("x", "/steps/1/args")]


def test_retry_beyond_the_bounds_is_lowered_and_said(judge: Any) -> None:
    judged = judge(
        {**READ, "retry": {"maxAttempts": 10**9, "backoffMs": 10**12}},
        defaults={"retry": {"maxAttempts": 6}},
    )
    assert judged.valid
    assert (judged.plan.steps[0].retry.max_attempts, judged.plan.steps[0].retry.backoff_ms) == (
        5,
        30_000,
    )
    assert judged.plan.defaults.retry.max_attempts == 5
    assert {(each.code, each.path) for each in judged.warnings} == {
        ("RETRY_LIMIT", "/steps/0/retry/maxAttempts"),
        ("RETRY_LIMIT", "/steps/0/retry/backoffMs"),
        ("RETRY_LIMIT", "/defaults/retry/maxAttempts"),
    }


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("vault.readFil", "Did you mean 'vault.readFile'?"),
        ("Vault.ReadFile", "Did you mean 'vault.readFile'?"),
        ("vault__readFile", "Did you mean 'vault.readFile'?"),
        ("read_vault_file", "Did you mean 'vault.readFile'?"),
        ("xyz", "There are"),
        ("${tool}", "cannot contain references"),
    ],
)
def test_unknown_tools(judge: Any, name: str, hint: str) -> None:
    judged = judge({**READ, "tool": name})
    assert [(each.code, each.step_id, each.path) for each in judged.problems] == [
        ("TOOL_NOT_FOUND", "r", "/steps/0/tool")
    ]
    assert hint in judged.problems[0].message


@pytest.mark.parametrize(
    ("args", "pointer"),
    [
        ({"path": "A.md", "maxBytes": True}, "/steps/0/args/maxBytes"),
        ({"path": "A.md", "maxBytes": 1.5}, "/steps/0/args/maxBytes"),
        ({"path": "A.md", "maxBytes": "3"}, "/steps/0/args/maxBytes"),
        ({"path": "A.md", "maxBytes": "n: ${selection}"}, "/steps/0/args/maxBytes"),
        ({"path": 3}, "/steps/0/args/path"),
        ({"path": ["${selection}"]}, "/steps/0/args/path"),
        ({}, "/steps/0/args/path"),
        ({"path": "A.md", "overwrite": True}, "/steps/0/args/overwrite"),
        ({"path": "A.md", "max_bytes": 1}, "/steps/0/args/max_bytes"),
        ({"path": "A.md", "x": "${selection}"}, "/steps/0/args/x"),
    ],
)
def test_arguments(judge: Any, args: dict[str, Any], pointer: str) -> None:
    judged = judge({**READ, "args": args})
    assert [(each.code, each.step_id, each.path) for each in judged.problems] == [
        ("ARGUMENT_INVALID", "r", pointer)
    ]


@pytest.mark.parametrize("value", [1, 1.0, "${n}", "$steps.c.n", "${n|default:3}"])
def test_whole_numbers_and_references_are_numbers(judge: Any, value: Any) -> None:
    judged = judge(
        {**READ, "args": {"path": "A.md", "maxBytes": value}},
        CREATE,
        parameters={"n": {"type": "number"}},
    )
    assert judged.problems == ()


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../x.md", "PATH_OUTSIDE_VAULT"),
        ("/etc/passwd", "PATH_OUTSIDE_VAULT"),
        ("C:/x.md", "PATH_OUTSIDE_VAULT"),
        ("a/../../x.md", "PATH_OUTSIDE_VAULT"),
        (".obsidian/app.json", "PATH_NOT_ALLOWED"),
        ("Notes/.git/x", "PATH_NOT_ALLOWED"),
        ("a\nb.md", "PATH_INVALID"),
        ("../${selection}.md", "PATH_OUTSIDE_VAULT"),
        ("${selection}/../x.md", "PATH_OUTSIDE_VAULT"),
        (".obsidian/${selection}.md", "PATH_NOT_ALLOWED"),
        ("${date}/.git/x", "PATH_NOT_ALLOWED"),
        (".${date}/x.md", "PATH_NOT_ALLOWED"),
    ],
)
def test_paths_of_any_use(judge: Any, path: str, code: str) -> None:
    for step in (
        {**READ, "args": {"path": path}},
        {"id": "r", "tool": "vault.readFiles", "args": {"filePaths": ["ok.md", path]}},
    ):
        judged = judge(step)
        assert [(each.code, each.step_id, each.path) for each in judged.problems] == [
            (code, "r", path)
        ]


@pytest.mark.parametrize("path", ["a\0b.md", "a\ud800.md"])
def test_paths_that_no_disk_can_name(judge: Any, path: str) -> None:
    assert codes(judge({**READ, "args": {"path": path}})) == ["PATH_INVALID"]
    assert codes(judge({**CREATE, "args": {"path": "a.md", "content": path}})) == ["SCHEMA_INVALID"]


@pytest.mark.parametrize(
    "path",
    [
        "What is X?.md",
        "${selection}: notes.md",
        "${activeFolder}/x.md",
        "$steps.c.path",
        "a..b/v1.2",
        "${date|date:YYYY/MM}/x.md",
    ],
)
def test_names_that_only_the_dry_run_can_judge(judge: Any, path: str) -> None:
    assert judge({**READ, "args": {"path": path}}, CREATE).problems == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("$steps.x.path", "no step has the id 'x'"),
        ("${$steps.x.path|default:a}", "no step has the id 'x'"),
        ("$vars.x", "captureAs 'x'"),
        ("${folderName}/x.md", "nothing is called 'folderName'"),
        ("${c.path}", "Write $steps.c"),
        ("${item.path}", "loop names are available only"),
        ("${vars.x}", "$vars.name"),
        ("${date|dat:YYYY}", "did you mean 'date'?"),
        ("${$steps}", "followed by a dot"),
        ("x ${oops", "is not a reference"),
    ],
)
def test_unknown_references(judge: Any, text: str, words: str) -> None:
    loop = {**CREATE, "foreach": {"from": [1], "itemName": "item"}}
    judged = judge({**READ, "args": {"path": text}}, loop)
    assert [(each.code, each.step_id) for each in judged.problems] == [("UNKNOWN_REFERENCE", "r")]
    assert words in judged.problems[0].message


def test_in_long_text_only_what_is_surely_meant_is_an_error(judge: Any) -> None:
    content = "${name} ${a + b} ${"
    judged = judge({**CREATE, "args": {"path": "B.md", "content": content}})
    assert judged.valid
    assert [each.code for each in judged.warnings] == ["UNKNOWN_REFERENCE"] * 3
    for wrong in (
        "${$steps.zzz.x}",
        "${$vars.zzz}",
        "${date|nope}",
        "last: ${steps.r.items[-1].path}",
        "${$steps.r.items.*}",
    ):
        assert codes(judge(READ, {**CREATE, "args": {"path": "B.md", "content": wrong}})) == [
            "UNKNOWN_REFERENCE"
        ]


def test_loop_names_hold_in_args_and_when_but_not_in_from(judge: Any) -> None:
    loop = {
        **READ,
        "foreach": {"from": "${item.x}", "itemName": "item"},
        "when": "${item.ok}",
        "args": {"path": "${item.path}${index}"},
    }
    judged = judge(loop)
    assert [(each.code, each.path) for each in judged.problems] == [
        ("UNKNOWN_REFERENCE", "/steps/0/foreach/from")
    ]


def test_from_may_leave_out_the_dollar(judge: Any) -> None:
    judged = judge(CREATE, {**READ, "foreach": {"from": "steps.c.items", "itemName": "i"}})
    assert judged.valid
    assert judged.needed["r"] == {"c"}


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["a", "a"], ["DUPLICATE_ID"]),
        (["L", "L_0"], ["DUPLICATE_ID"]),
        (["L", "L_12"], ["DUPLICATE_ID"]),
        (["L", "L_x", "L_01", "a_0", "a"], []),
        (["selection"], ["SCHEMA_INVALID"]),
        (["steps"], ["SCHEMA_INVALID"]),
        (["now", "vars"], ["SCHEMA_INVALID", "SCHEMA_INVALID"]),
    ],
)
def test_ids(judge: Any, ids: list[str], expected: list[str]) -> None:
    loop = {"foreach": {"from": [], "itemName": "item"}}
    assert (
        codes(judge(*({**READ, "id": each, **(loop if each == "L" else {})} for each in ids)))
        == expected
    )


@pytest.mark.parametrize(
    "loop",
    [
        {"itemName": "p"},
        {"itemName": "x", "indexName": "p"},
        {"itemName": "selection"},
        {"itemName": "steps"},
        {"itemName": "x", "indexName": "date"},
        {"itemName": "index"},
    ],
)
def test_loop_names_hide_nothing(judge: Any, loop: dict[str, str]) -> None:
    judged = judge({**READ, "foreach": {"from": [], **loop}}, parameters={"p": {}})
    assert codes(judged) == ["SCHEMA_INVALID"]


def test_captured_names_are_unique(judge: Any) -> None:
    assert codes(judge({**READ, "captureAs": "x"}, {**CREATE, "captureAs": "x"})) == [
        "DUPLICATE_ID"
    ]
    assert codes(judge({**READ, "captureAs": "vaultRoot"})) == ["DUPLICATE_ID"]


def test_dependencies(judge: Any) -> None:
    unknown = judge({**READ, "dependsOn": ["x"]})
    assert [(each.code, each.path) for each in unknown.problems] == [
        ("UNKNOWN_DEPENDENCY", "/steps/0/dependsOn/0")
    ]
    cycle = judge(
        {**READ, "dependsOn": ["c"]},
        {**CREATE, "args": {"path": "B.md", "content": "${$steps.r.content}"}},
    )
    assert [(each.code, each.message) for each in cycle.problems] == [
        ("DEPENDENCY_CYCLE", "r -> c -> r")
    ]
    assert codes(judge({**READ, "dependsOn": ["r"]})) == ["DEPENDENCY_CYCLE"]


DELETE = {"id": "d", "tool": "vault.delete", "args": {"path": "A.md"}}
COMMAND = {"id": "x", "tool": "commands.run", "args": {"id": "app:reload"}}


def test_what_the_person_allows(judge: Any) -> None:
    assert codes(judge(DELETE)) == ["DELETE_DISABLED"]
    assert codes(judge(COMMAND)) == ["COMMANDS_DISABLED"]
    assert codes(judge(DELETE, policy=Policy(allow_deletes=True))) == []
    assert codes(judge(COMMAND, policy=Policy(allow_commands=True))) == []
    assert codes(judge(READ, CREATE, policy=Policy(allow_writes=False))) == ["PERMISSION_DENIED"]
    assert judge(DELETE).final


@pytest.mark.parametrize(
    ("claimed", "steps", "risk", "raised"),
    [
        ("read-only", [READ], Risk.READ_ONLY, False),
        ("writes", [READ], Risk.WRITES, False),
        ("read-only", [READ, CREATE], Risk.WRITES, True),
        ("writes", [COMMAND], Risk.COMMANDS, True),
        ("read-only", [], Risk.READ_ONLY, False),
    ],
)
def test_risk_is_raised_and_flagged(
    judge: Any, claimed: str, steps: list[Any], risk: Risk, raised: bool
) -> None:
    judged = judge(*steps, riskLevel=claimed, policy=Policy(allow_commands=True))
    assert judged.risk is risk
    assert [flag.kind for flag in judged.flags] == (["riskRaised"] if raised else [])


def test_size(judge: Any) -> None:
    assert judge(*({**READ, "id": f"s{n}"} for n in range(100))).valid
    assert codes(judge(*({**READ, "id": f"s{n}"} for n in range(101)))) == ["PLAN_TOO_LARGE"]
    loop = {**READ, "foreach": {"from": [0] * 10_000, "itemName": "i"}}
    assert judge(loop).valid
    assert codes(judge(loop, {**loop, "id": "s", "foreach": {"from": [1], "itemName": "i"}})) == [
        "PLAN_TOO_LARGE"
    ]
    assert judge(loop, loop).final


def test_warnings(judge: Any) -> None:
    assert [each.code for each in judge().warnings] == ["NO_STEPS"]
    assert [each.code for each in judge({**READ, "when": "false"}).warnings] == ["SCHEMA_INVALID"]
    assert (
        judge({**READ, "when": "${selection}"}, {**READ, "id": "q", "when": False}).warnings == ()
    )
    assert [(each.code, each.path) for each in judge({**READ, "preview": "\x1b[2J"}).warnings] == [
        ("CONTROL_CHARS", "/steps/0/preview")
    ]
    assert [each.code for each in judge({**READ, "dependsOn": ["c"]}, CREATE).warnings] == [
        "REORDERED"
    ]


def test_missing_parameters_are_no_problem(judge: Any) -> None:
    judged = judge(
        {**READ, "args": {"path": "${folder}/${n}.md"}},
        parameters={
            "folder": {"type": "path"},
            "n": {"type": "number", "default": 1},
            "selection": {},
        },
    )
    assert judged.valid
    assert judged.missing == ("folder",)


def test_everything_wrong_is_listed_at_once(judge: Any) -> None:
    judged = judge(
        {"id": "a", "tool": "nope", "args": {}, "dependsOn": ["zz"]},
        {"id": "b", "tool": "vault.readFile", "args": {"path": "../x", "maxBytes": True}},
        DELETE,
    )
    assert set(codes(judged)) == {
        "TOOL_NOT_FOUND",
        "UNKNOWN_DEPENDENCY",
        "ARGUMENT_INVALID",
        "PATH_OUTSIDE_VAULT",
        "DELETE_DISABLED",
    }
    assert judged.plan is None
    assert judged.draft is not None


@given(value=JSON)
def test_any_json_is_judged(tools: Mapping[str, Tool], value: Any) -> None:
    assert not validate(value, tools).valid


FIELDS = [
    "id",
    "tool",
    "args",
    "foreach",
    "when",
    "dependsOn",
    "retry",
    "captureAs",
    "preview",
    "onError",
]


@given(value=JSON, place=st.sampled_from(FIELDS))
def test_any_json_in_a_step_is_judged(tools: Mapping[str, Tool], value: Any, place: str) -> None:
    judged = validate(document({**CREATE, place: value}), tools)
    assert judged.valid == (judged.problems == ())
    if judged.plan is not None:
        assert validate(judged.plan, tools).problems == ()
        assert (
            ActionPlan.model_validate(json.loads(json.dumps(judged.plan.to_json()))) == judged.plan
        )


def test_depth_is_bounded(tools: Mapping[str, Tool]) -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    judged = validate(
        {
            **document(),
            "steps": [
                {**CREATE, "args": {"path": "B.md", "content": "x", "frontmatter": {"a": deep}}}
            ],
        },
        tools,
    )
    assert codes(judged) == ["SCHEMA_INVALID"]
    assert judged.final


def plan_of(*steps: Mapping[str, Any]) -> tuple[ActionPlan, dict[str, CompiledStep]]:
    document = {
        "version": "1.0",
        "goal": "g",
        "riskLevel": "writes",
        "steps": [{"tool": "t", "args": {}, **step} for step in steps],
    }
    plan = ActionPlan.model_validate(document)
    return plan, {step.id: compile_step(step) for step in plan.steps}


def order_of(*steps: Mapping[str, Any]) -> list[str]:
    plan, compiled = plan_of(*steps)
    return [step.id for step in execution_order(plan, edges(plan, compiled))]


def test_edges_come_from_everywhere_a_reference_may_stand() -> None:
    plan, compiled = plan_of(
        {"id": "a", "captureAs": "x"},
        {"id": "b"},
        {"id": "c"},
        {"id": "d"},
        {
            "id": "e",
            "args": {"deep": [{"text": "see ${steps.b.path|default:-}"}]},
            "when": "$steps.c.ok",
            "foreach": {"from": "$steps.d.items", "itemName": "i"},
            "dependsOn": ["a"],
        },
        {"id": "f", "args": {"v": "${$vars.x}", "w": "${$vars.nobody} ${$steps.nobody.x}"}},
    )
    assert edges(plan, compiled) == {
        "a": set(),
        "b": set(),
        "c": set(),
        "d": set(),
        "e": {"a", "b", "c", "d"},
        "f": {"a"},
    }


def test_ties_stay_as_written() -> None:
    assert order_of({"id": "c"}, {"id": "a"}, {"id": "b"}) == ["c", "a", "b"]
    assert order_of({"id": "a", "dependsOn": ["z"]}, {"id": "m"}, {"id": "z"}) == ["m", "z", "a"]
    assert order_of({"id": "a", "dependsOn": ["z"]}, {"id": "z"}, {"id": "m"}) == ["z", "a", "m"]


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        ({"a": ["a"]}, "a -> a"),
        ({"a": ["b"], "b": ["a"]}, "a -> b -> a"),
        ({"a": ["c"], "b": ["a"], "c": ["b"]}, "a -> c -> b -> a"),
        ({"x": ["b"], "a": ["c"], "b": ["a"], "c": ["b"]}, "a -> c -> b -> a"),
        ({"x": [], "a": ["x", "b"], "b": ["a"]}, "a -> b -> a"),
    ],
)
def test_a_cycle_is_named(needs: Mapping[str, list[str]], message: str) -> None:
    with pytest.raises(PlanError) as raised:
        order_of(*({"id": name, "dependsOn": below} for name, below in needs.items()))
    assert raised.value.code == "DEPENDENCY_CYCLE"
    assert raised.value.message == message
    assert raised.value.problems[0].message == message


@given(st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=12))
def test_every_step_comes_after_what_it_needs_or_there_is_a_cycle(needs: list[set[int]]) -> None:
    steps = [
        {"id": f"s{n}", "dependsOn": [f"s{each}" for each in sorted(below) if each < len(needs)]}
        for n, below in enumerate(needs)
    ]
    try:
        order = order_of(*steps)
    except PlanError as error:
        cycle = error.message.split(" -> ")
        wanted = {step["id"]: step["dependsOn"] for step in steps}
        assert cycle[0] == cycle[-1]
        assert all(after in wanted[before] for before, after in zip(cycle, cycle[1:], strict=False))
    else:
        assert sorted(order) == sorted(f"s{n}" for n in range(len(needs)))
        for step in steps:
            assert all(
                order.index(each) < order.index(str(step["id"])) for each in step["dependsOn"]
            )
