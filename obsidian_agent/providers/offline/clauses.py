"""Several instructions in one message: where it may be divided, and what is said once for several of them.

A message is divided before verbs. A circumstance at its beginning belongs to every clause; what a new note is to be like ("with the status
set to draft", "tagged #x", "from the Person template") becomes a clause about "it", or goes along with each note of a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import regex

from obsidian_agent.providers.offline.framing import circumstance, masked, plainly, spoken_of
from obsidian_agent.providers.offline.lexicon import IMPERATIVES, members, word_set
from obsidian_agent.providers.offline.riders import without_riders
from obsidian_agent.providers.offline.tokens import Token, tokenise

MOST_CLAUSES = 4
MOST_LISTED = 12
"""Notes or pairs of names that one verb may have."""

_TOLD = frozenset(("set to", "being", "equal to", "=", ":"))
"""Words that say a property is set, whether notes have it yet or not."""

_ASKING = word_set("i we i'd we'd can could would will you like to have me")
_POLITE = word_set("please also finally afterwards next now")
_NOUNS_TOO = word_set("note number file log pin draw drop start list label index place open copy report check link tag")
"""Verbs that are rather nouns behind a comma or "and", unless something that they act on follows."""

_OBJECTS = word_set("it them the this that these those all every each both my a an its their any")
_MARKED = frozenset(("link", "quoted"))
_CREATING = members("create") - members("write")

_END = r"(?=\s*(?:[,;.!]?\s*$|[,;.]\s|\band\b|\bfrom\b|\busing\b|\bbased on\b|\bin (?:the |my )?(?-i:\p{Lu}|folder\b)|\bwith\b))"
_VALUE = r"(?P<value>(?!templates?\b|notes?\b|links?\b|text\b)[^\s,;]+(?: [^\s,;]+)??)"
_SET = regex.compile(
    rf"(?i)[,;]?\s+(?:and\s+|but\s+)?with\s+(?:the |a |an |its |their )?(?:property |field )?(?P<property>[\w-]+(?: [\w-]+)??)\s*"
    rf"(?P<joint>set to|being|equal to|=|:)\s*(?P<value>[^,;]+?){_END}"
)
_AND_SET = regex.compile(
    rf"(?i)[,;]?\s*(?:and\s+)?(?:with\s+)?(?:the |a |an |its |their )?(?:property |field )?(?P<property>[\w-]+(?: [\w-]+)??)\s*"
    rf"(?P<joint>set to|being|equal to|is|are|should be|must be|=|:|to)\s*(?P<value>[^,;]+?){_END}"
)
_KNOWN_SET = regex.compile(
    rf"(?i)[,;]?\s+(?:and\s+)?with\s+(?:the |a |an |its |their )?(?P<property>[\w-]+(?: [\w-]+)??)\s+(?:of\s+|as\s+)?{_VALUE}{_END}"
)
_IS = regex.compile(
    rf"(?i)[,;.]\s+(?:and\s+|with\s+)?(?:the |its |their )?(?P<property>[\w-]+(?: [\w-]+)??)\s*(?P<joint>is|are|should be|must be|shall be|:|=)\s*(?P<value>[^,;]+?){_END}"
)
_AND_KNOWN = regex.compile(
    rf"(?i)[,;]?\s*(?:and\s+)(?:with\s+)?(?:the |a |an |its |their )?(?P<property>[\w-]+(?: [\w-]+)??)\s+{_VALUE}{_END}"
)
_TAGGED = regex.compile(
    r"(?i)[,;]?\s+(?:and\s+)?(?:tagged(?: (?:as|with))?|with (?:the )?(?:tags?|hashtags?)|having the tags?)\s+"
    r"(?P<tags>#?[\p{L}][\w/-]*(?:(?:,| and|, and) #[\w/-]+)*)(?=\s*(?:[,;.!]|$|\band\b|\bfrom\b|\busing\b|\bin\b))"
)
_PLACE = r"\s+(?:in|into|inside|under)\s+[^,:]+?"
_LIKE = (
    r"(?:,\s*|\s+)(?:(?:all|each|both)(?: of (?:them|these))?(?: of)?\s+)?(?:(?:from|using|based on|with|out of)\s+(?:the |my |our |a )?[^,]*?template[^,]*"
    r"|tagged(?: as| with)? \S+|with (?:the |a )?[\w-]+(?: [\w-]+)?(?: set to|\s?=|\s?:) ?\S+)"
)
"""What all notes of a list are to be like."""

_LISTED = regex.compile(
    r"(?i)^(?P<verb>(?:please )?[\w-]+)\s+(?:me )?(?:(?:the|some|two|three|four|five|six|seven|eight|\d+)\s+)?"
    r"(?:(?:new|empty|blank|separate|more|other)\s+)*(?:following\s+)?(?P<noun>notes|pages|files|documents)"
    rf"(?P<place>{_PLACE})?(?:\s*,?\s*(?:called|named|titled|for)\b|\s*:)?\s+(?P<names>(?:(?!\b(?:called|named|titled)\b)[^:])+?)(?P<rest>{_PLACE})?(?P<tail>(?:{_LIKE})+)(?P<last>{_PLACE})?\s*[.!]?$"
)
_ITEMS = regex.compile(r",\s*(?:and\s+)?|\s+and\s+")
_OTHERS = regex.compile(r"(?i)\b(?:each|every|all|any|notes|pages|files|links?|lists?|listing|index|overview|map)\b")
"""Words before a wish after which it may be of other notes than the new one: "with a link to each note tagged #x"."""

_BLANKS = regex.compile(r" {2,}")

Known = Callable[[str], bool]
"""Whether notes of the vault have a property of this name."""


def clauses(message: str, known: Known = lambda name: False) -> list[str]:
    """The instructions of a message in order, one when it cannot be divided. Later ones may speak of "it" and "them"."""
    pairs = _pairs(message, tokenise(message))
    if pairs:
        return pairs
    text = _closed_up(without_riders(message))
    text = plainly(spoken_of(text))
    place = circumstance(text)
    said = _divided(place[1] if place is not None else text)
    if place is not None:
        said = [f"{clause.rstrip(' .!;')} {place[0]}" for clause in said] if len(said) > 1 else [text]
    found = [wish for clause in said for each in _each_of_list(clause) for wish in _wishes(each, known)]
    return found if len(found) <= (MOST_CLAUSES if len(found) == len(said) else MOST_LISTED) else [message]


def _closed_up(text: str) -> str:
    """Without the gaps that riders leave; blanks within quotes stay."""
    for gap in reversed(list(_BLANKS.finditer(masked(text)))):
        text = text[: gap.start()] + (" " if gap.end() < len(text) and text[gap.end()] not in ".,;!" else "") + text[gap.end() :]
    return text


def _divided(text: str) -> list[str]:
    """Divided before verbs, behind a full stop, a comma, "and" or "then"."""
    tokens = tokenise(text)
    cuts = list(_cuts(tokens))
    starts = [0, *(tokens[begin].start for _, begin in cuts)]
    ends = [*(tokens[end].start for end, _ in cuts), len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def _pairs(message: str, tokens: Sequence[Token]) -> list[str]:
    """ "Rename [[a]] to 'b', [[c]] to 'd' and [[e]] to 'f'" as an instruction for each pair; only names in marks make pairs."""
    at = 0
    while at < len(tokens) and tokens[at].lower in _POLITE:
        at += 1
    if at >= len(tokens) or tokens[at].lower not in ("rename", "move"):
        return []
    verb, at = tokens[at].text, at + 1
    found = []
    while at + 2 < len(tokens):
        before, joint, after_it = tokens[at : at + 3]
        if before.kind not in _MARKED or joint.lower not in ("to", "into") or after_it.kind not in _MARKED:
            return []
        found.append(f"{verb} {message[before.start : after_it.end]}")
        at += 3
        while at < len(tokens) and (tokens[at].text in (",", ";", ".", "!") or tokens[at].lower == "and"):
            at += 1
    return found if at == len(tokens) and 1 < len(found) <= MOST_LISTED else []


def _cuts(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Where a clause ends, and where the next one begins."""
    at = 1
    while at < len(tokens):
        begin = at
        while begin < len(tokens) and (tokens[begin].text in (",", ".", ";", "!") or tokens[begin].lower in ("and", "then")):
            begin += 1
        joined = begin > at
        while joined and begin < len(tokens) and tokens[begin].lower in _POLITE:
            begin += 1
        if joined and begin < len(tokens) - 1 and _acts(tokens, begin):
            yield at, begin
        at = max(begin, at + 1)


