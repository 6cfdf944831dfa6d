"""From a model's raw answer to a plan's document: exactly one plan, mended only where nothing is guessed, or a reason why not.

What comes out is JSON, not yet a valid plan: `validate.validate` judges that. What models wrap around a plan is taken off: a known key, a
list of one, the call of the one function that was offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.plan import arguments
from obsidian_agent.plan.json_text import InvalidJson, decode

OFFERED: Final = frozenset({"submit_plan", "propose_plan"})
"""The functions that a model may call to hand in a plan."""

_WRAPPERS: Final = frozenset({"plan", "action_plan", "actionPlan"})
_PLAN_FIELDS: Final = frozenset({"version", "goal", "riskLevel", "steps", "assumptions"})
_OWN_TOOL = re.compile(r"\w+(?:\.|__)\w+")
MAX_BYTES: Final = 4 * 1024 * 1024
MAX_FALSE_STARTS: Final = 200
"""Brackets that begin no JSON, after which the rest of an answer counts as prose."""

_THINKING = re.compile(r"<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_THOUGHT = re.compile(r"</(think|thinking|thought|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"(```|~~~)[ \t]*\w*[ \t]*")
_OPENING_FENCE = re.compile(r"\s*(?:```|~~~)[^\n{\[]*\n?")
_UNQUOTED_NAME = re.compile(r"\{[^\w{}]{0,10}\w[\w ]{0,40}[^\w{}]{0,2}\s*:")
_PLAN_LINE = re.compile(
    r"^\W{0,10}(version|goal|riskLevel|steps|tool|args)\W{0,2}\s*:", re.MULTILINE
)
_MARKUP = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_CALL_MARKUP = re.compile(r"<\s*/?\s*(tool_call|function_call|invoke|plan|steps)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ParsedPlan:
    """The plan's document; `repairs` name what was mended or left out, to be said on screen."""

    document: dict[str, Any]
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedProse:
    """Words instead of a plan: an answer, or a question back."""

    text: str


@dataclass(frozen=True, slots=True)
class ParseFailed:
    """No plan. `retry`: the model may be asked again; `message` tells it, and the person, what was wrong."""

    code: str
    message: str
    retry: bool = True


Parsed = ParsedPlan | ParsedProse | ParseFailed


def _no_plan(message: str) -> ParseFailed:
    return ParseFailed(
        "SCHEMA_INVALID",
        f"{message} Output only one JSON object with version, goal, riskLevel and steps.",
    )


_STEPS: Final = _no_plan("The answer holds steps without a plan around them.")
_MANY_PLANS: Final = ParseFailed(
    "MULTIPLE_PLANS", "The answer holds more than one plan. Write exactly one."
)

# --- one JSON value -----------------------------------------------------------------------------------------------------------


def _classify(value: Any) -> ParsedPlan | ParseFailed | None:
    """The plan that a JSON value from a model is or wraps, why it is none although it was meant to be, or None: nothing of a plan."""
    if isinstance(value, list):
        return _list(value)
    if not isinstance(value, dict):
        return None
    if _is_plan(value):
        return ParsedPlan(value)
    if len(value) == 1 and (key := next(iter(value))) in _WRAPPERS and isinstance(value[key], dict):
        return ParsedPlan(value[key], (f"taken out of {key!r}",)) if _is_plan(value[key]) else None
    if (calls := _calls(value)) is not None:
        return _call(calls[0]) if len(calls) == 1 else _MANY_PLANS
    if "tool" in value and "args" in value:
        return _STEPS
    if isinstance(value.get("error"), dict | str):
        return ParseFailed(
            "UPSTREAM", "The service sent an error report instead of an answer.", retry=False
        )
    return None


def _is_plan(value: dict[str, Any]) -> bool:
    """Whether an object is meant to be a plan: it has steps, or most of what a plan begins with."""
    return "steps" in value or len(_PLAN_FIELDS & value.keys()) >= 2


def _list(items: list[Any]) -> ParsedPlan | ParseFailed | None:
    found = [
        each
        for each in map(_classify, (item for item in items if isinstance(item, dict)))
        if each is not None
    ]
    only = _one(found)
    if isinstance(only, ParsedPlan):
        return ParsedPlan(only.document, ("taken out of a list",)) if len(items) == 1 else None
    return only


def _one(found: list[ParsedPlan | ParseFailed]) -> ParsedPlan | ParseFailed | None:
    """The one that there is; several are steps of a plan that is missing, or plans to choose from."""
    if len(found) > 1:
        return _STEPS if all(each is _STEPS for each in found) else _MANY_PLANS
    return found[0] if found else None


