"""Clauses that ask for what every plan keeps: that links, embeds and lists which point to a note still work, and that nothing comes twice.

"Links, embeds and the canvas have to keep working.", "and make sure nothing that links to her breaks". They are blanked out in place.
"""

from __future__ import annotations

import regex

_SUBJECT = regex.compile(
    r"(?i)\b(?:(?:back)?links?|linking|embeds?|embedded|references?|canvas(?:es)?|bases?|(?:point|refer|link|lead)s?(?:ing)? (?:to|at|there)"
    r"|mention(?:s|ing)?|queries|properties|attendee lists?|nobody|nothing|everything|anything|whatever)\b"
)
_WORKS = regex.compile(
    r"(?i)\b(?:works?|working|breaks?|broken|breaking|intact|follows?|following along|valid|resolves?|resolving|up[- ]to[- ]date|dangl(?:e|es|ing)"
    r"|dead|unresolved|get lost|be lost|lost|points? to (?:it|them|her|him|the (?:new|right) (?:name|note|place|file|one)))\b"
)
_WISHED = regex.compile(
    r"(?i)\b(?:must|should|have to|has to|needs? to|ought to|may|shall|still|keeps?|sure|ensure|care|careful|so that|such that|no|nothing|without|with|follow)\b"
)
_STILL = regex.compile(r"(?i)\b(?:(?:still|keep|keeps|continue to|go on) (?:on )?work(?:s|ing)?|stays? intact|remains? intact)\b")
_TWICE = regex.compile(r"(?i)\b(?:nothing|no ?body|no note|none|not)\b.*\b(?:twice|double|doubled|duplicated)\b")
_LIMITS = regex.compile(
    r"(?i)\b(?:except|only|unless|apart|but not|instead|other than|delete|remove|move|rename|replace|copy|create|add|set)\b"
)
_TAIL = regex.compile(
    r"(?i)(?:(?:[,;:–—-]\s*|\s)(?:(?:and|but|while|though)\s+)?(?:please\s+)?"
    r"(?:mak(?:e|ing) (?:sure|certain)|ensur(?:e|ing)|see(?:ing)? to it|tak(?:e|ing) care|be(?:ing)? careful|check that|so that|such that|but so that"
    r"|without (?:breaking|losing|damaging)|with (?:all|every|its|the|their) links?)"
    r"|(?:[,;:–—-]\s*(?:(?:and|but|while|though)\s+)?|\s(?:and|but|while|though)\s+)(?:nothing|no (?:links?|notes?)|none|(?:all|every|any)(?: of)?(?: the| its| their| my)? links?"
    r"|(?:the |its |their |my |existing )?(?:links?|embeds?)(?:,| and| (?:must|should|have to|need to))))\b.*$"
)
_SENTENCE = regex.compile(r"[^.!?;\n]+(?:[.!?](?!\s|$)[^.!?;\n]*)*[.!?;\n]*\s*")
_ASSURING = regex.compile(
    r"(?i)^\s*(?:and\s+|but\s+|please\s+)*(?:mak(?:e|ing) (?:sure|certain)|ensure|see to it|take care|be careful|keep|don['’]t|do not)\b"
)


def without_promises(text: str, hidden: str) -> str:
    """`text` with such sentences and clauses blanked; `hidden` is the text with names and quotes masked, in the same length."""
    kept = text
    for number, sentence in enumerate(_SENTENCE.finditer(hidden)):
        start, end = sentence.span()
        tail = None if number and _promises(sentence[0]) else _TAIL.search(sentence[0])
        if number and _promises(sentence[0]):
            kept = _blanked(kept, start, end)
        elif tail is not None and tail.start() > 0 and _promises(tail[0]):
            kept = _blanked(kept, start + tail.start(), end)
    return kept


def _promises(clause: str) -> bool:
    """Whether a clause only wishes that things keep working."""
    if _LIMITS.search(_ASSURING.sub("", clause)) or "?" in clause:
        return False
    if _TWICE.search(clause) or _STILL.search(clause):
        return True
    return all(pattern.search(clause) for pattern in (_SUBJECT, _WORKS, _WISHED))


def _blanked(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]