def _acts(tokens: Sequence[Token], at: int) -> bool:
    """Whether a verb begins here; words that are nouns too must have an object."""
    word, following = tokens[at].lower, tokens[at + 1]
    if word not in IMPERATIVES:
        return False
    if word == "link" and following.lower in ("to", "from"):
        return True
    return (
        word not in _NOUNS_TOO or following.lower in _OBJECTS | {"off"} or following.kind in ("quoted", "link", "tag") or _names(following)
    )


def _names(token: Token) -> bool:
    return token.kind == "word" and token.text[:1].isupper()


def _each_of_list(clause: str) -> list[str]:
    """ "Make notes called A, B and C from the T template" as an instruction for each; without a template a list needs none."""
    match = _LISTED.match(masked(clause))
    if match is None or match["verb"].lower().removeprefix("please ") not in _CREATING:
        return [clause]
    names = clause[slice(*match.span("names"))]
    cuts = [found.span() for found in _ITEMS.finditer(masked(names))]
    items = [
        names[start:end].strip()
        for start, end in zip([0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(names)], strict=True)
    ]
    if not 1 < len(items) <= MOST_LISTED or not all(items):
        return [clause]
    tail = regex.sub(r"(?i)^[,\s]*(?:(?:all|each|both)(?: of (?:them|these))?(?: of)?\s+)?", "", clause[slice(*match.span("tail"))])
    place = next((clause[slice(*match.span(name))] for name in ("place", "rest", "last") if match[name]), "")
    quoted = (item if item[0] in "'\"“‘[" else f"'{item}'" if "'" not in item else f'"{item}"' for item in items)
    return [f"{match['verb']} a new note called {name}{place} {tail}" for name in quoted]