def _calls(value: dict[str, Any]) -> list[Any] | None:
    """The calls that an object makes, or None if it is no call."""
    calls = value.get("tool_calls")
    if isinstance(calls, list) and calls:
        return calls
    if isinstance(value.get("function_call"), dict):
        return [value["function_call"]]
    named = isinstance(value.get("name"), str) and (
        "arguments" in value or "input" in value or "parameters" in value
    )
    return [value] if named or isinstance(value.get("function"), dict) else None


def _call(call: Any) -> ParsedPlan | ParseFailed | None:
    """The plan that a call hands in. Tools are only called by plans, and nothing else was offered."""
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    name = call["name"]
    if name not in OFFERED:
        if _OWN_TOOL.fullmatch(name):
            return _no_plan(
                f"The answer calls {name[:60]} directly; tools are called only by the steps of a plan."
            )
        return ParseFailed(
            "UNKNOWN_TOOL", f"The answer calls {name[:60]!r}, which was never offered.", retry=False
        )
    given = next((call[key] for key in ("arguments", "input", "parameters") if key in call), None)
    why = "they are no JSON object"
    if isinstance(given, str):
        try:
            decoded = decode(given)
            given = decoded.value if not given[decoded.end :].strip() else None
        except InvalidJson as error:
            given, why = None, error.message
    if not isinstance(given, dict):
        return ParseFailed("SYNTAX", f"The arguments of the call cannot be read: {why}.")
    inner = _classify(given) if len(given) == 1 else None
    return ParsedPlan(
        inner.document if isinstance(inner, ParsedPlan) else given,
        (f"taken out of a call of {name}",),
    )


# --- a whole answer -----------------------------------------------------------------------------------------------------------


def parse_plan(raw: str | bytes, finish_reason: str | None = None) -> Parsed:
    """What a model's whole answer holds. Never raises. `finish_reason` is the service's: `length` means that the answer was cut."""
    text = _text(raw)
    if isinstance(text, ParseFailed):
        return text
    match finish_reason:
        case "length" | "max_tokens":
            return ParseFailed(
                "TRUNCATED", "The answer was cut at its length limit. Write a shorter plan."
            )
        case "content_filter" | "refusal":
            return ParseFailed("REFUSED", "The service withheld the answer.", retry=False)
        case "error":
            return ParseFailed("UPSTREAM", "The service broke off the answer.", retry=False)
        case _:
            return _parse(text)


def _text(raw: str | bytes) -> str | ParseFailed:
    if len(raw) > MAX_BYTES:
        return ParseFailed(
            "TOO_LARGE", f"The answer is larger than {MAX_BYTES} bytes.", retry=False
        )
    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
        if len(text.encode("utf-8")) > MAX_BYTES:
            return ParseFailed(
                "TOO_LARGE", f"The answer is larger than {MAX_BYTES} bytes.", retry=False
            )
    except UnicodeError:
        return ParseFailed("ENCODING", "The answer is not valid UTF-8 text.")
    return text


def _parse(text: str) -> Parsed:
    repairs: list[str] = []
    if text.startswith("\ufeff"):
        text = text[1:]
        repairs.append("byte order mark left out")
    if _MARKUP.match(text):
        return ParseFailed(
            "UPSTREAM", "The service sent a web page instead of an answer.", retry=False
        )
    answer = _after_thinking(text)
    if answer is None:
        return ParseFailed("TRUNCATED", "The answer ended while the model was still thinking.")
    if answer is not text:
        repairs.append("the model's thinking left out")
    if not answer.strip():
        return ParseFailed("EMPTY_OUTPUT", "The answer is empty.")
    if (inner := _json_string(answer)) is not None:
        answer = inner
        repairs.append("the plan was inside a JSON string")
    found = _scan(answer)
    return _decide(answer, found, repairs)


def _after_thinking(text: str) -> str | None:
    """The text after the thinking blocks, the same object when there is none, None when the last of them never ends."""
    while text[_first(text) :][:1] not in ("{", "[", '"'):
        closed = _THOUGHT.search(text)
        if closed is None:
            opened = _THINKING.search(text)
            return (
                None
                if opened is not None and not re.search(r"[{\[]", text[: opened.start()])
                else text
            )
        text = text[closed.end() :]
    return text


