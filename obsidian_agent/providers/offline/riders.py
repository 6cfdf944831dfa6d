"""Clauses that ask for what every plan gives anyway: links keep working, the rest stays as it is, nothing is overwritten.

They are taken out before matching, so that they neither count as unexplained nor end up in a slot. A clause that would limit a plan
("except the drafts") is none of these and makes the matcher unsure.
"""

from __future__ import annotations

import regex

from obsidian_agent.providers.offline.assurances import without_assurances
from obsidian_agent.providers.offline.framing import masked
from obsidian_agent.providers.offline.lexicon import IMPERATIVES
from obsidian_agent.providers.offline.promises import without_promises

_LINKS = (
    r"(?:(?:all|every|any|the|my|its|their|of|existing|internal|incoming|other|heading|block|note) )*(?:back)?links?"
    r"(?: (?:to|in|on|from|of) (?:it|them|the note|this note|that note|the [\w-]+))?"
)
_NOT_SOME = r"(?![^.;]{0,60}\b(?:that|which) (?:no|do|does|don['’]t|doesn['’]t|are|is|can['’]?t|cannot|lead|leads|points?|go|goes)\b)"
"""Not where certain links are meant: "fix the links that don't work" is an instruction of its own."""

_OK = r"(?:working|work|intact|valid|alive|unbroken|up to date|correct|functional)"
_REST = r"(?:everything|anything|all|nothing|the rest)(?: else)?(?: (?:in|of) (?:them|it|these|those|the notes?|the files?))?"
_REST_OF_TAGS = r"(?:code(?: blocks?)?|other tags|the other tags|similar tags)"
_KEPT = r"(?:alone|as (?:it|they) (?:is|are|was|were)|unchanged|untouched|the same|in place)"