def _wishes(clause: str, known: Known) -> list[str]:
    """A clause that makes a note, without what the note is to be like, and that as clauses about it."""
    first = next((token.lower for token in tokenise(clause) if token.kind == "word" and token.lower not in _POLITE | _ASKING), "")
    if first not in _CREATING | {"new", "copy", "duplicate"}:
        return [clause]
    wishes: list[str] = []
    while True:
        hidden = masked(clause)
        settings = [match for match in (_SET.search(hidden), _KNOWN_SET.search(hidden), _IS.search(hidden)) if match is not None]
        setting = next((match for match in settings if match.groupdict().get("joint") in _TOLD or known(match["property"])), None)
        tagged = _TAGGED.search(hidden)
        wish = setting or tagged
        if wish is None or _OTHERS.search(hidden[: wish.start()]):
            return [clause, *wishes]
        if setting is not None:
            end = setting.end()
            wishes.append(_set(clause, setting))
            while (more := _next_setting(hidden, end, known)) is not None:
                wishes.append(_set(clause, more))
                end = more.end()
            clause = clause[: setting.start()] + clause[end:]
        else:
            wishes.append(f"add the tags {clause[slice(*wish.span('tags'))]} to it")
            clause = clause[: wish.start()] + clause[wish.end() :]


def _next_setting(hidden: str, at: int, known: Known) -> regex.Match[str] | None:
    more = _AND_SET.match(hidden, at)
    if more is not None and (more["joint"] in _TOLD or known(more["property"])):
        return more
    bare = _AND_KNOWN.match(hidden, at)
    return bare if bare is not None and known(bare["property"]) else None


def _set(clause: str, match: regex.Match[str]) -> str:
    return f"set the property {clause[slice(*match.span('property'))]} to {clause[slice(*match.span('value'))].strip()} in it"