def _first(text: str) -> int:
    """Where an answer begins, behind blanks and the fence of a code block."""
    fence = _OPENING_FENCE.match(text)
    behind = fence.end() if fence else 0
    return behind + len(text[behind:]) - len(text[behind:].lstrip())


def _json_string(text: str) -> str | None:
    """The content of an answer that is one JSON string which holds an object."""
    if text.lstrip()[:1] != '"':
        return None
    try:
        decoded = decode(text)
    except InvalidJson:
        return None
    whole = isinstance(decoded.value, str) and not text[decoded.end :].strip()
    return decoded.value if whole and decoded.value.lstrip()[:1] == "{" else None


@dataclass(slots=True)
class _Found:
    """What an answer holds: JSON values with their places, and the first thing that should have been one."""

    contents: list[tuple[ParsedPlan | ParseFailed | None, frozenset[str]]] = field(
        default_factory=list
    )
    outside: list[str] = field(default_factory=list)
    failure: InvalidJson | None = None
    whole: bool = False


def _scan(text: str) -> _Found:
    found = _Found()
    first = _first(text)
    position = left = false_starts = 0
    for start in _starts(text, first):
        if start < position:
            continue
        try:
            decoded = decode(text, start)
        except InvalidJson as error:
            if _was_meant(text, start, first, error):
                found.failure = error
                break
            false_starts += 1
            if false_starts > MAX_FALSE_STARTS:
                break
            continue
        if text[start] not in "{[" and text[decoded.end :].strip():
            continue
        found.outside.append(text[left:start])
        found.contents.append((_classify(decoded.value), decoded.repairs))
        position = left = decoded.end
    found.outside.append(text[left:])
    found.whole = len(found.contents) == 1 and not any(part.strip() for part in found.outside)
    return found


def _was_meant(text: str, start: int, first: int, error: InvalidJson) -> bool:
    """Whether what is no JSON was meant to be, and is not just a bracket in prose such as `[[Note]]` or `{item}`."""
    if error.begun or error.code == "TOO_DEEP":
        return text[start] in "{["
    if text[start] == "{":
        return (
            start == first
            or error.code == "TRUNCATED"
            or _UNQUOTED_NAME.match(text, start) is not None
        )
    return text[start] == "[" and start == first and error.code != "SYNTAX"


def _starts(text: str, first: int) -> Iterator[int]:
    """Where JSON may begin: at the first character, whatever it is, and at each bracket."""
    if first < len(text) and text[first] not in "{[":
        yield first
    for bracket in re.finditer(r"[{\[]", text):
        yield bracket.start()


def _decide(text: str, found: _Found, repairs: list[str]) -> Parsed:
    if found.failure is not None:
        return _failed(found.failure)
    meant = [(content, mended) for content, mended in found.contents if content is not None]
    content = _one([each for each, _ in meant])
    if content is None:
        return _without_plan(text, found)
    if isinstance(content, ParseFailed):
        return content
    if (flaw := arguments.find_flaw(content.document)) is not None:
        return ParseFailed(
            flaw.code, f"{flaw.message} (at {flaw.pointer})", retry=flaw.code != "TOO_DEEP"
        )
    return ParsedPlan(
        content.document,
        (*repairs, *_around(found.outside), *content.repairs, *sorted(meant[0][1])),
    )


def _without_plan(text: str, found: _Found) -> Parsed:
    if found.whole:
        return _no_plan("The answer is JSON, but no plan.")
    if len(set(_PLAN_LINE.findall(text))) >= 2 or _CALL_MARKUP.search(text):
        return ParseFailed("NO_JSON", "The answer is not JSON. Output only one JSON object.")
    return ParsedProse(text.strip())


def _failed(error: InvalidJson) -> ParseFailed:
    messages = {
        "TRUNCATED": "The plan is cut off",
        "INCOMPLETE": "The plan leaves something out",
        "DUPLICATE_KEY": "The plan contradicts itself",
        "NUMBER": "The plan holds an impossible number",
        "TOO_DEEP": "The plan is too complicated",
        "SYNTAX": "The plan is no valid JSON",
    }
    return ParseFailed(
        error.code, f"{messages[error.code]}: {error.message}.", retry=error.code != "TOO_DEEP"
    )


def _around(outside: list[str]) -> list[str]:
    """What stood around the plan, in words."""
    text = "\n".join(outside)
    if not text.strip():
        return []
    without_fences = _FENCE.sub("", text)
    if not without_fences.strip():
        return ["code fence left out"]
    return ["text around the plan left out"]