_RIDERS = tuple(
    regex.compile(rf"(?:[,;:.\-–—(]\s*)?(?:\b(?:and|but|please|so that|also)\s+)*{pattern}\b\)?", regex.IGNORECASE)
    for pattern in (
        rf"(?:keep|keeping|leave) {_LINKS} {_OK}"
        r"(?:,? (?:also|even|including) (?:the ones|those|links) in (?:the )?(?:properties|frontmatter|yaml|canvases))?",
        rf"(?:update|updating|fix|fixing|adjust|adjusting|correct|rewrite) {_LINKS}(?: too| as well| accordingly)?{_NOT_SOME}",
        rf"(?:keep|keeping|preserve|preserving|retain) {_LINKS}(?= *(?:$|[.;!)]))",
        r"(?:with|including|and) (?:all )?(?:of )?(?:its |the |their |any )?(?:nested|sub-?|child) ?tags?(?: too| as well)?",
        rf"{_LINKS} (?:must|should|have to|need to) (?:still )?(?:keep on |keep |stay |remain |be |continue to )?{_OK}",
        rf"make sure (?:that )?{_LINKS} (?:still |keep |stay |remain |are )*{_OK}",
        rf"without (?:breaking|losing|damaging|changing|touching) (?:{_LINKS}|anything(?: else)?)",
        r"(?:do not|don't|don’t) (?:break|touch|change|modify|lose|overwrite|damage) "
        r"(?:anything|any other notes?|other notes?|the rest|any links?|existing (?:notes?|files?))(?: else)?",
        r"nothing (?:else )?(?:may|must|should|can|shall|is to) (?:break|be broken|change|be changed|be touched|get lost|be lost)",
        rf"(?:leave|keep|leaving|keeping) {_REST} {_KEPT}",
        rf"{_REST} (?:must|should|has to|is to|may) (?:stay|remain|be(?: left)?) {_KEPT}",
        r"(?:change|touch|modify) nothing else",
        rf"(?:leave|keep|leaving|keeping) the (?:text|texts|contents?|body|wording)(?: (?:inside|in|of|within) (?:the|this|that|their|its) notes?(?: itself)?)? {_KEPT}",
        rf"{_REST_OF_TAGS}(?:,? and {_REST_OF_TAGS})? (?:must|should|have to) "
        rf"(?:stay|remain|be left) {_KEPT}",
        r"(?:i|we) (?:do not|don't|don’t|no longer) (?:need|want) (?:it|them|this|that)(?: any ?more| any longer| now)?",
        r"if (?:it|they|that|the folder|the note) (?:does not|doesn't|doesn’t|do not|don't) (?:yet )?exist(?: yet| already)?",
        r"if (?:needed|necessary)",
        r"(?:keep|keeping|preserve|preserving) (?:its|their|the|the same|the old) (?:current |old |same )?(?:values?|contents?)",
        r"(?:nowhere|no ?where) else",
        r"(?:all )?(?:nested|sub-?|child) ?tags? (?:included|too|as well)",
        r"(?:also )?(?:counting|including) (?:the |all )?(?:nested|sub-?|child) ?tags?(?: (?:like|such as) #?[\w/-]+)?(?: too| as well)?",
        r"in (?:the )?(?:properties|frontmatter)(?: as well as| and| and also) in (?:the )?(?:text|body|bodies)",
        r"in (?:the )?(?:text|body|bodies)(?: as well as| and| and also) in (?:the )?(?:properties|frontmatter)",
        r"(?:no|none of the) notes? (?:should|must|may|shall|can) (?:end up with|have|carry|get) (?:it|the (?:same )?tag|a tag|them) twice",
        r"(?:all )?(?:the )?(?:other|remaining) (?:folders?|notes?|files?) (?:keep|keeps|stay|remain)(?: (?:their|the|its) (?:own )?[\p{L}]+| as they are| untouched| unchanged)?",
        r"without (?:touching|changing|losing|removing|replacing) (?:the|any)(?: of the)? (?:[\p{L}]+ )?"
        r"(?:ones |values |entries |[\p{L}]+ )?(?:that|which) (?:are|is) (?:already )?there(?: already)?",
        r"(?:make|making) sure (?:that )?(?:every|each|all|the) (?:of the )?links? (?:follow|follows|keep working|keeps working|still works?)",
        r"\(?(?:the |all |its |any )?(?:nested tags?|sub-?tags?|child tags?)(?: (?:like|such as) #?[\w/-]+)? "
        r"(?:count|counts|belong|belongs|go|goes|included?)(?: (?:as well|too|to it|along|also))?",
        r"nothing else (?:should|must|may|shall|is to|has to) (?:be )?(?:changed?|touched|affected|modified|altered)",
        r"(?:one|a) bullet (?:each|per note|for each)",
        r"(?:and )?(?:that['’]s|that is) (?:it|all)",
        r"(?:thank you|thanks|cheers)(?: very much| a lot| in advance)?",
    )
)


_ANNOUNCED = regex.compile(
    r"^\s*(?:please\s+)?(?:archive|tidy(?: up)?|clean(?: up)?|cleanup|organi[sz]e|reorgani[sz]e|restructure|sort(?: out)?|file|set up|update|fix|"
    r"housekeeping|spring cleaning|maintenance|refactor(?:ing)?|rename|move|collect|prepare|start)\b[^:;\n\"“]{0,60}:\s+(?=(?:please\s+)?"
    rf"(?:{'|'.join(sorted(IMPERATIVES))})\b\s+\S)",
    regex.IGNORECASE,
)
"""An intention before a colon, which the instruction behind it then spells out: "Archive the old budgets: move …"."""

_NOT_MEANT = regex.compile(
    r"(?<=[.;!]\s)(?P<what>\p{Lu}[^.;:!?]{1,60}?) (?P<not>(?:are|is) (?:not|no) (?:an? |the |of )*[\p{L}-]+(?: [\p{L}-]+)?)(?=\s*(?:$|[.;!]))"
)
_TELLING = regex.compile(r"\b(?:that|which|who|there)\b", regex.IGNORECASE)
_STAYS = "stay put"


