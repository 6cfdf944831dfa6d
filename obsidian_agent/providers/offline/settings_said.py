"""More ways to say what a property is to be, by the properties that the vault has: "Gazpacho: dauer = 30", "in Garten, erledigt should be
true", "put Munich as the city of Helio Labs".

Each becomes "set the property P to V in …". Where the vault has no property of the name, nothing is taken for one.
"""

from __future__ import annotations

import regex

from obsidian_agent.providers.offline.framing import masked
from obsidian_agent.providers.offline.names import NameIndex

_PROPERTY = r"(?P<property>[\p{L}_][\w-]*(?: [\p{L}_][\w-]*){0,2}?)"
_SHOULD = r"(?:should|must|shall|has to|have to|needs? to|is to|are to|ought to)"
_IS = r"(?:=|:|→|-+>|=>|to|is|as)"
_START = r"(?is)^\s*(?:please\s+|and\s+|so\s+)*"
_END = (
    r"(?:\s+(?:now|everywhere|throughout|there|in (?:all|each|every one) of them|from now on|instead|too|accordingly|please))*\s*[.!?]*\s*$"
)
_PATTERNS = tuple(
    regex.compile(pattern)
    for pattern in (
        rf"{_START}(?P<what>[^:;]+?)\s*(?::|;|\s[–—-])\s+(?:(?:please\s+)?(?:set|put|make|change)\s+)?(?:(?:the|its|their|his|her)\s+)?{_PROPERTY}\s*(?:{_IS}\s+"
        rf")?(?P<value>[^\s:=].*?){_END}",
        rf"{_START}(?:in|on|for|under|inside|within)\s+(?P<what>[^,:]+?)\s*[,:]\s*(?:(?:the|its|their|each|every)\s+)?{_PROPERTY}\s+"
        rf"(?:{_SHOULD}\s+(?:now\s+|all\s+)?(?:be(?: set to)?|become|read|say|have the value)|becomes|is now|=|:|→|-+>|gets the value)\s*(?P<value>\S.*?){_END}",
        rf"{_START}(?:set|give|put|assign)\s+(?:an?\s+|the\s+)?(?P<known>[\p{{L}}\d][\w -]*?)\s+{_PROPERTY}\s+(?:for|on|to|in)\s+(?P<what>\S.*?){_END}",
        rf"{_START}(?:the\s+)?{_PROPERTY}\s+(?:of|for|in)\s+(?P<what>[^:=]+?)\s*(?:[:=→]|-+>|\s(?:{_SHOULD}\s+(?:now\s+)?(?:be(?: set to| changed to)?|become|read|say)|is now|becomes"
        rf"|(?:now\s+)?(?:runs (?:until|till|to)|ends on|has become|(?:has )?changed to|changes to|(?:has )?moved to|goes (?:up|down) to|went (?:up|down) to|"
        rf"rose to|is now)))\s*(?P<value>\S.*?){_END}",
        rf"{_START}(?:put|enter|write|note|record|use|add|set|fill in|store)\s+(?P<value>\S.*?)\s+(?:in\s+)?as\s+(?:(?:the|its|their)\s+)?(?:new\s+"
        rf")?{_PROPERTY}\s+(?:of|for|in|on)\s+(?P<what>\S.*?){_END}",
        rf"{_START}(?P<what>\S.*?)\s+(?:{_SHOULD}\s+(?:all\s+|now\s+)*(?:get|have|receive|carry|be given|be set to)|gets?|receives?|needs?)\s+(?:(?:the|an?)\s+)?(?:new\s+)?{_PROPERTY}\s*"
        rf"(?:(?:of|as|=|:|with|→)\s+)?(?:the value\s+)?(?P<value>[^\s:=].*?){_END}",
        rf"{_START}(?:give|assign|grant)\s+(?P<what>\S.*?)\s+(?:(?:the|an?)\s+)(?:new\s+)?(?P<known>[\p{{L}}\d][\w-]*)\s+{_PROPERTY}{_END}",
        rf"{_START}(?:i|we)(?:['’]d| would)?\s+(?:like|want|love|prefer|need)\s+(?:the\s+)?{_PROPERTY}\s+(?:of|for|in|on)\s+(?P<what>\S.*?)\s+to\s+(?:be|become|"
        rf"read|say)\s+(?P<value>\S.*?){_END}",
    )
)
_BRACKETED = regex.compile(
    rf"{_START}(?:(?:i|we)(?:['’]d| would)?\s+(?:like|want)\s+)?(?:(?:mark|set|flag|turn|make|put)\s+)?(?P<what>\S.*?)\s+(?:{_SHOULD}\s+(?:be|become)|to\s+"
    rf"(?:be|become)|becomes?|as|to|into)\s+"
    rf"(?P<value>[\p{{L}}\d][\w -]*?)\s*\((?:the\s+|as\s+|in\s+|property\s+)*{_PROPERTY}(?:\s+property)?\)\s*(?P<rest>.*?){_END}"
)
_NOT_THESE = frozenset(("tag", "tags", "alias", "aliases", "title", "name", "with", "start", "id"))
"""Properties whose names are said of other things, too."""


def settings(text: str, index: NameIndex) -> str | None:
    """The instruction as one that sets a property; None when it says nothing of one."""
    hidden = masked(text)
    match = _BRACKETED.match(text)
    if match is not None and (name := index.property(match["property"])) is not None:
        rest = match["rest"].strip(" ,")
        return f"set the property {name} to {match['value']} in {match['what']}{', ' + rest if rest else ''}"
    for pattern in _PATTERNS:
        match = pattern.match(hidden)
        name = index.property(text[slice(*match.span("property"))]) if match is not None else None
        if match is None or name is None or name.casefold() in _NOT_THESE:
            continue
        held = "known" if "known" in pattern.groupindex else "value"
        what, value = (text[slice(*match.span(each))].strip() for each in ("what", held))
        if held == "known" and index.value(name, value) is None:
            continue
        arrow = regex.search(r"(?:→|->|=>)\s*$", text[: match.start("value")]) if held == "value" else None
        if _speaks(what) or (arrow is not None and index.value(name, value) is None):
            continue
        return f"set the property {name} to {value.rstrip(' .!?')} in {what.rstrip(' .!?,')}"
    return None


_VERBS = regex.compile(
    r"(?i)^(?:i|we|they|he|she|it|you|what|which|who|when|where|how|if|set|give|put|add|make|change|rename|remove|delete|move|create|append|write|mark|tag|"
    r"replace|sort|list|show|turn|insert|in|on)\b"
)


def _speaks(what: str) -> bool:
    """Whether words are a sentence or an order rather than what something is set on."""
    return _VERBS.match(what) is not None or bool(regex.search(r"[.!?]\s", masked(what)))
