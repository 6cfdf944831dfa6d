"""Modifiers that speak of properties without naming their values as such: amounts, days, and what ties a note to people and places.

As in `set_modifiers`, each is a small phrase and the condition it stands for. `elliptic` ones need a property's modifier before them:
"with sleep under 6 and run true".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from obsidian_agent.providers.offline import phrases
from obsidian_agent.providers.offline.set_modifiers import Modifier, Values, Where, both, days, either, of_property

_THAT = "[that|which|who] [is|are|was|were|has been|have been] [also|currently|still]"
_HAS = "(has|have|had|takes|take|took|needs|need|needed|costs|cost|lasts|last|lasted|weighs|weigh|serves|serve)"
_WITH = f"(with|having|of|for|[that|which|who] {_HAS}|whose|where|(in|for|on|at) which) [a|an|the|its|their|my]"
_PLACED = "[based|located|living|working|held] (with|of|for|from|in|at)"
_OF = f"(to|on|[that|which|who] (belong|belongs|belonging) to|belonging to|involving|[that|which|who] [is|are|was|were] {_PLACED})"
_NOT_OF = f"([that|which|who] (is not|are not|isn't|aren't|was not|were not|wasn't|weren't) {_PLACED}|not (with|of|for|from|in|at)|without|outside [of])"
_HAVE_NOT = "(have not|haven't|has not|hasn't|had not|did not|didn't|do not|don't|does not|doesn't|never)"
_IS_NOT = "(is not|are not|isn't|aren't|was not|were not|wasn't|weren't|is never|are never)"
_NESTED = (
    "[[,] (including|with|and|or) [all|any|anything|everything] [of] [its|the|their] "
    "(nested tags|subtags|sub tags|child tags|children|nested ones|tags (below|under) it|(nested|below|under|beneath) [under|below|it] [it|them])]"
)
_BE = "(is|are|was|were|be)"


def _value(name: str) -> Callable[[Values], Where]:
    return lambda values: values[name]


def _not(name: str) -> Callable[[Values], Where]:
    return lambda values: {"not": values[name]}


def _missing(values: Values) -> Where:
    return {"property": {values["measured"]: None}}


def _present(values: Values) -> Where:
    return {"not": _missing(values)}


def _but_not(values: Values) -> Where:
    return both(_tagged(values["tags"]), {"not": _tagged(values["untags"])})


def _tagged(listed: Any) -> Where:
    joint, tags = listed
    if joint == "and" and len(tags) > 1:
        return {"all": [{"tag": tag} for tag in tags]}
    return {"tag": tags[0] if len(tags) == 1 else list(tags)}


def _neither(values: Values) -> Where:
    return {"not": {"any": [values["state"], *values["states"][1]]}}


_AFTER: tuple[tuple[str, Callable[[Values], Where], float], ...] = (
    (f"{_WITH} {{limited}}", _value("limited"), 0),
    ("(with|of|having|[that|which] (have|has)) [a|an|the] {valued}", _value("valued"), 0.02),
    (f"{_WITH} {{amount}}", _value("amount"), 0.02),
    (f"{_THAT} {{rated}}", _value("rated"), 0.05),
    ("[that|which] (i|we) [have|had|'ve] {rated}", _value("rated"), 0.05),
    (f"[that|which|who] [{_BE}|{_HAS}] {{explained}}", _value("explained"), 0),
    (f"{_THAT} [published|released|dated|written|made|(came|coming) out|appeared] {{inYears}}", _value("inYears"), 0),
    (f"{_THAT} [(published|released|dated|held|appeared|appearing|written|recorded|taken|noted|happening|happened)|took place|taking place|came out|coming out|came] {{when}}",
     _value("when"), 0.1),
    ("(from|of|dated|for|on) [the] {onDays}", _value("onDays"), 0.1),
    ("(in|during|within) {spans}", lambda values: either([days(span, "datedAfter", "datedBefore") for span in values["spans"][1]]), 0.1),
    ("(from|of|in|for|during) {inYearsEach}", _value("inYearsEach"), 0.05),
    ("[that|which] [are|is|were|was|have|has] {compared}", _value("compared"), 0.05),
    (f"{_OF} [both|either] {{tied}}", _value("tied"), 0.05),
    (f"{_NOT_OF} [either] {{tied}}", _not("tied"), 0.05),
    (f"{_THAT} {{doneBy}}", _value("doneBy"), 0.05),
    (f"[that|which|who] {_IS_NOT} {{doneBy}}", _not("doneBy"), 0.05),
    ("[that|which|where|when|in which] [both|either] {doing}", _value("doing"), 0.05),
    ("[that|which] {notDoing}", _not("notDoing"), 0.05),
    ("(about|on|concerning|regarding|related to|relating to|[that|which] (concern|concerns)) {subject}", _value("subject"), 0.1),
    ("(for|from|at|about|by|[that|which|who] (belong|belongs) to) [the|a|an|my] {property} {values}", of_property, 0),
    ("(in|on|for|at) which [the|their|its] {property} (is|are|was|were|=|:|equals|has) [set to] {values}", of_property, 0),
    ("whose [the|list of] {property} (include|includes|mention|mentions|has|have|list|lists) {values}", of_property, 0),
    ("(whose|where) [the|their|its] {property} (is not|are not|isn't|aren't|was not) {values}", lambda values: {"not": of_property(values)}, 0),
    ("(whose|where|with|having) [a|an|the|its|their] {spelt}", _value("spelt"), 0),
    ("([that|which|who] (belong|belongs|belonging) to|belonging to|for|of) (no|not any) {property}",
     lambda values: {"property": {values["property"]: None}}, 0.05),
    ("[that|which|when|where|in which|on which] (i|we) [have|had|did] {checked}", lambda values: {"property": {values["checked"]: True}}, 0.05),
    ("(did|do|have|had) (i|we) {checked}", lambda values: {"property": {values["checked"]: True}}, 0.05),
    (f"[that|which|when|where|in which|on which] (i|we) {_HAVE_NOT} {{checked}}", lambda values: {"property": {values["checked"]: False}}, 0.05),
    (f"[that|which] (i|we) {_HAVE_NOT} [yet] [been] {{measured}} [yet]", _missing, 0.1),
    (f"[that|which|who] ({_HAVE_NOT} [yet] been|{_IS_NOT} [yet]) {{measured}} [yet]", _missing, 0.1),
    ("[that|which] (i|we) [have|had|'ve|already] [already] {measured}", _present, 0.1),
    (f"[that|which|who] {_HAVE_NOT} [yet] been {{unstate}} [yet]", _value("unstate"), 0.05),
    ("[that|which|who] (have|has) [already] been {state} [already]", _value("state"), 0.05),
    ("[that|which] (i|we) (am|are|'m) [still|currently|now] {state} [now|currently|at the moment]", _value("state"), 0.05),
    ("[that|which] i'm [still|currently|now] {state} [now|currently|at the moment]", _value("state"), 0.05),
    (f"{_THAT} (set|marked|flagged|listed) [to|as] {{states}}", lambda values: either(list(values["states"][1])), 0.05),
    ("[that|which] (ending|ends|end) (with|in|on) {text}", lambda values: {"name": f"*{values['text']}"}, 0.1),
    (f"[that|which|who] {_BE} neither [a|an] {{state}} nor [a|an] {{states}}", _neither, 0.05),
    (f"[that|which|who] [{_BE}] not {{doneBy}}", _not("doneBy"), 0.05),
    (f"{_THAT} (tagged|labelled|labeled) [with|as] {{tags}} [,] (but|and) not [tagged] [with|as] {{untags}}", _but_not, 0),
    (f"[that|which|who] ({_HAVE_NOT} [yet] been|{_IS_NOT}) (tagged|labelled|labeled) [with|as] {{tags}}", lambda values: {"not": _tagged(values["tags"])}, 0),
    ("(with|having|carrying|using|[that|which|who] (have|has)) [the|a|any] [nested] (tag|tags) {tags} " + _NESTED[1:-1], lambda values: _tagged(values["tags"]), 0),
    ("(with|having|carrying|using|[that|which|who] (have|has)) [the|a|any] nested (tag|tags) {tags}", lambda values: _tagged(values["tags"]), 0),
    ("(with|having|carrying|using|[that|which|who] (have|has)) [the|a|any] (tag|tags) [that (is|are)] [nested] (under|below|beneath|within|in) {tags}",
     lambda values: _tagged(values["tags"]), 0),
    (f"{_THAT} (tagged|labelled|labeled) [with|as] {{tags}} " + _NESTED[1:-1], lambda values: _tagged(values["tags"]), 0),
    ("(with|having|carrying|[that|which|who] (have|has)) (both|all) [the|these] tags {tags}", lambda values: _tagged(values["tags"]), 0),
    ("[that|which] (i|we) [have] (tagged|labelled|labeled) [with|as] {tags}", lambda values: _tagged(values["tags"]), 0),
    ("(without|lacking|missing|[that|which|who] (lack|lacks|do not have|don't have|does not have|doesn't have)) [the|a|any] {tags} (tag|tags)",
     lambda values: {"not": {"tag": list(values["tags"][1])}}, 0),
    ("(with|having|carrying|[that|which|who] (have|has|carry|carries)) [the|a] {tags} (tag|tags)", lambda values: _tagged(values["tags"]), 0),
    (f"[that|which|who] {_IS_NOT} [a|an] {{kind}} [note|notes|file|files]", _not("kind"), 0.05),
    (f"{_THAT} (tagged|labelled|labeled) [with|as] both {{tags}}", lambda values: _tagged(values["tags"]), 0),
    ("[that|which] (is|are|were|was) [all] (tagged|labelled|labeled) [with|as] {tags}", lambda values: _tagged(values["tags"]), 0),
)  # fmt: skip

_ELLIPTIC: tuple[tuple[str, Callable[[Values], Where], float], ...] = (
    ("[a|an|the] {limited}", _value("limited"), 0.05),
    ("[a|an|the] {amount}", _value("amount"), 0.05),
    ("[a|an|the|whose|its|their] {property} [is|are|of|=|:] [set to] {values}", of_property, 0.05),
)


@cache
def behind() -> tuple[Modifier, ...]:
    """What may stand behind a head."""
    return tuple(Modifier(phrases.parse(text).segments[0], where, cost) for text, where, cost in _AFTER)


@cache
def elliptic() -> tuple[Modifier, ...]:
    """What may stand behind a modifier and an "and"."""
    return tuple(Modifier(phrases.parse(text).segments[0], where, cost) for text, where, cost in _ELLIPTIC)
