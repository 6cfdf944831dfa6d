"""How people say which notes they mean: small phrases, and the condition of `vault.find` that each stands for.

A description is a head ("all my notes") with modifiers before it ("untagged") and behind it ("in Projects", "older than a month"). The
holes of these phrases are read by `note_sets`; a phrase is never sure about what it does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from obsidian_agent.providers.offline import phrases
from obsidian_agent.providers.offline.dates import Span
from obsidian_agent.providers.offline.phrases import Node
from obsidian_agent.providers.offline.type_nouns import ONE_OF

Where = dict[str, Any]
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Modifier:
    """A phrase and what it says of a note; `cost` is the doubt that stays."""

    phrase: Node
    where: Callable[[Values], Where]
    cost: float = 0.0


def both(*conditions: Where) -> Where:
    """All of them, as one condition."""
    merged: Where = {}
    rest: list[Where] = []
    for condition in conditions:
        if any(key in merged for key in condition):
            rest.append(condition)
        else:
            merged |= condition
    if not rest:
        return merged
    return {"all": [each for each in (merged, *rest) if each]}


def either(conditions: list[Where]) -> Where:
    """One of them, as one condition."""
    return conditions[0] if len(conditions) == 1 else {"any": conditions}


def days(span: Span, after: str, before: str) -> Where:
    """A span as two limits."""
    found: Where = {}
    if span.start is not None:
        found[after] = span.start.isoformat()
    if span.end is not None:
        found[before] = span.end.isoformat()
    return found


def _folders(values: Values) -> Where:
    return either([{"folder": folder} if folder else {} for folder in values["folders"]])


def _tags(values: Values) -> Where:
    joint, tags = values["tags"]
    if joint == "and" and len(tags) > 1:
        return {ONE_OF: [{"all": [{"tag": tag} for tag in tags]}, {"tag": list(tags)}]}
    return {"tag": tags[0] if len(tags) == 1 else list(tags)}


def _texts(values: Values) -> Where:
    """Notes that hold a text, or of several each ("Ada and Jonas") or one."""
    joint, texts = values["texts"]
    held = [{"text": text} for text in texts]
    return {"all": held} if joint == "and" and len(held) > 1 else either(held)


def _linking(values: Values) -> Where:
    """Notes with links to a note, to each of several ("both A and B"), or to one of them."""
    joint, targets = values["targets"]
    found = [{"linksTo": target} for target in targets]
    return {"all": found} if joint == "and" and len(found) > 1 else either(found)


def _any_state(values: Values) -> Where:
    """One of several states: "done or cancelled"; with "and" too, as no note has both."""
    return _joined(*values["states"])


def _joined(joint: str, conditions: Sequence[Where]) -> Where:
    """One of some conditions; where "and" joins what a note may be at once ("gold and urgent"), all of them or one."""
    if joint == "and" and len({str(sorted(each.get("property", each))) for each in conditions}) > 1:
        return {ONE_OF: [both(*conditions), either(list(conditions))]}
    return either(list(conditions))


def of_property(values: Values) -> Where:
    """A property with one of some values."""
    found = [each for value in values["values"] for each in (value if isinstance(value, list) else [value])]
    return {"property": {values["property"]: found[0] if len(found) == 1 else list(found)}}


def _named(before: str, after: str) -> Callable[[Values], Where]:
    return lambda values: {"name": f"{before}{values['text']}{after}"}


def _fixed(**where: Any) -> Callable[[Values], Where]:
    return lambda values: where


def _since(after: str) -> Callable[[Values], Where]:
    return lambda values: {after: values["span"].start.isoformat()} if values["span"].start else {}


def _beyond(after: str) -> Callable[[Values], Where]:
    return lambda values: {after: values["span"].end.isoformat()} if values["span"].end else {}


def _until(before: str) -> Callable[[Values], Where]:
    return lambda values: {before: values["span"].start.isoformat()} if values["span"].start else {}


_THAT = "[that|which|who] [is|are|was|were] [also|currently|still]"
_HAVE = "(with|having|[that|which|who] (have|has|had)|of|in|under)"
_NONE = "(without|[that|which] (lack|lacks)|lacking|missing|[that|which|who] (do not|don't|does not|doesn't) have|(with|[that|which|who] (have|has)) no)"
_CHANGED = "[last] (changed|modified|edited|updated|touched)"
_MADE = "(created|made|added|started)"

_IS = "[that|which|who] (is|are|was|were) [also|currently|still|already]"
_BELOW = "[[,] (and|with|including) [all] [of] [its|their|the|any] (subfolders|subdirectories)]"
_WITH = "(with|having|of|[that|which] (have|has)|whose|where) [a|an|the|its|their]"


def _older(values: Values) -> Where:
    """By a note's own day, or by its last change."""
    day = values["span"].start
    return {"any": [{"datedBefore": day.isoformat()}, {"modifiedBefore": day.isoformat()}]} if day is not None else {}


