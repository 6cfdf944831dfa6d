"""Questions that are put as wishes and orders: "I'd like to know which tags there are", "could you check if …", "before I start, tell me …".

They become the plain question ("which tags are there") or an order to show what is named. A message that is none of these stays.
"""

from __future__ import annotations

import regex

from obsidian_agent.providers.offline.framing import masked
from obsidian_agent.providers.offline.lexicon import IMPERATIVES

_WISH = (
    r"(?:(?:i|we)(?:['’]d| would)?(?: just| also| first)? (?:like|want|need|love|wish|have) (?:you )?to (?:know|see|find out|learn|check|hear|look up|be told|tell me|show me)"
    r"|(?:please )?(?:can|could|would|will) you (?:please |kindly |quickly )*(?:tell|show|give|let) (?:me|us)(?: know| see)?"
    r"|(?:please )?(?:tell|let|show) (?:me|us)(?: know| see)?|(?:can|could|may) (?:i|we) (?:please )?(?:see|know|have|get)"
    r"|(?:please )?(?:can|could|would|will) you (?:please |kindly |quickly )*(?:check|look up|look for|look|find out|search for|see)"
    r"|(?:please )?(?:check|look up|look|find out|see|remind me)|do you know|i wonder|i(?:['’]m| am) (?:curious|wondering|interested in)|any idea)"
)
COURTESY = regex.compile(r"(?i)^\s*(?:hi|hey|hello|ok|okay|please|kindly)?[\s,]*(?:can|could|would|will) (?:you|we)(?: please| kindly)?\s+")
"""How a polite order begins."""

_ASKED = regex.compile(rf"(?is)^\s*(?:[^.:;!?]{{3,60}}[,:]?\s+)??{_WISH}\b\s*(?:[,:–—-]\s*)?(?P<rest>\S.*?)\s*[.?!]*\s*$")
_BEFORE = regex.compile(r"(?is)^\s*(?:before|so that|so|first|because|since|as)\b[^:]*$")
_QUESTION = regex.compile(r"(?i)^(?:what|which|who|whose|when|where|how)\b(?!['’]s)")
_WHETHER = regex.compile(r"(?i)^(?:if|whether)\s+")
_INVERTED = regex.compile(r"(?is)^(?P<who>what|who|when|where)\s+(?P<what>(?:the|my|its|all)\s+.+?)\s+(?P<verb>is|are|was)$")
_HOW = regex.compile(
    r"(?is)^how\s+(?P<what>(?!(?:many|much|often|long|is|are|do|does|to|can)\b).+?)\s+(?P<verb>is|are)\s+(?P<done>[\w-]+ed)$"
)


def asked(message: str) -> str | None:
    """The plain question, or an order to show what is wished for; None when nothing is asked."""
    hidden = masked(message)
    match = _ASKED.match(hidden)
    if match is None:
        return None
    opening = message[: match.start("rest")]
    first = regex.match(r"(?i)\s*(?:please\s+)?([\w-]+)", opening)
    told = regex.search(rf"(?i){_WISH}", opening)
    if (
        told is not None
        and told.start() > 0
        and not _BEFORE.match(opening[: told.start()].rstrip(" ,:"))
        and opening[: told.start()].strip(" ,:").lower() not in ("please", "and", "now")
    ):
        return None
    rest = message[slice(*match.span("rest"))]
    if _WHETHER.match(rest):
        return f"{_WHETHER.sub('', rest)}?"
    if _QUESTION.match(rest):
        inverted, how = _INVERTED.match(rest), _HOW.match(rest)
        if inverted is not None:
            return f"{inverted['who']} {inverted['verb']} {inverted['what']}?"
        return f"how {how['verb']} {how['what']} {how['done']}?" if how is not None else f"{rest}?"
    verb = regex.match(r"[\w-]+", rest)
    if (
        first is None
        or (verb is not None and verb[0].lower() in IMPERATIVES | {"to", "the way"})
        or regex.match(r"(?i)in order|that\b", rest)
    ):
        return None
    return f"show {rest}"
