"""Wordings that only the vault explains: "mark A as paid" where notes have a checkbox "paid", "the logbook entry" where daily notes are
in Logbook, "give it a deadline of May 3" where notes have a deadline.

Each is rewritten to what the recipes say ("set the property paid to true in A"); what the vault does not know stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

from obsidian_agent.providers.offline.framing import limits, masked
from obsidian_agent.providers.offline.lexicon import DETERMINERS, IMPERATIVES, stem
from obsidian_agent.providers.offline.names import Closeness, NameIndex
from obsidian_agent.providers.offline.tokens import tokenise

_STATES = frozenset(("status", "state", "stage", "phase", "progress", "priority", "mood", "stav", "zustand"))
_ARTICLE = r"(?:the |its |their |his |her |my |a |an )?"
_PROPERTY = r"(?P<property>[\p{L}_][\w-]*(?: [\p{L}_][\w-]*){0,2}?)"
_CHANGE = "(?:set|change|update|switch|turn|put|make|raise|lower|reset|adjust|correct|move|bump)"
_WORD = regex.compile(r"[^\s,;:.!?]+(?:\.(?=\w)[^\s,;:.!?]+)*")
_BECOMES = r"(?:is now|should be|must be|becomes|has moved to|moves to|changes to|should become|has to be|needs to be)"
_MARK = regex.compile(
    r"(?is)^\s*(?:please\s+)?(?:(?:mark|flag|declare|count|put)\s+(?P<what>\S.*?)\s+(?:as|down as)|set\s+(?P<set>\S.*?)\s+to)\s+(?:being\s+)?(?P<state>[\p{L}][\p{L} -]*?)"
    r"(?P<rest>(?:,? (?:except|but|apart)\b.*)?)\s*[.!]?$"
)
_SET_OF = regex.compile(
    rf"(?is)^\s*(?:please\s+)?{_CHANGE}\s+{_ARTICLE}(?:property |field )?{_PROPERTY}\s+(?:property |field )?"
    r"(?:of|in|on|for|from)\s+(?P<what>\S.*?)\s+(?:to|into|=|as)\s+(?P<value>\S.*)$"
)
_SET_FROM = regex.compile(
    rf"(?is)^\s*(?:please\s+)?{_CHANGE}\s+{_ARTICLE}(?:property |field )?{_PROPERTY}\s+(?:property |field )?"
    r"(?:of|in|on|for)\s+(?P<what>\S.*?)\s+from\s+(?P<old>\S.*?)\s+(?:to|into)\s+(?P<value>\S.*)$"
)
_SET_IN = regex.compile(
    rf"(?is)^\s*(?:please\s+)?{_CHANGE}\s+{_ARTICLE}(?:property |field )?{_PROPERTY}\s+(?:property |field )?"
    r"(?:from\s+(?P<old>\S.*?)\s+)?(?:to|into|=)\s+(?P<value>\S.*?)\s+(?P<joint>in|on|for|of)\s+(?P<what>\S.*)$"
)
_OWNED = regex.compile(
    rf"(?is)^\s*(?:please\s+)?{_CHANGE}\s+(?P<what>\S.*?)['’]s?\s+(?:property |field )?{_PROPERTY}\s+"
    r"(?:from\s+(?P<old>\S.*?)\s+)?(?:to|into|=)\s+(?P<value>\S.*)$"
)
_GIVE = regex.compile(
    rf"(?is)^\s*(?:please\s+)?(?:give|assign)\s+(?P<what>\S.*?)\s+(?:the|a|an)\s+(?:new\s+)?{_PROPERTY}\s+(?:(?:of|as|=|:|with)\s+)?(?:the value\s+)?(?P<value>\S.*)$"
)
_IS_NOW = regex.compile(rf"(?is)^\s*(?:the\s+)?{_PROPERTY}\s+(?:of|for)\s+(?P<what>\S.*?)\s+{_BECOMES}\s+(?P<value>\S.*)$")
_GETS = regex.compile(
    rf"(?is)^\s*(?P<what>\S.*?)\s+(?:(?:should|must|shall|needs? to|has to|have to)\s+(?:all\s+|now\s+)?(?:get|have|receive|carry|be given|be set to)|gets?|receives?|needs?)\s+"
    rf"(?:the|a|an)\s+(?:new\s+)?{_PROPERTY}\s+(?:(?:of|as|=|:|with)\s+)?(?:the value\s+)?(?P<value>\S.*)$"
)
_OWN_IS_NOW = regex.compile(rf"(?is)^\s*(?P<what>\S.*?)['’]s?\s+{_PROPERTY}\s+{_BECOMES}\s+(?P<value>\S.*)$")
_DAILY = r"(?:entry|entries|page|pages|note|notes)"
_DAILY_TEMPLATE = regex.compile(r"(?i)\b(?:from|with|using|by|based on|out of)\s+(?:the |my |our )?(?P<name>[\w -]+?) template\b")
_TASK_WORDS = regex.compile(r"(?i)\b(?:tasks?|to-?dos?|checkbox(?:es)?|items?|everything)\b|^['\"“‘]")
_DAYS_TASKS = regex.compile(
    r"(?i)\b(?P<day>today|yesterday|tomorrow|last \w+day|monday|tuesday|wednesday|thursday|friday|saturday|sunday)['’]s\s+"
    r"(?P<tasks>(?:(?:open|unfinished|undone|incomplete|unchecked|remaining|pending|done|finished|completed)\s+)?(?:tasks|to-?dos|checkboxes))\b"
)
_TASK_NOUN = regex.compile(r"(?i)\b(?:tasks|to-?dos|checkboxes)\b")
_DAYS_NOTE = regex.compile(r"(?i)\b(?P<joint>from|to|into|in|of|on)\s+(?P<day>today|yesterday|tomorrow)\b(?!['’]s)")
_ITS_SECTION = regex.compile(
    r"(?i),?\s+(?:(?:at|to|in|under)\s+(?:the (?:very )?(?:end|bottom) of\s+)?)(?:its|the|their)\s+(?P<heading>\p{L}[\w -]*?)\s+(?:section|heading|chapter)\b"
)


_TOPIC = regex.compile(
    r"(?is)^\s*(?P<news>[^.;:!?]{3,120}?)\s*(?:[.;:,!]|,?\s+so)\s+(?:and\s+|so\s+|please\s+|therefore\s+)*(?P<verb>[\w-]+)\s+"
    r"(?:it|this|that|this one|that one|the (?:note|file|folder|page))\b(?P<rest>.*)$"
)
_TO_TASKS = regex.compile(
    r"(?is)^\s*(?:please\s+)?(?:add|append|put|write|note|jot)\s+(?P<what>\S.*?)\s+(?:down\s+)?(?:to|in|into|on|at|under)\s+(?:the (?:end|bottom) of\s+)?(?:the|my|its)\s+"
    r"(?:tasks?|to-?dos?|task list|to-?do list)\s+(?:in|of|on)\s+(?P<where>\S.*?)(?:,?\s+at the (?:end|bottom)(?: of the (?:list|tasks))?)?\s*[.!]?$"
)
_NEW_IN = regex.compile(
    r"(?is)^\s*(?:please\s+|can you\s+|could you\s+)*(?:create|make|add|start|write|generate|build|compile|put together|collect|gather|list|prepare|new|another)\b"
    r"[^'\"“‘]*?(?P<named>\b(?:called|named|titled)\s+)?(?P<name>x{3,}|(?<=\b(?:called|named|titled) )(?!x{3,})"
    r"(?:(?!\b(?:from|using|with|based|containing|that|which|for)\b)[^,;:])+?)(?P<joint>\s+(?:in|into|inside|under)\s+)(?P<rest>.+)$"
)
_PUTTING = regex.compile(r"(?i)^\s*(?:please\s+|can you\s+|could you\s+)*(?:write|add)\s*$")


def named_in_place(text: str, index: NameIndex) -> str:
    """ "Make a note 'A' in Projects with …" as "Make a note 'Projects/A' with …": what follows a new name is its folder, no condition."""
    match = _NEW_IN.match(masked(text))
    if match is None:
        return text
    name, rest = text[slice(*match.span("name"))], text[slice(*match.span("rest"))]
    bare = name.strip("'\"“”‘’")
    if name == bare and not match["named"]:
        return text
    if _PUTTING.match(text[: match.start("name")]):
        return text  # a text that is put into a note: "Write 'Done!' in Thesis"
    ends = [word.end() for word in list(_WORD.finditer(masked(rest)))[:8]]
    for closeness, tried in ((Closeness.EXACT, ends[::-1]), (Closeness.STEMS, ends)):
        for end in tried:
            folder = regex.sub(r"(?i)^(?:the|my)\s+(?:folder\s+)?|\s+folder$", "", rest[:end]).strip("'\"“”‘’[]")
            found = index.find(folder, ("folder",))
            if found is not None and len(found.paths) == 1 and found.closeness <= closeness and "/" not in bare:
                after = regex.sub(r"(?i)^\s+folder\b", "", rest[end:])
                return f'{text[: match.start("name")]}"{found.paths[0]}/{bare}"{after}'
    return text


def idioms(text: str, index: NameIndex) -> Iterator[str]:
    """Other wordings of an instruction, the likeliest first; none when the vault gives its words no meaning."""
    plain = _plain_days(_daily_words(text, index))
    found = [wording for wording in (_marked(plain, index), _set(plain, index), _topic_named(plain, index)) if wording is not None]
    yield from found
    if plain != text:
        yield plain


def _marked(text: str, index: NameIndex) -> str | None:
    """ "Mark A as paid" as "set the property paid to true in A"."""
    match = _MARK.match(masked(text))
    held = "what" if match is not None and match["what"] else "set"
    if match is None or _TASK_WORDS.search(match[held]) or (held == "set" and any(index.property(word) for word in match[held].split())):
        return None
    what, state, rest = (text[slice(*match.span(name))] for name in (held, "state", "rest"))
    setting = _setting_of(state, index)
    return None if setting is None else f"set the property {setting[0]} to {setting[1]} in {what}{rest}"


def _setting_of(state: str, index: NameIndex) -> tuple[str, str] | None:
    """The one property, with its value, that an adjective stands for: a checkbox of its name, or a state that notes have."""
    said = state.casefold().removeprefix("being ").strip()
    for name_said, flag in ((said, "true"), (said.removeprefix("not ").removeprefix("un"), "false")):
        name = index.property(name_said) if flag == "true" or name_said != said else None
        held = index.names.properties.get(name, {}) if name is not None else {}
        if name is not None and held and all(isinstance(each, bool) for each in held.values()):
            return name, flag
    valued = index.valued(said)
    stated = [each for each in valued if each[0].casefold() in _STATES] or valued
    if len(stated) != 1:
        return None
    name, value = stated[0]
    return name, str(value[0] if isinstance(value, list) else value)


def _topic_named(text: str, index: NameIndex) -> str | None:
    """ "I no longer need the packing list, move it to Archive" as "move [[Packing list]] to Archive": what the news names once, "it" is."""
    match = _TOPIC.match(masked(text))
    if match is None or match["verb"].lower() not in IMPERATIVES or limits(text[slice(*match.span("news"))]):
        return None
    news = text[slice(*match.span("news"))]
    named = _named_in(news, index)
    if len(named) != 1:
        return None
    return f"{match['verb']} [[{named.pop().removesuffix('.md')}]]{text[match.start('rest') :]}"


def _named_in(news: str, index: NameIndex) -> set[str]:
    """The notes and folders that words of a sentence name, the longest names first."""
    tokens = tokenise(news)
    found: set[str] = set()
    taken: set[int] = set()
    for length in range(min(len(tokens), 8), 0, -1):
        for start in range(len(tokens) - length + 1):
            if taken.isdisjoint(range(start, start + length)) and tokens[start].lower not in DETERMINERS:
                entry = index.find(news[tokens[start].start : tokens[start + length - 1].end].strip("[]'\""), ("note", "folder"))
                if entry is not None and len(entry.paths) == 1 and entry.closeness <= Closeness.STEMS:
                    found.add(entry.paths[0])
                    taken.update(range(start, start + length))
    return found


def _set(text: str, index: NameIndex) -> str | None:
    """ "Change the mood of A to 6", "give A a mood of 6", "A's mood should be 6" as "set the property mood to 6 in A"."""
    hidden = masked(text)
    for pattern in (_SET_FROM, _SET_OF, _SET_IN, _OWNED, _GIVE, _GETS, _OWN_IS_NOW, _IS_NOW):
        match = pattern.match(hidden)
        name = index.property(text[slice(*match.span("property"))]) if match is not None else None
        if match is None or name is None or name.casefold() in ("tag", "tags", "alias", "aliases", "title"):
            continue
        old = match.groupdict().get("old")
        if old and index.value(name, text[slice(*match.span("old"))].strip("'\"“”‘’")) is None:
            continue  # no value that is changed, but something else: "every paper from 2019"
        what, value = (text[slice(*match.span(each))].strip() for each in ("what", "value"))
        return f"set the property {name} to {value.rstrip(' .!')} in {what.rstrip(' .!')}"
    return None


def _daily_words(text: str, index: NameIndex) -> str:
    """Daily notes by the name of their folder ("the logbook entry"), their template by its own."""
    folder = str(index.names.daily_set.get("folder") or "").rpartition("/")[2]
    noun = "|".join({"journal", "diary", "daily", stem(folder)} - {""}) if folder else "journal|diary|daily"
    said = regex.compile(rf"(?i)\b(?:{noun})\s+(?P<noun>{_DAILY})\b")
    plain = said.sub(lambda found: f"daily note{'s' if found['noun'].lower() in ('entries', 'pages', 'notes') else ''}", text)
    template = index.names.daily_template
    if template is not None and regex.search(r"(?i)\bdaily note\b", plain):
        own = template.rpartition("/")[2].removesuffix(".md").casefold()
        plain = _DAILY_TEMPLATE.sub(lambda found: "from the daily template" if found["name"].casefold() == own else found[0], plain)
    return str(plain)


def _plain_days(text: str) -> str:
    """ "Yesterday's unfinished tasks" as the unfinished tasks of that day's note, "its Tasks section" as a heading."""
    said = _TO_TASKS.match(masked(text))
    if said is not None:
        what, where = (text[slice(*said.span(name))] for name in ("what", "where"))
        text = f"add the task {what} under the heading Tasks in {where}"
    plain = _DAYS_TASKS.sub(lambda found: f"the {found['tasks']} of {found['day']}'s note", text)
    if _TASK_NOUN.search(plain):
        plain = _DAYS_NOTE.sub(lambda found: f"{found['joint']} {found['day']}'s note", plain)
    return str(_ITS_SECTION.sub(lambda found: f" under the heading {found['heading']}", plain))