def _limit(field: str) -> Callable[[Values], Where]:
    return lambda values: {field: {values["property"]: values["number"]}}


def _span_limit(**fields: str) -> Callable[[Values], Where]:
    """Limits of a property by the `start` or `end` of a span."""

    def where(values: Values) -> Where:
        ends = ((field, getattr(values["span"], end)) for field, end in fields.items())
        return {field: {values["property"]: day.isoformat()} for field, day in ends if day is not None}

    return where


def _between(name: str, span: Any) -> Where:
    """A property whose day lies in a span."""
    ends = (("atLeast", span.start), ("below", span.end))
    return {field: {name: day.isoformat()} for field, day in ends if day is not None}


_COMPARED: tuple[tuple[str, Callable[[Values], Where], float], ...] = (
    (f"{_WITH} {{property}} (of|is|=|:) {{number}} (or|and) (higher|more|above|better|up|greater|over)", _limit("atLeast"), 0),
    (f"{_WITH} {{property}} (of|is|=|:) {{number}} (or|and) (lower|less|below|worse|fewer|under)", _limit("atMost"), 0),
    (f"{_WITH} {{property}} [of|is] at least {{number}}", _limit("atLeast"), 0),
    (f"{_WITH} {{property}} [of|is] (at most|no more than|up to) {{number}}", _limit("atMost"), 0),
    (f"{_WITH} {{property}} [of|is] (above|over|greater than|higher than|more than|better than|bigger than|>) {{number}}", _limit("above"), 0),
    (f"{_WITH} {{property}} [of|is] (below|under|less than|lower than|fewer than|smaller than|worse than|<) {{number}}", _limit("below"), 0),
    (f"{_WITH} {{property}} [of|is] > = {{number}}", _limit("atLeast"), 0),
    (f"{_WITH} {{property}} [of|is] < = {{number}}", _limit("atMost"), 0),
    (f"{_WITH} {{property}} [is] (before|earlier than|until) {{span}}", _span_limit(below="start"), 0),
    (f"{_WITH} {{property}} [is] (after|later than) {{span}}", _span_limit(atLeast="end"), 0),
    (f"{_WITH} {{property}} [is] since {{span}}", _span_limit(atLeast="start"), 0),
    (f"{_WITH} {{property}} [is] (in|on|during|within) {{span}}", _span_limit(atLeast="start", below="end"), 0),
)  # fmt: skip

