"""How much doubt there is that bare words are a name or a text, and do not go on to say something else."""

from __future__ import annotations

import regex

from obsidian_agent.providers.offline.lexicon import DETERMINERS, NEGATIONS, PREPOSITIONS, members, word_set
from obsidian_agent.providers.offline.stretch import Stretch

_DESCRIBING = word_set(
    "a an some more the my few several better another short long this these those its any all every each today's tomorrow's yesterday's"
)
"""Words with which people describe a text instead of giving it: "add a conclusion"."""

_TELLING = (
    PREPOSITIONS | NEGATIONS | word_set("using based template containing that which and or all every each about links tasks so because")
)
"""Words that rarely belong to a name and mostly say something about it."""

_EXPLAINING = word_set("about that which how why what who explaining describing summarising summarizing")
"""Words after which a note's content is described."""

_ENDING = word_set("about throughout across everywhere vault-wide within inside wherever whenever")
"""Words at the end of a bare text that rather say where it is."""

_PARTS = word_set(
    "links tasks todos notes tags headings properties sections paragraphs tables images emojis examples details bullets points comments"
)
"""Parts of a note: as the last word of a bare text they rather ask for such parts to be made up."""

_PICKING = word_set(
    "whatever something anything somewhere someone better best good right correct proper suitable appropriate fitting relevant nicer "
    "shorter longer average sum total number first last latest oldest newest same its their his her according fits"
)
"""Words with which people leave a choice to the reader: "something better", "the right folder"."""

_COUNTED = word_set("one two three other another same next previous parent up top own different right correct")
_INSTRUCTING = word_set("every each all called named tagged into under containing note notes folder whose which that")

_JOINING = frozenset(("and", "then", "but", "or"))
_PLACING = PREPOSITIONS | {"before", "after", "behind", "above"}
_LEADING = frozenset(("to", "into", "from", "of"))
_VERBS = frozenset().union(
    *(members(head) for head in ("create", "rename", "move", "delete", "merge", "split", "replace", "append", "copy", "run"))
)


def adverb(words: Stretch) -> float:
    """The doubt that the last word says how ("quickly") and is no part of a name."""
    return 0.6 if len(words) > 1 and regex.fullmatch(r"[a-z]{3,}ly", words.last.text) else 0.0


def picking(words: Stretch) -> float:
    """The doubt that the words leave a choice instead of giving a name or a value."""
    return 0.0 if _PICKING.isdisjoint(words.lowers) else 0.6


def going_on(words: Stretch) -> float:
    """The doubt that the words go on to say something else: "Trips and move them there"."""
    tokens = list(words)
    return sum(
        0.5 for token, following in zip(tokens, tokens[1:], strict=False) if token.lower in _JOINING and following.text[:1].islower()
    )


def as_name(words: Stretch) -> float:
    """The doubt about words that were called a name being one: they may go on ("… and publish it on the web")."""
    doubt = adverb(words) + picking(words) + (0.75 if explains(words) else 0.0) + _opening(words)
    tokens = list(words)
    for position, token in enumerate(tokens):
        following = tokens[position + 1].text[:1] if position + 1 < len(tokens) else ""
        if token.lower in _JOINING and following.islower():
            doubt += 0.5
        elif token.lower in _TELLING and not token.text[:1].isupper():
            doubt += 0.2
    return doubt


def _opening(words: Stretch) -> float:
    """The doubt about a name that begins like a description: "for each month"."""
    return 0.4 if words.first.lower in _TELLING and not words.first.text[:1].isupper() else 0.0


def as_heading(words: Stretch) -> float:
    """The doubt about bare words being a heading: those of an instruction are not."""
    return 0.4 * sum(token.lower in _INSTRUCTING or token.stem in _VERBS for token in words)


def as_new_name(words: Stretch, *, said: bool) -> float:
    """The doubt about words being a name that nothing has yet. `said`: a noun such as "folder" says so."""
    doubt = adverb(words) + picking(words) + _opening(words)
    if any(word in _TELLING for word in words.lowers):
        doubt += 0.3 if said else 0.8
    doubt += 0.7 if words.lowers[0] in _COUNTED and len(words) == 1 else 0.0
    doubt += going_on(words) + (0.6 if words.first.stem in _VERBS and len(words) > 1 else 0.0)
    if said:
        return doubt + 0.15
    if "/" in words.first.text:
        return doubt + 0.1
    capital = words.first.text[:1].isupper() or words.first.text[:1].isdigit()
    return doubt + (0.15 if capital else 0.5) + 0.1 * (len(words) - 1)


def explains(words: Stretch) -> bool:
    """Whether the words describe content ("a note about whales"): no bare name does."""
    return any(word in _EXPLAINING for word in words.lowers)


def as_text(words: Stretch, *, free: bool) -> float:
    """The doubt about bare words being a text as it is to be written. `free`: the phrase said that a text follows."""
    tokens = list(words)
    plainly = free or (len(words) == 1 and regex.search(r"\w@\w|://", words.raw) is not None)
    doubt = (0.05 if plainly else 0.35) + 0.03 * len(words) + 0.1 * max(0, len(words) - 8)
    doubt += 0.5 * sum(token.lower in NEGATIONS for token in tokens)
    doubt += 0.6 if len(words) == 1 and words.first.kind == "tag" else 0.0
    if len(words) > 1:
        doubt += 0.0 if free else 0.5 * sum(token.kind in ("quoted", "tag", "link") for token in tokens)
        doubt += 0.5 if "about" in words.lowers else 0.0
    doubt += 0.5 if words.first.lower in _DESCRIBING else 0.0
    doubt += 0.7 if len(words) > 2 and words.lowers[0] == "link" and words.lowers[1] == "to" else 0.0
    doubt += 0.6 if words.last.lower in DETERMINERS | PREPOSITIONS | _ENDING else 0.0
    doubt += picking(words) if len(words) > 1 and not free else 0.0
    doubt += 0.5 if words.first.lower in _PLACING else 0.0
    doubt += 0.5 if words.last.lower in _PARTS and not free else 0.0
    doubt += 0.15 * sum(token.lower in _LEADING for token in tokens[1:])
    return doubt + another_order(words)


def another_order(words: Stretch) -> float:
    """The doubt that the words hold another instruction: "the milk and delete Plan"."""
    tokens = list(words)
    pairs = zip(tokens, tokens[1:], strict=False)
    return 0.7 * sum(token.lower in _JOINING and following.stem in _VERBS for token, following in pairs)