def _as_exception(match: regex.Match[str]) -> str:
    """A sentence that says what something is not ("Templates are not people") as the exception that it means, in the same length."""
    if _TELLING.search(match["what"]):
        return str(match[0])
    return f"{match['what']} {_STAYS.ljust(len(match['not']))}"


_QUOTED_PROPERTY = regex.compile(
    r"""["“'‘`](?P<pair>[\p{L}][\p{L}\p{N} _-]{0,30}: ?[^"”'’`\n]{1,60})["”'’`](?=,? (?:to|in|into|on) (?:the |its |their )?(?:properties|frontmatter|metadata|yaml))"""
)
"""A property and its value in one pair of quotes: they are two things."""


_STAYING = regex.compile(
    r"(?i)(?<=\b(?:except|apart|but not|excluding|unless)\b[^.;]{1,80})[,;.]?\s*(?:and |but )?(?:those|they|these|it|that one|that)(?: (?:can|should|must|may|shall|all|both|just))* "
    r"(?:stays?|remains?|keeps?) (?:where (?:they are|it is)|there|put|in place|as (?:they are|it is)|untouched|unchanged|in [\p{L}]+)"
)
"""What was just left out, told once more: "except the ones from 2025, those stay where they are"."""

_GONE = regex.compile(
    r"(?i)(?<=\b(?:move|take|transfer|bring|shift|put)\b.*)[.,;]\s*(?:and |so that )?(?:they|it|the tasks?|those|these) (?:should|must|shall)?(?: then| all| both)* ?"
    r"(?:be gone|disappear|vanish|not (?:stay|remain|be)|no longer (?:be|stay)) (?:from|in|there|on)\b[^.;]*",
    regex.DOTALL,
)
"""What moving does anyway: "They should be gone from yesterday."."""

_ONLY_THERE = regex.compile(
    r"(?i)(?:[,;]\s*)?\b(?:(?:but|and) )?only\b(?= (?:in|within|inside|under|for|on|from|among) )|(?<=\b(?:in|within|inside|under)\b[^.;,]{1,60}) only(?=\s*[.!]?\s*$)"
)
"""The scope is what a plan keeps to anyway: "but only in Recipes"."""

_EVERYWHERE = regex.compile(
    r"(?i)\b(?:everywhere|wherever|in every note|in all (?:my )?notes|in any note)(?: (?:where|that))? "
    r"(?:it|they|the tag)(?:['’]s| is| are|) (?:used|occurs?|appears?|found|there|set|mentioned)"
)
_IN_ITS_PLACE = regex.compile(
    r"(?i)\b(?:leave|put|keep|leaving|insert|with) (?:behind )?(?:a|the|only a) link(?: (?:to (?:it|that|the (?:new )?(?:note|one|file))|there))?"
    r" (?:in (?:its|the|their) (?:old )?place|instead|where it was|in the (?:old|original|first) note|behind)"
)


_ARROW = regex.compile(r"(?<=\s)(?:-{1,2}>|=>)(?=\s)")


def without_riders(instruction: str) -> str:
    """The instruction with these clauses blanked out, and exceptions in one form, so that offsets stay."""
    text: str = _ANNOUNCED.sub(lambda match: " " * len(match[0]), instruction)
    text = without_assurances(without_promises(text, masked(text)))
    text = _ARROW.sub(lambda match: "→".ljust(len(match[0])), text)
    for clause in (_STAYING, _GONE, _ONLY_THERE):
        text = clause.sub(lambda match: " " * len(match[0]), text)
    text = _EVERYWHERE.sub(lambda match: "everywhere".ljust(len(match[0])), text)
    text = _IN_ITS_PLACE.sub(lambda match: "leave a link".ljust(len(match[0])), text)
    text = _QUOTED_PROPERTY.sub(lambda match: f" {match['pair']} ", text)
    text = _NOT_MEANT.sub(_as_exception, text)
    for rider in _RIDERS:
        text = rider.sub(lambda match: " " * len(match[0]), text)
    return text
