"""Wishes that are no imperatives, as imperatives: "The drafts should be moved to Old", "I'd like A renamed to B", "I want A in Old".

What is wished for stands between; only the verb comes first. A wish for something new ("I'd like a note called X") stays as it is.
"""

from __future__ import annotations

import regex

from obsidian_agent.providers.offline.framing import masked
from obsidian_agent.providers.offline.lexicon import IMPERATIVES, word_set

_IRREGULAR = {
    "put": "put",
    "set": "set",
    "split": "split",
    "cut": "cut",
    "made": "make",
    "written": "write",
    "taken": "take",
    "given": "give",
}
_IRREGULAR |= {"thrown": "throw", "drawn": "draw", "kept": "keep", "found": "find", "gotten": "get", "swept": "sweep"}
_DOUBLED = "bdglmnprt"
_NEW = word_set("a an another one some new two three four five several")


def _participles() -> dict[str, str]:
    found = dict(_IRREGULAR)
    for verb in IMPERATIVES - word_set("put set split cut make write take give throw draw keep find get need"):
        ending = "d" if verb.endswith("e") else "ed"
        found[verb + ending] = verb
        if verb[-1] in _DOUBLED and len(verb) < 6:
            found[verb + verb[-1] + ending] = verb
        if verb.endswith("y"):
            found[verb[:-1] + "ied"] = verb
    return found


_DONE = _participles()
_PARTICIPLE = "|".join(sorted(map(regex.escape, _DONE), key=len, reverse=True))
_PASSIVE = regex.compile(
    rf"(?is)^\s*(?:please,?\s+)?(?P<what>\S.*?)\s+(?:(?:should|must|shall|can|could|may|might|ought to|(?:has|have) to|needs? to|is to|are to)"
    rf"(?:\s+(?:now|please|all|both|also|then))*\s+be|(?:(?:should|must) )?gets?)\s+(?P<verb>{_PARTICIPLE})\b(?P<rest>.*)$"
)
_CAUSATIVE = regex.compile(
    rf"(?is)^\s*(?:(?:i|we)(?:['’]d| would| do)?\s+(?:like|love|want|need|prefer|wish)|(?:can|could|may) (?:i|we) (?:have|get)|(?:could|can|would) you (?:please )?(?:have|get)"
    rf"|(?:please )?(?:have|get))\s+(?:to (?:have|see|get)\s+)?(?P<what>\S.*?)\s+(?:to be\s+)?(?P<verb>{_PARTICIPLE})\b(?P<rest>.*)$"
)
_PLACED = regex.compile(
    r"(?is)^\s*(?:(?:i|we)(?:['’]d| would| do)?\s+(?:like|love|want|need|prefer|wish)|(?:can|could|may) (?:i|we) (?:have|get))\s+(?:to have\s+)?"
    r"(?P<what>\S.*?)\s+(?:to (?:go|live|be|sit|stay)\s+)?(?P<joint>in|into|inside|under)\s+(?P<rest>.+)$"
)
_LIVING = regex.compile(
    r"(?is)^\s*(?P<what>\S.*?)\s+(?:should|must|shall|ought to|needs? to|(?:has|have) to)(?:\s+(?:now|all|both))?\s+(?:go|live|be|sit|be found|be kept|be stored|end up|get)\s+"
    r"(?P<joint>in|into|inside|under)\s+(?P<rest>.+)$"
)
_GOING = regex.compile(r"(?is)^\s*(?P<what>\S.*?)\s+(?:goes|go|belongs?|moves?)\s+(?P<joint>in|into|inside|under|to)\s+(?P<rest>.+)$")
_RENAME_FROM = regex.compile(
    r"(?is)^(?P<verb>\s*(?:please\s+)?(?:rename|retitle|change))\s+(?:(?:the|her|his|its|their|this|my|our)\s+)?(?:(?:name|title)(?: of)?\s+)?"
    r"(?P<noun>(?:note|file|page|folder|entry|it)\s+)?from\s+(?P<old>.+?)\s+(?P<joint>to|into)\s+(?P<new>.+)$"
)
_RETAGGED = regex.compile(
    r"(?i)^\s*(?:everything|whatever|anything|(?:all |every |each )?notes?)(?: that (?:is|are))? (?:tagged|with the tag) (?P<old>#?[\w/-]+) "
    r"(?:should|must|shall) (?:be tagged|get the tag|have the tag) (?P<new>#?[\w/-]+) instead\s*[.!]?\s*$"
)
_OWN_FOLDER = regex.compile(
    r"(?i)\b(?:its|their|an?|the)\s+(?:own|separate|extra)\s+(?:new\s+)?folder\s*[,:]?\s+(?:called |named )?(?=[\p{L}\d'\"“_])"
)


