"""The raw answer of a model, parsed to the document of exactly one plan or a reason why not.

Repairs are limited to what is unambiguous. Wrappers that models put around a plan are removed: a
known key, a list of one, a call of the one function that was offered. The result is JSON, not yet a
valid plan: `validate.validate` decides that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct, field

from obsidian_agent.plan import arguments
from obsidian_agent.plan.json_text import InvalidJson, decode

OFFERED: Final = frozenset({"submit_plan", "propose_plan"})
"""The functions a model may call to submit a plan."""

_WRAPPERS: Final = frozenset({"plan", "action_plan", "actionPlan"})
_PLAN_FIELDS: Final = frozenset({"version", "goal", "riskLevel", "steps", "assumptions"})
_OWN_TOOL = re.compile(r"\w+(?:\.|__)\w+")
MAX_BYTES: Final = 4 * 1024 * 1024
MAX_FALSE_STARTS: Final = 200
"""Brackets that begin no JSON before the rest of an answer counts as prose."""

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


class ParsedPlan(Struct, frozen=True):
    """The document of a plan; `repairs` describe what was corrected or removed, for the screen."""

    document: dict[str, Any]
    repairs: tuple[str, ...] = ()


class ParsedProse(Struct, frozen=True):
    """Prose instead of a plan: an answer, or a question to the user."""

    text: str


class ParseFailed(Struct, frozen=True):
    """A failure to find a plan.

    `retry`: the model may be asked again. `message` says to the model and the user what was wrong.
    """

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
_TOO_LARGE: Final = ParseFailed(
    "TOO_LARGE",
    f"The model's answer is larger than {MAX_BYTES >> 20} MB. Ask for less at a time.",
    retry=False,
)

# --- one JSON value ---


def _classify(value: Any) -> ParsedPlan | ParseFailed | None:
    """Return the plan that a JSON value is or wraps, or the reason why it is none.

    Return None for a value that is not meant to be a plan.
    """
    if isinstance(value, list):
        return _list(value)
    if not isinstance(value, dict):
        return None
    if _is_plan(value):
        return ParsedPlan(value)
    if len(value) == 1 and (key := next(iter(value))) in _WRAPPERS and isinstance(value[key], dict):
        if not _is_plan(value[key]):
            return None
        return ParsedPlan(value[key], (f"taken out of {key!r}",))
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
    """Return whether an object is meant to be a plan: it has `steps` or two other plan fields."""
    return "steps" in value or len(_PLAN_FIELDS & value.keys()) >= 2


def _list(items: list[Any]) -> ParsedPlan | ParseFailed | None:
    classified = (_classify(item) for item in items if isinstance(item, dict))
    candidates = [candidate for candidate in classified if candidate is not None]
    only = _one(candidates)
    if isinstance(only, ParsedPlan):
        return ParsedPlan(only.document, ("taken out of a list",)) if len(items) == 1 else None
    return only


def _one(candidates: list[ParsedPlan | ParseFailed]) -> ParsedPlan | ParseFailed | None:
    """Return the single candidate, or None without any.

    Several are either bare steps without a plan around them, or plans to choose from.
    """
    if len(candidates) > 1:
        return _STEPS if all(candidate is _STEPS for candidate in candidates) else _MANY_PLANS
    return candidates[0] if candidates else None


def _calls(value: dict[str, Any]) -> list[Any] | None:
    """Return the function calls in an object, or None if it is not a call."""
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
    """Return the plan submitted by a function call. Tools are called only by plans."""
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    name = call["name"]
    if name not in OFFERED:
        if _OWN_TOOL.fullmatch(name):
            return _no_plan(
                f"The answer calls {name[:60]} directly; only the steps of a plan call tools."
            )
        return ParseFailed(
            "UNKNOWN_TOOL", f"The answer calls {name[:60]!r}, which was never offered.", retry=False
        )
    arguments_ = next(
        (call[key] for key in ("arguments", "input", "parameters") if key in call), None
    )
    reason = "they are not a JSON object"
    if isinstance(arguments_, str):
        try:
            decoded = decode(arguments_)
            arguments_ = decoded.value if not arguments_[decoded.end :].strip() else None
        except InvalidJson as error:
            arguments_, reason = None, error.message
    if not isinstance(arguments_, dict):
        return ParseFailed("SYNTAX", f"The arguments of the call cannot be read: {reason}.")
    inner = _classify(arguments_) if len(arguments_) == 1 else None
    return ParsedPlan(
        inner.document if isinstance(inner, ParsedPlan) else arguments_,
        (f"taken out of a call of {name}",),
    )


# --- a whole answer ---


def parse_plan(raw: str | bytes, finish_reason: str | None = None) -> Parsed:
    """Parse the whole answer of a model. Never raise.

    `finish_reason` comes from the service: `length` means that the answer was truncated.
    """
    text = _text(raw)
    if isinstance(text, ParseFailed):
        return text
    match finish_reason:
        case "length" | "max_tokens":
            return ParseFailed(
                "TRUNCATED", "The answer reached its length limit. Write a shorter plan."
            )
        case "content_filter" | "refusal":
            return ParseFailed("REFUSED", "The service withheld the answer.", retry=False)
        case "error":
            return ParseFailed("UPSTREAM", "The service interrupted the answer.", retry=False)
        case _:
            return _parse(text)


def _text(raw: str | bytes) -> str | ParseFailed:
    if len(raw) > MAX_BYTES:
        return _TOO_LARGE
    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
        if len(text.encode("utf-8")) > MAX_BYTES:
            return _TOO_LARGE
    except UnicodeError:
        return ParseFailed("ENCODING", "The answer is not valid UTF-8 text.")
    return text


def _parse(text: str) -> Parsed:
    repairs: list[str] = []
    if text.startswith("\ufeff"):
        text = text[1:]
        repairs.append("byte order mark removed")
    if _MARKUP.match(text):
        return ParseFailed(
            "UPSTREAM", "The service sent a web page instead of an answer.", retry=False
        )
    answer = _after_thinking(text)
    if answer is None:
        return ParseFailed("TRUNCATED", "The answer ended while the model was still thinking.")
    if answer is not text:
        repairs.append("the model's thinking removed")
    if not answer.strip():
        return ParseFailed("EMPTY_OUTPUT", "The answer is empty.")
    if (inner := _json_string(answer)) is not None:
        answer = inner
        repairs.append("the plan was inside a JSON string")
    values = _scan(answer)
    return _decide(answer, values, repairs)


def _after_thinking(text: str) -> str | None:
    """Return the text after the thinking blocks.

    Return the same object if there are none, and None if the last block has no end.
    """
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
    """Return the position where an answer begins, after blanks and an opening code fence."""
    fence = _OPENING_FENCE.match(text)
    behind = fence.end() if fence else 0
    return behind + len(text[behind:]) - len(text[behind:].lstrip())


def _json_string(text: str) -> str | None:
    """Return the content of an answer that is one JSON string holding an object."""
    if text.lstrip()[:1] != '"':
        return None
    try:
        decoded = decode(text)
    except InvalidJson:
        return None
    whole = isinstance(decoded.value, str) and not text[decoded.end :].strip()
    return decoded.value if whole and decoded.value.lstrip()[:1] == "{" else None


class _JsonValues(Struct):
    """The JSON values in an answer, the text outside them, and the first malformed value."""

    contents: list[tuple[ParsedPlan | ParseFailed | None, frozenset[str]]] = field(
        default_factory=list
    )
    outside: list[str] = field(default_factory=list)
    failure: InvalidJson | None = None
    whole: bool = False


def _scan(text: str) -> _JsonValues:
    values = _JsonValues()
    first = _first(text)
    position = outside_start = false_starts = 0
    for start in _starts(text, first):
        if start < position:
            continue
        try:
            decoded = decode(text, start)
        except InvalidJson as error:
            if _was_meant(text, start, first, error):
                values.failure = error
                break
            false_starts += 1
            if false_starts > MAX_FALSE_STARTS:
                break
            continue
        if text[start] not in "{[" and text[decoded.end :].strip():
            continue
        values.outside.append(text[outside_start:start])
        values.contents.append((_classify(decoded.value), decoded.repairs))
        position = outside_start = decoded.end
    values.outside.append(text[outside_start:])
    values.whole = len(values.contents) == 1 and not any(part.strip() for part in values.outside)
    return values


def _was_meant(text: str, start: int, first: int, error: InvalidJson) -> bool:
    """Return whether invalid JSON was meant as JSON, unlike `[[Note]]` or `{item}` in prose."""
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
    """Yield the positions where JSON may begin: the first character and every bracket."""
    if first < len(text) and text[first] not in "{[":
        yield first
    for bracket in re.finditer(r"[{\[]", text):
        yield bracket.start()


def _decide(text: str, values: _JsonValues, repairs: list[str]) -> Parsed:
    if values.failure is not None:
        return _failed(values.failure)
    candidates = [(content, mended) for content, mended in values.contents if content is not None]
    content = _one([content for content, _ in candidates])
    if content is None:
        return _without_plan(text, values)
    if isinstance(content, ParseFailed):
        return content
    if (flaw := arguments.find_flaw(content.document)) is not None:
        return ParseFailed(
            flaw.code, f"{flaw.message} (at {flaw.pointer})", retry=flaw.code != "TOO_DEEP"
        )
    return ParsedPlan(
        content.document,
        (*repairs, *_around(values.outside), *content.repairs, *sorted(candidates[0][1])),
    )


def _without_plan(text: str, values: _JsonValues) -> Parsed:
    if values.whole:
        return _no_plan("The answer is JSON, but not a plan.")
    if len(set(_PLAN_LINE.findall(text))) >= 2 or _CALL_MARKUP.search(text):
        return ParseFailed("NO_JSON", "The answer is not JSON. Output only one JSON object.")
    return ParsedProse(text.strip())


def _failed(error: InvalidJson) -> ParseFailed:
    messages = {
        "TRUNCATED": "The plan is truncated",
        "INCOMPLETE": "The plan is incomplete",
        "DUPLICATE_KEY": "The plan contradicts itself",
        "NUMBER": "The plan contains an invalid number",
        "TOO_DEEP": "The plan is nested too deeply",
        "SYNTAX": "The plan is not valid JSON",
    }
    return ParseFailed(
        error.code, f"{messages[error.code]}: {error.message}.", retry=error.code != "TOO_DEEP"
    )


def _around(outside: list[str]) -> list[str]:
    """Describe the text removed around the plan."""
    text = "\n".join(outside)
    if not text.strip():
        return []
    without_fences = _FENCE.sub("", text)
    if not without_fences.strip():
        return ["code fence removed"]
    return ["text around the plan removed"]