_AFTER: tuple[tuple[str, Callable[[Values], Where], float], ...] = (
    (f"{_THAT} [located|stored|kept] directly (in|inside|under) {{folders}}", lambda values: both(_folders(values), {"directly": True}), 0),
    (f"{_THAT} [located|stored|kept|lying|sitting] (in|inside|within|from|of|under) {{folders}} {_BELOW}", _folders, 0),
    (f"{_THAT} not (in|inside|within|from|under) {{folders}} {_BELOW}", lambda values: {"not": _folders(values)}, 0),
    ("[that|which|who] (is not|are not|isn't|aren't|was not|were not) (in|inside|within|from|under) {folders}", lambda values: {"not": _folders(values)}, 0),
    (f"{_IS} [either] {{states}}", _any_state, 0.05),
    (f"[{_THAT}] [published|released|written|made] (from|of|in) {{yearly}}", lambda values: values["yearly"], 0.1),
    ("(from|of|dated|for|on) {days}", lambda values: either([days(span, "datedAfter", "datedBefore") for span in values["days"][1]]), 0.1),
    ("[that|which] (i|we) (have|had|'ve|already) [already] {state}", lambda values: values["state"], 0.05),
    ("[that|which] (i|we) (have not|haven't|had not|hadn't|did not|didn't|never) [yet] {unstate} [yet]", lambda values: values["unstate"], 0.05),
    (f"{_THAT} {{valued}}", lambda values: values["valued"], 0.05),
    (f"{_THAT} not [yet|already] {{unstate}} [yet]", lambda values: values["unstate"], 0.05),
    (f"{_THAT} {{dueOn}} [in|on|during|within] {{span}}", lambda values: _between(values["dueOn"], values["span"]), 0.05),
    ("[that|which|who] (is not|are not|isn't|aren't) [yet|already] {unstate} [yet]", lambda values: values["unstate"], 0.05),
    (f"{_THAT} (categorised|categorized|classified|filed|listed|marked) [as|under|with] [the] [category|type] {{kind}}", lambda values: values["kind"], 0),
    (f"{_THAT} [written|made|created|directed|recorded|published] (by|from) {{maker}}", lambda values: values["maker"], 0),
    *_COMPARED,
    ("(with|having|using|[that|which] (have|has)) [a|any|some] (tag|tags) [that|which] (starting|beginning|starts|begins|start|begin) with {tags}", _tags, 0),
    (f"{_THAT} [located|stored|kept|lying|sitting] (in|at|of|inside|from) [the] (vault root|root folder|root|top level) [folder] [of (my|the|this) vault]",
     _fixed(folder="", directly=True), 0),
    (f"{_THAT} (in|of|from|across) [my|the|this] [whole|entire] vault", _fixed(), 0),
    (f"{_THAT} (tagged|labelled|labeled) [with|as|by] [the] [tag|tags|hashtag] {{tags}}", _tags, 0),
    (f"{_HAVE} [the|a|my] [tag|tags|hashtag] {{hashtags}}", lambda values: _tags({"tags": values["hashtags"]}), 0),
    ("(with|having|carrying|using|containing|[that|which|who] (have|has|had|contain|carry|use)) [the|a|my] (tag|tags|hashtag|label) {tags}", _tags, 0),
    (f"{_NONE} [any|a] (tags|tag)", _fixed(tagged=False), 0),
    (f"{_THAT} (untagged|not tagged [at all])", _fixed(tagged=False), 0),
    (f"{_THAT} tagged", _fixed(tagged=True), 0),
    ("(with|[that|which] (have|has)) [any|some] tags", _fixed(tagged=True), 0),
    (f"{_NONE} [the|a] (tag|tags|hashtag) {{tags}}", lambda values: {"not": _tags(values)}, 0),
    (f"{_THAT} not tagged [with|as] {{tags}}", lambda values: {"not": _tags(values)}, 0),
    (f"{_NONE} {{hashtags}}", lambda values: {"not": _tags({"tags": values["hashtags"]})}, 0),
    (f"{_HAVE} [the|a|an] [property|field] {{property}} [of|=|:|is|set to|equal to|being|equals] [the] [value] {{values}}", of_property, 0),
    ("(whose|where|with) [the|my|their|its] [property|field] {property} (is|are|was|were|=|:|equals|being) [set to|equal to] [the] [value] {values}", of_property, 0),
    (f"{_THAT} in the {{property}} {{values}}", of_property, 0),
    (f"{_THAT} [marked|set|listed] as {{values}} (in|by) [the] [property] {{property}}", of_property, 0.2),
    ("(with|having|[that|which|who] (have|has|had)) [a|an|the|any] [property|field] {property} [property|field]",
     lambda values: {"not": {"property": {values["property"]: None}}}, 0.05),
    (f"{_NONE} [a|an|the|any] [property|field] {{property}} [property|field] [set] [yet|so far|at all]", lambda values: {"property": {values["property"]: None}}, 0.05),
    (f"{_NONE} [any] (properties|frontmatter|metadata)", _fixed(properties=False), 0),
    (f"{_THAT} older than {{span}}", _older, 0),
    (f"{_THAT} {{before}}", lambda values: {"modifiedBefore": values["before"]}, 0),
    (f"{_THAT} {_CHANGED} [in|on|during|within] {{span}}", lambda values: days(values["span"], "modifiedAfter", "modifiedBefore"), 0),
    (f"{_THAT} {_CHANGED} since {{span}}", _since("modifiedAfter"), 0),
    (f"{_THAT} {_CHANGED} after {{span}}", _beyond("modifiedAfter"), 0),
    (f"{_THAT} {_CHANGED} before {{span}}", _until("modifiedBefore"), 0),
    ("[that|which] (i|we) (changed|modified|edited|updated|touched|worked on) [in|on|during] {span}",
     lambda values: days(values["span"], "modifiedAfter", "modifiedBefore"), 0),
    (f"{_THAT} written [in|on|during|within] {{span}}", lambda values: {"any": [
        days(values["span"], "createdAfter", "createdBefore"), days(values["span"], "datedAfter", "datedBefore")]}, 0),
    (f"{_THAT} {_MADE} [in|on|during|within] {{span}}", lambda values: days(values["span"], "createdAfter", "createdBefore"), 0),
    (f"{_THAT} written since {{span}}", _since("createdAfter"), 0),
    (f"{_THAT} {_MADE} since {{span}}", _since("createdAfter"), 0),
    (f"{_THAT} {_MADE} after {{span}}", _beyond("createdAfter"), 0),
    (f"{_THAT} {_MADE} before {{span}}", _until("createdBefore"), 0),
    ("[that|which] (i|we) (created|made|wrote|added|started) [in|on|during] {span}", lambda values: days(values["span"], "createdAfter", "createdBefore"), 0),
    ("(from|of|dated|for|between) {span}", lambda values: days(values["span"], "datedAfter", "datedBefore"), 0.1),
    (f"{_THAT} [dated|from] (before|until|prior to|earlier than) {{span}}", _until("datedBefore"), 0.05),
    (f"{_THAT} [dated|from] (after|later than) {{span}}", _beyond("datedAfter"), 0.05),
    (f"{_THAT} [dated|from] since {{span}}", _since("datedAfter"), 0.05),
    ("dated from {span}", _since("datedAfter"), 0),
    ("(whose|where|with|having) [a|the] (name|title|filename|names|titles|file name) [that|which] (starts|start|begins|begin|starting|beginning) with {text}",
     _named("", "*"), 0),
    ("[that|which] (starting|beginning|start|begin|starts|begins) with {text}", _named("", "*"), 0.1),
    ("(whose|where|with|having) [a|the] (name|title|filename|names|titles|file name) [that|which] (ends|end|ending) (with|in|on) {text}", _named("*", ""), 0),
    ("(whose|where|with|having) [a|the] (name|title|filename|names|titles|file name) [that|which] (contains|contain|includes|include|containing|has|have) {text}",
     _named("*", "*"), 0),
    ("(with|containing|[that|which] (contain|have)) {text} in (the|its|their) (name|title|filename|names|titles|file name|file names)", _named("*", "*"), 0),
    ("(whose|with) [a|the] (name|title|filename|names) (matches|match|matching|like) {text}", _named("", ""), 0),
    ("[that|which|who] (mention|mentions|mentioned|mentioning|contain|contains|containing|include|includes|including) [the] [word|words|text|phrase|term|string] [both|either] {texts}",
     lambda values: _texts(values), 0),
    ("(with|having|[that|which] (have|has)) [the] (word|words|text|phrase|term|string) {text} [in (them|it)]", lambda values: {"text": values["text"]}, 0),
    ("(about|on|concerning|regarding) {text}", lambda values: {"text": values["text"]}, 0.65),
    ("[that|which] (talk|talks|say|says|write|writes|speak|speaks) (about|of|something about) {text}", lambda values: {"text": values["text"]}, 0.65),
    ("[that|which|who] (link|links|linking|linked|point|points|pointing|refer|refers|referring) [back] to [both|either] {targets}",
     lambda values: _linking(values), 0),
    ("(with|having|[that|which] (have|has|contain|contains)) [a|any] (link|links) to {note}", lambda values: {"linksTo": values["note"]}, 0),
    (f"{_THAT} (linked|mentioned|referenced) (from|in|by|on) {{note}}", lambda values: {"linkedFrom": values["note"]}, 0),
    ("[that|which] {note} (links|link|points|refers) to", lambda values: {"linkedFrom": values["note"]}, 0),
    (f"{_NONE} [any] (backlinks|incoming links|inbound links|links to (them|it))", _fixed(linked=False), 0),
    ("[that|which] (nothing|nobody|no note|no other note) (links|link) to", _fixed(linked=False), 0),
    (f"{_THAT} (not|never) (linked|used|embedded|referenced) [from|by|in|to] [anywhere|anything|any [other] note]", _fixed(linked=False), 0),
    (f"{_THAT} (unused|unreferenced)", _fixed(linked=False), 0),
    (f"{_NONE} [any] [outgoing|outbound] links", _fixed(linking=False), 0),
    ("[that|which] (do not|don't|does not|doesn't) link [to] [anything|anywhere|any [other] note]", _fixed(linking=False), 0),
    ("(with|having|[that|which] (have|has)) [any] backlinks", _fixed(linked=True), 0),
    ("(with|having|containing|[that|which] [still] (have|has|contain)) [any] (open|unfinished|undone|unchecked|pending|outstanding) (tasks|todos|items)",
     _fixed(tasks="open"), 0),
    ("(with|having|containing|[that|which] (have|has|contain)) [any] (tasks|todos|checkboxes)", _fixed(tasks="any"), 0),
    (f"{_NONE} [any] (open|unfinished|undone|unchecked|pending|outstanding) (tasks|todos)", lambda values: {"not": {"tasks": "open"}}, 0),
    (f"{_NONE} [any] (tasks|todos|checkboxes)", _fixed(tasks="none"), 0),
    (f"{_NONE} [any] (content|text|contents|body)", _fixed(empty=True), 0),
    (f"{_THAT} (empty|blank)", _fixed(empty=True), 0),
    ("with nothing in (them|it)", _fixed(empty=True), 0),
    ("(are there|there are|do i have|i have|have i|do we have|exist|i (own|keep))", _fixed(), 0),
)  # fmt: skip