_PLACE = regex.compile(r"(?i)\b(?:in|on|of|from|to|under)\b")
_NEW_NOTE = regex.compile(
    r"(?is)^\s*(?:please\s+)?(?:an?\s+)?(?P<new>new|another)\s+(?P<kind>(?:[\w-]+\s+){0,3}?(?:note|page|entry|file|document|folder))\s*[:,]?\s+(?:called\s+|named\s+|titled\s+)?(?P<rest>\S.*)$"
)
_SPELT_OUT = regex.compile(
    r"(?is)^\s*(?:please\s+)?(?:start|create|make|begin|set up|open|write|prepare)\s+[^:\"“]{3,60}:\s+(?:an?\s+)?(?:new\s+)?(?P<rest>(?:[\w-]+\s+){0,2}?(?:note|page|folder|file)\s+\S.*)$"
)
_ON_WHAT = regex.compile(
    r"(?is)^\s*(?:please\s+)?(?P<verb>[\w-]+)\s+(?P<what>(?:the |my |this )?[^:,;.]{2,50}?)\s*:\s+(?P<rest>(?P<next>[\w-]+)\b[^:]*)$"
)
_TAKEN = regex.compile(
    r"(?is)^\s*(?:please\s+)?(?:take|grab|find|get|pick|select|go to)\s+(?P<what>\S.*?)(?:,| and)(?: then)?\s+(?P<verb>[\w-]+)\s+(?:it|them|that|those)\b\s*(?P<rest>.*)$"
)
"""What is done to something, told in two steps: "take A and rename it B"."""

_SO_THAT = regex.compile(r"(?is):\s+(?:whatever|everything that|anything that|so|that is|i\.e\.|meaning)\b[^.;]*?(?P<end>[.!]?\s*)$")


def imperative(text: str) -> str:
    """The wish as an imperative; the text itself when it is none."""
    said = _said(text)
    return said if said == text else said.rstrip(" ?")


def _said(text: str) -> str:
    new = _NEW_NOTE.match(masked(text))
    if new is not None:
        return f"create a {new['new']} {new['kind']} called {text[new.start('rest') :]}"
    spelt = _SPELT_OUT.match(masked(text))
    if spelt is not None:
        return f"create a new {text[spelt.start('rest') :]}"
    on_what = _ON_WHAT.match(masked(text))
    if on_what is not None and {on_what["verb"].lower(), on_what["next"].lower()} <= IMPERATIVES:
        what, rest = text[slice(*on_what.span("what"))], text[slice(*on_what.span("rest"))]
        return rest if _PLACE.search(masked(rest)) else f"{rest.rstrip(' .!')} in {what}"
    taken = _TAKEN.match(masked(text))
    if taken is not None and taken["verb"].lower() in IMPERATIVES:
        return f"{taken['verb']} {text[slice(*taken.span('what'))]} {text[taken.start('rest') :]}"
    explained = _SO_THAT.search(masked(text))
    if explained is not None:
        return text[: explained.start()]
    said = _OWN_FOLDER.sub("the folder ", text) if _OWN_FOLDER.search(masked(text)) else text
    retagged = _RETAGGED.match(text)
    if retagged is not None:
        return f"rename the tag {retagged['old']} to {retagged['new']}"
    renamed = _RENAME_FROM.match(masked(said))
    if renamed is not None:
        old, new = (said[slice(*renamed.span(name))] for name in ("old", "new"))
        return f"rename {renamed['noun'] or ''}{old} to {new}"
    hidden = masked(said)
    for pattern in (_CAUSATIVE, _PASSIVE):
        found = pattern.match(hidden)
        if found is not None and _is_object(found["what"]):
            what, rest = said[slice(*found.span("what"))], said[slice(*found.span("rest"))]
            verb = _DONE[found["verb"].lower()]
            return f"rename {what} to {rest.strip()}" if verb == "call" else f"{verb} {what}{rest}"
    for pattern in (_PLACED, _LIVING, _GOING):
        found = pattern.match(hidden)
        if found is not None and _is_object(found["what"]):
            what, rest = said[slice(*found.span("what"))], said[slice(*found.span("rest"))]
            return f"move {what} to {rest}"
    return said


def _is_object(what: str) -> bool:
    """Whether words are what something is done to: nothing new, no sentence with a verb of its own."""
    words = what.casefold().split()
    return words[0] not in _NEW | IMPERATIVES | {
        "to",
        "if",
        "i",
        "we",
        "you",
        "it",
        "they",
        "how",
        "what",
        "which",
        "why",
        "where",
        "when",
        "who",
    }
