"""Clauses that ask for nothing to happen besides: "Nothing else changes.", "the values stay", "No other change.", "leave everything else".

Every plan keeps what it does not name, so they are blanked out in place. What names a thing of its own ("the soups stay") is an exception
and none of these.
"""

from __future__ import annotations

import regex

from obsidian_agent.providers.offline.framing import masked

_THE = r"(?:(?:the|its|their|all|any|every|my|his|her|of) )*"
_OF_EVERYTHING = (
    r"(?:(?:link |visible |property )?(?:values?|texts?|words?|wordings?|names?|titles?|filenames?|body|bodies|contents?|targets?|formatting|order)"
    r"|(?:web|external|outside|internet) (?:links?|urls?)|urls?|what (?:it|they) says?|notes themselves|note itself)"
)
_OTHERS = (
    r"(?:(?:other|remaining|existing|rest of the) (?:\w+ )?(?:ones|notes?|files?|tags?|aliases|alias|properties|property|fields?|values?|entries|folders?|lines?|links?|text|texts)"
    r"|(?:ones|tags|aliases|properties|fields|values) (?:that|which) (?:are|is|exist) (?:already )?(?:there|set|in place)?|others|rest)"
)
_AS_IT_IS = r"(?: (?:exactly |just )?(?:as (?:it|they) (?:is|are|was|were)|the same|untouched|unchanged|there|in place|put|alone|intact|like that|where (?:it|they) (?:is|are)))?"
_STAYS = (
    r"(?:(?:should|must|may|can|is to|are to|have to|has to|shall) )?(?:all )?(?:(?:just|simply) )?"
    rf"(?:stays?|remains?|be left|be kept|(?:is|are) (?:left|kept)){_AS_IT_IS}"
)
_NOT_DONE = (
    r"(?:(?:are|is) not|aren['’]t|isn['’]t|(?:must|should|may|shall|will) not be|mustn['’]t be|shouldn['’]t be|won['’]t be|(?:do|does) not|don['’]t|doesn['’]t) "
    r"(?:be )?(?:to be )?(?:touch(?:ed)?|change[sd]?|affected|modified|altered|removed?|deleted?|moved?)"
)
_NOTHING = (
    r"nothing (?:else|more)(?: (?:please|at all|in (?:it|them|there)))?(?: (?:changes?|moves?|happens?|(?:is|gets?|has|should|must|may|can|shall|is to)"
    r"(?: to)?(?: be)? (?:change|touch|move|delete|affect|modify|modifie|alter|remove|rename)(?:d|ed)?))?"
    r"|(?:make |do |with )?no (?:other|further|more) (?:changes?|edits?)(?: (?:please|at all|to (?:it|them)))?"
    r"|(?:please )?leave (?:everything|anything|all|the rest|all the rest|the others?)(?: else)?(?: (?:alone|untouched|unchanged|in place|as (?:it|they) (?:is|are|was|were)))?"
    r"|(?:all |every |the |its |their |any )*(?:back)?links? (?:will |should |must )?(?:just )?(?:follow|follows|following|keep up|go along)(?: along)?"
    r"|(?:only|just) (?:that|this)(?: one)?|(?:keep|keeping|preserve|preserving) (?:the|its|their|all) (?:old |current )?(?:values?|order|formatting)"
)
_CLAUSE = regex.compile(
    rf"(?i)(?:(?<=^|[.;!?])\s*|[,;:–—(]\s*|\s-\s+)(?:(?:and|but|while|though|please) )*"
    rf"(?:{_NOTHING}|{_THE}(?:{_OF_EVERYTHING}|{_OTHERS}) (?:{_STAYS}|{_NOT_DONE}))\)?(?=\s*(?:$|[.;!),]))"
)
_PLEASE = regex.compile(r"(?i)(?<=\S)[,\s]+please(?=\s*[.!?]*\s*$)")


def without_assurances(text: str) -> str:
    """The text with such clauses, and a "please" at the end, blanked out, so that offsets stay."""
    for pattern in (_PLEASE, _CLAUSE):
        for found in pattern.finditer(masked(text)):
            if found.start() > 0:
                text = text[: found.start()] + " " * len(found[0]) + text[found.end() :]
    return text