_BEFORE: tuple[tuple[str, Callable[[Values], Where], float], ...] = (
    ("(untagged|tagless)", _fixed(tagged=False), 0),
    ("(empty|blank)", _fixed(empty=True), 0),
    ("(orphan|orphaned|unlinked)", _fixed(linked=False), 0),
    ("(isolated|unconnected)", _fixed(linked=False, linking=False), 0),
    ("(recent|recently (changed|modified|edited))", lambda values: {"modifiedAfter": values["weekAgo"]}, 0.3),
    ("(unused|unreferenced)", _fixed(linked=False), 0),
    ("{span}", lambda values: days(values["span"], "datedAfter", "datedBefore"), 0.15),
    ("{attributes}", lambda values: _joined(*values["attributes"]), 0.1),
    ("{valued}", lambda values: values["valued"], 0.1),
    ("{year}", lambda values: {"any": [{"name": values["year"][0]}, days(values["year"][1], "datedAfter", "datedBefore")]}, 0.1),
    ("{hashtags} [-] [tagged]", lambda values: _tags({"tags": values["hashtags"]}), 0),
)


@cache
def behind() -> tuple[Modifier, ...]:
    """What may stand behind a head."""
    return tuple(Modifier(_node(text), where, cost) for text, where, cost in _AFTER)


@cache
def before() -> tuple[Modifier, ...]:
    """What may stand before a head."""
    return tuple(Modifier(_node(text), where, cost) for text, where, cost in _BEFORE)


def _node(text: str) -> Node:
    return phrases.parse(text).segments[0]


def week_ago(today: Any) -> str:
    """The first day of what is recent."""
    return str((today - timedelta(days=7)).isoformat())
