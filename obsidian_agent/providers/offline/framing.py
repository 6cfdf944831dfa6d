"""What people say around an instruction: politeness, reasons, news ("Sam left."), and circumstances put first ("In the Inbox, ...").

Each function gives another wording that asks for the same, so that a reading of it can be taken where the first wording had none that is
sure. What limits an instruction ("only", "except", "but not", "leave") is never taken away.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

from obsidian_agent.providers.offline.lexicon import IMPERATIVES, word_set
from obsidian_agent.providers.offline.tokens import tokenise

_SOFT = word_set("please also then now so and kindly just finally next could can would will you")
_LIMITING = word_set(
    "only except but not don't dont never no without unless apart besides leave keep other others nothing everything instead exclude excluding "
    "skip ignore should must may rather every all each if nobody none untouched alone else stay stays remain remains where fine already yet"
)
_DENYING = word_set("not don't dont never no already yet every all each nothing none")
"""What limits an instruction, but not the news that somebody tells of themselves before it: "We don't use tiers any more."."""

_SPEAKERS = word_set(
    "i we they it he she that this i'm i've i'd i'll we're we've we'd we'll it's that's they're they've he's she's you you've"
)
_PRONOUNS = word_set("it them that this each all both these those")
_BINDING = word_set(
    "excluded exempt only except but not don't dont never no without unless apart besides leave keep stay stays other others instead exclude skip ignore should must may"
)
"""Words with which an aside still tells what to do."""

_NAMED = regex.compile(r"!?\[\[[^\[\]\n]+\]\]|[\"“”„«`][^\"“”„«»`\n]+[\"”“»`]|(?<![\w'’])['‘][^\n]+?['’](?!\w)|\([^()\n]*\)")
_SENTENCE = regex.compile(r"[^.!?;\n]+(?:[.!?](?!\s|$)[^.!?;\n]*)*[.!?;\n]*\s*")

_TAIL = regex.compile(
    r"""(?ix)
    [\s,]* \b(?: (?:would|could|will|can)\s+you (?:\s+(?:please|kindly|do\s+that|be\s+so\s+kind))?
        | if\s+you\s+(?:would|could|can|don['’]t\s+mind) | when\s+you\s+(?:can|have\s+a\s+moment) | ok(?:ay)? | right | please | thanks | thank\s+you
        | for\s+(?:me|us) )\s* \? [\s?]* $
    """
)
_SURE = regex.compile(r"(?i)\s+(?:yes|yep|sure|really)[\s,]+(?:really|i(?:['’]m| am) sure|i mean it|do it|please)\s*[.!]?\s*$")
_REASON = regex.compile(
    r"""(?ix)
    [\s,]* \b(?: because | so\s+(?:that\s+)?(?:i|we|it|they)\s+(?:can|could|will|have|get|know) | which\s+(?:i|we)\s+(?:still\s+)?(?:have|need|want)
        | that\s+(?:i|we)\s+still\s+(?:have|need|want) | since\s+(?:i|we|it|they)\b ) \b [^,;]*? (?= [\s.!]*$ | [,;] )
    """
)
_REMARK = regex.compile(
    r"(?i)(?:,|\s[-–—])\s+(?:(?:i|we|they|it|he|she)(?:['’](?:ve|re|m|s|ll|d))?|(?:that|this|these|those)(?:\s+[\w-]+){0,2}?\s+(?:is|are|was|were|has|have))"
    r"\s[^,;]*?(?=[\s.!]*$)"
)
_EXAMPLE = regex.compile(r"(?i)\s*\((?:so|e\.g\.|i\.e\.|for example|for instance|that is|such as|meaning)\s[^()\n]*\)")
_SET_UP = regex.compile(
    r"(?i)(?<=^\s*(?:please\s+)?|[.;,]\s+(?:and\s+)?)(?:set up|put together|draw up|write up|open up|draft|prepare)(?=\s+(?:an?|another|the|me|us|two|three|some)\b)"
)
"""Other verbs for making something."""

_NEWS = regex.compile(r"(?i)^\s*(?:i|we|they|he|she|it|you|\p{L}+)(?:['’](?:m|re|ve|s|d|ll))?\s[^.:;!?\n\"“]{3,90}(?:[:;]| [–—-])\s+(?=\S)")
"""News before a colon: "We're not going to Texas after all: …"."""

_LEAD_IN = regex.compile(r"(?i)^[^,;:]{3,80}[,:;]\s*(?:so|therefore|hence)\s+(?:please\s+)?")
_PLEASE = regex.compile(r"(?i)(?<=\w)[\s,]+please(?=\s*(?:[:,;.!]|$))")
_NEW_NOTE = regex.compile(r"(?i)^\s*(?:an?\s+)?(?:new|another)\s+(?:[\w-]+\s+){0,3}?(?:note|page|entry|file|document|folder)\b")
"""An instruction without a verb: "New project note: …"."""

_WISH = regex.compile(
    r"(?i)^\s*(?:i(?:['’]d| would)? (?:like|want|need|love)(?: you)? to|i want you to|it would be (?:nice|great|good) (?:if you could|to)|"
    r"(?:we|you) (?:should|need to|have to|must)|let(?:['’]s| us)|time to|remember to|go ahead and)\s+"
)
_SPOKEN_OF = regex.compile(
    r"(?s)^\s*(?P<who>\p{Lu}[\w'’&-]*(?: \p{Lu}[\w'’&-]*)*) (?P<news>(?:has|have|is|was|had|got|just|will|now|recently)\b[^.:;!?\n]{3,80})[.:;!] +(?P<rest>\S.*)$"
)
_THEIRS = regex.compile(r"\b(?:their|his|her|its) (?:own )?(?:note|page|file)\b(?!['’ ]s\b)")
_THE_NOTE = regex.compile(r"\b(?:the|that) (?:note|page|file)\b(?= *[.!]?$)")
_LEARNED = regex.compile(r"(?P<what>[\"“][^\"”]+[\"”]|\p{Lu}[\w.+#-]*(?: \p{Lu}[\w.+#-]*)*|#[\w/-]+|\d[\w./-]*)\s*(?:now|too|as well)?$")
_IT_ADDED = regex.compile(r"(?i)\b(add|append|put|write|record|note|insert) (?:it|that|this)\b(?= (?:to|in|under|on|into)\b)")
"""What was told of somebody, and the words that put it into their note: "Dev has learned SQL: add it to his skills"."""

_RENAMED = regex.compile(
    r"(?:(?:has|have|is|was|had|just|now|recently|been|will|be) )*"
    r"(?:rebranded|renamed|changed (?:its|their|his|her) name|called|named|known|became|become)(?: itself| themselves)?(?: (?:as|to))? (?P<name>\p{Lu}[^,]*)"
)
"""News that somebody or something has another name."""

_OWN_TEMPLATE = regex.compile(
    r"(?i)\btemplate (?:(?:that |which )?(?:i|we)(?:['’]ve| have)? (?:set up|made|use|have|created|keep|wrote|prepared|got)(?: up)? )?for "
    r"(?:my |our |the )?(?P<what>[\w-]+(?: [\w-]+)?)(?=\s*(?:[.,;!?]|$|\band\b|\bto\b|\bin\b))"
)
"""A template by what it is for: "the template I set up for my daily notes" is the daily notes template."""

_USE_TEMPLATE = regex.compile(
    r"(?i)[.;,!?]\s*(?:and\s+|please\s+)?(?:use|take|apply|fill in|start from|base (?:it|them) on|with|using|made from|made with|based on)\s+"
    r"(?P<template>(?:(?!\band\b)[^.;,:])*?\btemplate\b)"
    r"(?:\s+(?:for|to) (?:it|them|that|this|each|all|each of them|all of them|both|the notes?))?(?:\s*[.!]|(?=\s*(?:$|,|and\b)))"
)
_PUT_IT = regex.compile(
    r"(?i)^\s*[.,;]?\s*(?:and\s+)?(?:please\s+)?(?:put|place|save|file|store|create|keep)\s+(?:it|them|that|this|the note)\s+(?P<place>(?:in|into|inside|under)\s+[^.;,]+)"
)
_FIRST = regex.compile(
    r"(?i)^\s*(?:please\s+)?(?P<where>(?:in|on|under|within|inside|at|from|to|for|of|among|across|throughout)\s[^,:;]+?)\s*(?P<only>\bonly\b)?\s*[,:]\s+"
    r"(?P<rest>(?:please\s+)?(?P<verb>[\w-]+)\b.*)$",
    regex.DOTALL,
)
_FIRST_BARE = regex.compile(
    rf"(?is)^\s*(?:please\s+)?(?P<where>(?:in|on|at|under|within|inside|from)\s+(?:(?:the|my|this)\s+)?[^\s,:;.]+(?:\s[^\s,:;.]+){{0,6}}?)\s+"
    rf"(?P<rest>(?P<verb>{'|'.join(sorted(IMPERATIVES))})\s+(?:(?:off|up|out|down)\s+)?(?:the|all|every|each|a|an|any|my|its|their|this|that|it|them|both|xx|#).*)$"
)
"""The same without a comma: "on Dashboard turn the link into text"."""

_OF = regex.compile(
    r"(?i)^(?:for|of|among)\s+(?:all |each |every |any )*(?:of )?(?:the )?(?:notes?|files?|pages?|ones?)\s+(?=in\b|inside\b|under\b|within\b)"
)


def wordings(message: str) -> Iterator[str]:
    """Other wordings of a message, from those that leave out least; the message itself is none of them."""
    seen = {message.strip()}
    plain = plainly(message)
    for wording in (plain, circumstance_last(plain), spoken_of(message)):
        if wording and wording.strip() not in seen:
            seen.add(wording.strip())
            yield wording


def plainly(message: str) -> str:
    """A message without politeness at its end, reasons, and sentences that only tell something."""
    text = _SET_UP.sub("create", message)
    text = _without(_PLEASE, _cut(_cut(_EXAMPLE.sub("", text), _TAIL), _SURE))
    text = _OWN_TEMPLATE.sub(lambda found: f"{found['what']} template" if found["what"].lower() not in _PRONOUNS else found[0], text)
    sentences = [sentence for sentence in sentences_in(text) if sentence.strip()]
    first = next((at for at, sentence in enumerate(sentences) if instructs(sentence)), None)
    if first is not None:
        sentences = [each for at, each in enumerate(sentences) if instructs(each) or not _only_tells(each, after=at > first)]
    return _template_put_back(" ".join(filter(None, map(_without_reasons, sentences))).strip())


def _template_put_back(text: str) -> str:
    """ "Make a note X. Use the Person template for it and put it in People." as "Make a note X from the Person template in People."."""
    found = _USE_TEMPLATE.search(masked(text))
    if found is None or found.start() == 0:
        return text
    template = text[slice(*found.span("template"))]
    rest = text[found.end() :]
    placed = _PUT_IT.match(masked(rest))
    place = f" {rest[slice(*placed.span('place'))]}{rest[placed.end() :]}" if placed is not None else rest
    return f"{text[: found.start()].rstrip(':')} from {template.strip()}{place}"


def spoken_of(message: str) -> str:
    """ "Blue Harbor has rebranded as Harbor Blue: rename their note" as "rename the note [[Blue Harbor]] to [[Harbor Blue]]"."""
    match = _SPOKEN_OF.match(message)
    theirs = _THEIRS if match is not None and _THEIRS.search(match["rest"]) else _THE_NOTE
    if match is None or not _verb_at(match["rest"]) or len(theirs.findall(match["rest"])) != 1:
        return message
    who = f'the note "{match["who"]}"'
    renamed = _RENAMED.fullmatch(match["news"])
    if renamed is not None:
        named = f'{who} to "{renamed["name"]}"'
        bare = regex.sub(rf"(?i)\brename {theirs.pattern}(?! (?:to|as|into)\b)", lambda _: f"rename {named}", match["rest"])
        if bare != match["rest"]:
            return plainly(str(bare))
    learned = _LEARNED.search(match["news"])
    rest = _IT_ADDED.sub(lambda found: f"{found[1]} {learned['what']}", match["rest"]) if learned is not None else match["rest"]
    return plainly(str(theirs.sub(lambda _: who, rest))) if not _limits(match["news"]) else message


def circumstance_last(text: str) -> str:
    """Put a circumstance last: "In Buy wisely, rename the property a to b" as "rename the property a to b in Buy wisely"."""
    found = circumstance(text)
    return text if found is None else f"{found[1].rstrip(' .!')} {found[0]}"


def circumstance(text: str) -> tuple[str, str] | None:
    """A circumstance put first and the instruction behind it; None when a message does not begin with one."""
    match = _FIRST.match(masked(text)) or _FIRST_BARE.match(masked(text))
    if match is None or match["verb"].lower() not in IMPERATIVES | {"please"}:
        return None
    where, rest = text[slice(*match.span("where"))].strip(), text[slice(*match.span("rest"))].strip()
    return _OF.sub("", where[0].lower() + where[1:]), rest


def instructs(sentence: str) -> bool:
    """Whether a sentence begins with a verb in the imperative, or has one behind "so" or an opening circumstance."""
    words = [token.lower for token in tokenise(sentence) if token.kind == "word"]
    at = 0
    while at < len(words) and words[at] in _SOFT:
        at += 1
    hidden = masked(sentence)
    if (at < len(words) and words[at] in IMPERATIVES) or _NEW_NOTE.match(hidden):
        return True
    first = _FIRST.match(hidden) or _FIRST_BARE.match(hidden) or _LEAD_IN.match(hidden) or _WISH.match(hidden)
    if first is None:
        return False
    rest = hidden[first.end() :] if "rest" not in first.groupdict() else first["rest"]
    following = regex.match(r"(?:please\s+)?([\w-]+)", rest.strip())
    return following is not None and following[1].lower() in IMPERATIVES


def _only_tells(sentence: str, *, after: bool) -> bool:
    """Whether a sentence changes nothing of what is asked. Behind the instruction it may ("The soups stay."), unless it is of the speaker."""
    word = next((token.lower for token in tokenise(sentence) if token.kind == "word"), "")
    news = not after and word in _SPEAKERS
    return not _limits(sentence, _LIMITING - _DENYING if news else _LIMITING) and (not after or word in _SPEAKERS)


def limits(news: str) -> bool:
    """Whether news limit an instruction: what somebody tells of themselves ("I no longer need it") does not."""
    return _limits(news, _LIMITING - _DENYING)


def _limits(sentence: str, limiting: frozenset[str] = _LIMITING) -> bool:
    return "?" in sentence or any(token.lower in limiting or token.kind in ("tag", "link") for token in tokenise(sentence))


def _binds(aside: str) -> bool:
    return any(token.lower in _BINDING or token.kind in ("tag", "link", "quoted") for token in tokenise(aside))


def _without_reasons(sentence: str) -> str:
    hidden = masked(sentence)
    news = _NEWS.match(hidden)
    word = next((token.lower for token in tokenise(sentence) if token.kind == "word"), "")
    if (
        news is not None
        and word in _SPEAKERS
        and instructs(sentence[news.end() :])
        and not _limits(sentence[: news.end()], _LIMITING - _DENYING)
    ):
        sentence, hidden = sentence[news.end() :], hidden[news.end() :]
    for opening in (_LEAD_IN, _WISH):
        found = opening.match(hidden)
        if found is not None and not _limits(sentence[: found.end()]) and _verb_at(hidden[found.end() :]):
            sentence, hidden = sentence[found.end() :], hidden[found.end() :]
    for tail in (_REASON, _REMARK):
        found = tail.search(hidden)
        if found is not None and found.start() > 0 and not _binds(sentence[found.start() : found.end()]):
            sentence = sentence[: found.start()] + sentence[found.end() :]
            hidden = masked(sentence)
    return sentence.strip()


def _verb_at(text: str) -> bool:
    found = regex.match(r"(?i)\s*(?:please\s+)?([\w-]+)", text)
    return found is not None and found[1].lower() in IMPERATIVES


def sentences_in(text: str) -> Iterator[str]:
    """Sentences as they are written; marks in quotes, links and brackets end none."""
    hidden = masked(text)
    for found in _SENTENCE.finditer(hidden):
        yield text[found.start() : found.end()].strip()


def _without(pattern: regex.Pattern[str], text: str) -> str:
    """The text without what a pattern finds outside of quotes."""
    for found in reversed(list(pattern.finditer(masked(text)))):
        text = text[: found.start()] + text[found.end() :]
    return text


def _cut(text: str, tail: regex.Pattern[str]) -> str:
    found = tail.search(masked(text))
    return text if found is None or found.start() == 0 else text[: found.start()]


def masked(text: str) -> str:
    """The text with what is in quotes, links and brackets as letters, in the same length."""
    return str(_NAMED.sub(lambda found: "x" * len(found[0]), text))
