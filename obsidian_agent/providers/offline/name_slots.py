"""Slots that hold names: of notes, folders, templates and macros that exist, and of what is to be made."""

from __future__ import annotations

from dataclasses import replace

import regex

from obsidian_agent.providers.offline import dates, doubts, set_modifiers, type_nouns
from obsidian_agent.providers.offline.lexicon import CALLED, DETERMINERS, FOLDER_NOUNS, NOTE_NOUNS, word_set
from obsidian_agent.providers.offline.names import Closeness, NameIndex, NameSort, names_out_of_bounds
from obsidian_agent.providers.offline.readings import Reading, Surroundings
from obsidian_agent.providers.offline.stretch import Stretch

LONGEST_NAME = 10
"""Words of a bare name at most."""

_CLOSENESS_COST = {Closeness.EXACT: 0.0, Closeness.STEMS: 0.2, Closeness.LOOSE: 0.3}
_NOTE = r"(?:note|file|page|document)"
_THIS = regex.compile(
    rf"(?:this|the current|current|the active|active|the open|my current)(?: (?:{_NOTE}|one))?|the (?:open|current) {_NOTE}|here"
)
_THIS_FOLDER = regex.compile(r"(?:this|the current|current|the active|the same) (?:folder|directory)")
_ROOT = regex.compile(
    r"(?:the )?(?:vault )?root(?: folder| of the vault| of my vault)?|(?:the |my )?(?:whole |entire )?vault|everywhere"
    r"|(?:all|every) (?:my )?notes?|(?:the )?top(?:most)? level(?: of (?:the|my) vault)?|(?:the )?top(?: of (?:the|my) vault)?|(?:the )?root level"
)
_PERSONS = frozenset(("i", "we", "he", "she", "they"))
"""Words that tell what somebody did; no bare name of a new note holds them: "everyone I met in December"."""
BELOW_IT = "./"
"""How the name of a folder begins that lies in the folder which the instruction is about."""

_FOLDER_WORD = r"(?:an?|the|its|their|my)?\s*(?:new\s+|own\s+|separate\s+)*(?:sub)?(?:folder|directory)"
_BELOW_CALLED = regex.compile(
    rf"(?i){_FOLDER_WORD}\s+(?:of|in|inside|under|below|within)\s+(?P<place>.+?),?\s+(?P<called>called|named|titled)\s+(?P<name>.+)"
)
_CALLED_BELOW = regex.compile(
    rf"(?i){_FOLDER_WORD}\s+(?:(?P<called>called|named|titled)\s+)?(?P<name>[^,]+?),?\s+(?:(?:of|in|inside|under|below|within)\s+(?P<place>.+)|at\s+(?P<place>.+))"
)
_ITS = regex.compile(r"(?i)it|them|there|that folder|the same folder|the folder|that one|this folder")
_MY_NOTES = regex.compile(r"(?:(?:[Aa]ll|[Ee]very(?: one)? of) )?(?:of )?my (?:own )?notes")
"""Not a folder called Notes, which would be said so."""

_DAILY = regex.compile(
    r"(?:the |my )?(?:(?P<before>.+?)(?:'s)? )?(?:daily note|daily page|journal|journal note)(?: page)?"
    r"(?: (?:of|for|from|on))?(?: (?P<after>.+))?"
)
_DAYS_NOTE = regex.compile(r"(?i)(?:the |my )?(?P<day>.+?)'s (?P<name>(?!note$|page$|entry$|daily note$)\S.*)")
_NOTE_OF_DAY = regex.compile(
    r"(?i)(?:the |my )?(?:(?:note|minutes) (?:of|for|from) (?:the |my )?)?(?P<name>\S.*?)(?: (?:note|minutes|meeting note))? (?:of|from|on|dated) (?:the )?(?P<day>\S.*)"
)
_DAYS_OWN = regex.compile(r"(?P<before>today|tomorrow|yesterday)'s(?P<after>(?!))?(?: (?:note|page|one))?")
_NAME_NOUNS = CALLED | word_set("name title new the a an as by under")
_SEVERAL = frozenset(("notes", "files", "pages", "documents"))
"""Nouns that are seldom said of one note."""

_EVERYTHING = frozenset(("everything", "all", "anything", "it all", "all of it", "them", "it", "nothing", "something"))
_PARTING = word_set("please now then instead too thanks")
_INSIDE = frozenset(("in", "inside", "from"))
_ABOUT = frozenset(("on", "about", "for"))
_OPEN = frozenset(("this", "current", "open", "active"))
_MACRO_NOUNS = frozenset(("macro", "saved", "action"))


def note(words: Stretch, index: NameIndex, around: Surroundings) -> Reading | None:
    """A note that exists, the open one, or the daily note of a day. What is called a folder is none."""
    if words.last.lower in FOLDER_NOUNS and not words.exact and _named(words, index, ("folder",)) is not None:
        return None
    known = (
        _this_note(words, around)
        or _this_kind(words, index, around)
        or _daily_note(words, index, around)
        or _named(words, index, ("note",))
    )
    if known is None or known.issue in ("unknown", "ambiguous"):
        return _dated(words, index, around) or _of_kind(words, index) or known
    return _rather_a_kind(known, words, index) or known


def _rather_a_kind(known: Reading, words: Stretch, index: NameIndex) -> Reading | None:
    """The same doubted, where a template has the name of the kind that it makes: "the project" is hardly the template Project."""
    folder = index.names.templates
    if folder is None or not isinstance(known.value, str) or not known.value.startswith(f"{folder}/") or words.exact:
        return None
    if any("template" in lower for lower in words.lowers) or not list(type_nouns.kinds(words.trimmed(DETERMINERS).raw, index)):
        return None
    return replace(known, cost=known.cost + 0.4, issue="near", doubt=f"{known.value} is a template")


def entry(words: Stretch, index: NameIndex, around: Surroundings) -> Reading | None:
    """A note, folder or other file that exists; "the folder X" is a folder, "the note X" a note."""
    found = _this_note(words, around) or _daily_note(words, index, around) or _dated(words, index, around)
    if found is not None:
        return found
    said = words.lowers
    if words.spoken in _EVERYTHING:
        return None
    edges = {said[0], said[min(1, len(said) - 1)]}
    folder, file = bool((edges | {said[-1]}) & FOLDER_NOUNS), bool(edges & NOTE_NOUNS)
    if folder == file:
        named = _named(words, index, ("note", "folder", "file"))
        return (_of_kind(words, index) or named) if named is None or named.issue == "unknown" else named
    named = _named(words, index, ("folder",) if folder else ("note", "file"))
    if folder and edges.isdisjoint(FOLDER_NOUNS) and (named is None or named.issue == "unknown"):
        return _placed(words, index, ("note",)) or named  # "Plan from the Projects folder"
    return named


def folder(words: Stretch, index: NameIndex, around: Surroundings, *, existing: bool, free: bool) -> Reading | None:
    """A folder; a new one unless it must be `existing`."""
    if _ROOT.fullmatch(words.spoken):
        return Reading(0.0, "", words.raw)
    if _THIS_FOLDER.fullmatch(words.spoken):
        if around.active_file is None:
            return Reading(0.3, None, words.raw, issue="inactive")
        return Reading(0.0, around.active_file.rpartition("/")[0], words.raw, "activeFolder")
    if _MY_NOTES.fullmatch(words.raw):
        return Reading(0.0, "", words.raw)
    found = _named(words, index, ("folder",))
    if (found is None or found.issue == "unknown") and not existing:
        found = _new_below(words, index, around) or found
    if found is None or found.issue != "unknown" or existing:
        return found
    if found.text.startswith(("/", "~")):
        return Reading(0.0, found.text, found.text)
    name = found.text.strip("/")
    inner = words.trimmed(DETERMINERS | FOLDER_NOUNS | CALLED, FOLDER_NOUNS)
    if not name:
        return None
    if inner.quoted is not None:
        return Reading(0.1, name, name)
    parent = index.find(name.rpartition("/")[0], ("folder",)) if "/" in inner.last.text else None
    if parent is not None and parent.closeness == Closeness.EXACT:
        return Reading(0.05, name, name)
    doubt = doubts.as_new_name(inner, said=free or bool(FOLDER_NOUNS.intersection(words.lowers)))
    begins = (index.find(inner.part(inner.start, end).raw, ("folder",)) for end in range(inner.start + 1, inner.end))
    return Reading(doubt + (0.5 if any(begins) else 0.0), name, name)


def _new_below(words: Stretch, index: NameIndex, around: Surroundings) -> Reading | None:
    """A new folder with its place: "a folder Trips at the top level", "a subfolder of Styling called Themes", "a subfolder Old of it"."""
    match = _BELOW_CALLED.fullmatch(words.raw) or _CALLED_BELOW.fullmatch(words.raw)
    if match is None:
        return None
    name = match["name"].strip("'\"“”‘’ ")
    place = " ".join((match["place"] or "").split())
    if not name or "/" in name or (name[:1].islower() and match["called"] is None and "quoted" not in {token.kind for token in words}):
        return None
    if _ITS.fullmatch(place):
        return Reading(0.1, f"{BELOW_IT}{name}", words.raw)
    if _ROOT.fullmatch(place.casefold().removeprefix("the ")) or _ROOT.fullmatch(place.casefold()):
        return Reading(0.1, name, words.raw)
    above = index.find(regex.sub(r"(?i)^(?:the|my) |(?: folder)$", "", place).strip("'\"“”‘’[]"), ("folder",))
    if above is None or len(above.paths) != 1 or above.closeness > Closeness.STEMS:
        return None
    return Reading(0.1 + _CLOSENESS_COST[above.closeness], f"{above.paths[0]}/{name}", words.raw)


def destination(words: Stretch, index: NameIndex, around: Surroundings) -> Reading | None:
    """The folder that something goes to. A new one must be plainly a folder: "send it to Bob" moves nothing."""
    found = folder(words, index, around, existing=False, free=False)
    known = found is None or index.find(found.text, ("folder",)) is not None or found.issue is not None or found.value != found.text
    plain = words.exact or not FOLDER_NOUNS.isdisjoint(words.lowers) or "/" in words.raw
    return found if found is None or known or plain else replace(found, cost=found.cost + 0.5)


def path(words: Stretch, index: NameIndex, *, free: bool) -> Reading | None:
    """The name of a new note."""
    inner = words.trimmed(DETERMINERS | NOTE_NOUNS | CALLED)
    if (name := inner.quoted) is not None:
        return Reading(0.0, name, name)
    if not inner.plain or len(inner) > LONGEST_NAME or any(token.text.startswith(("/", "~/")) for token in list(inner)[1:]):
        return None
    if inner.raw.endswith(".md"):
        return Reading(0.0, inner.raw, inner.raw)
    if free:
        told = 0.0 if _PERSONS.isdisjoint(inner.lowers) else 0.25
        return Reading(0.01 * len(inner) + doubts.as_name(inner) + told, inner.raw, inner.raw)
    if doubts.explains(inner) or not _PERSONS.isdisjoint(inner.lowers):
        return None
    begins = (index.find(inner.part(inner.start, end).raw, ("note",)) for end in range(inner.start + 1, inner.end))
    return Reading(0.2 + doubts.as_new_name(inner, said=False) + (0.5 if any(begins) else 0.0), inner.raw, inner.raw)


def new_name(words: Stretch, index: NameIndex) -> Reading | None:
    """Another name for something; one that ends like a place ("Memory in MOC") is doubtful."""
    inner = words.trimmed(_NAME_NOUNS, _PARTING)
    if (name := inner.quoted) is not None:
        return Reading(0.0, name, name)
    if not inner.plain or len(inner) > LONGEST_NAME:
        return None
    placed = any(
        token.lower in _INSIDE | {"into", "under"} and index.find(inner.part(at + 1, inner.end).raw, ("folder",)) is not None
        for at, token in enumerate(inner.tokens[inner.start : inner.end - 1], inner.start)
        if at > inner.start
    )
    return Reading(0.05 + 0.03 * len(inner) + doubts.as_name(inner) + (0.6 if placed else 0.0), inner.raw, inner.raw)


def template(words: Stretch, index: NameIndex) -> Reading | None:
    """A note that exists, one with "template" in its path before all others."""
    inner = words.trimmed(DETERMINERS | CALLED | {"template"}, {"template"})
    if inner.quoted is None and not inner.plain:
        return None
    name = inner.quoted or inner.raw
    looked_up = [index.find(candidate, ("note",)) for candidate in (name, f"{name} template", words.raw)]
    known = [found for found in looked_up if found is not None]
    for found in known:
        templates = tuple(path for path in found.paths if "template" in path.casefold())
        if templates:
            return _reading(templates, _CLOSENESS_COST[found.closeness], name)
    return _reading(known[0].paths, _CLOSENESS_COST[known[0].closeness], name) if known else _unknown(inner, name)


def macro(words: Stretch, around: Surroundings) -> Reading | None:
    """A saved macro."""
    inner = words.trimmed(DETERMINERS | CALLED | _MACRO_NOUNS, _MACRO_NOUNS)
    if inner.quoted is None and not inner.plain:
        return None
    names = words.names(inner)
    known = {name.casefold(): name for name in around.macros}
    for name in names:
        if name.casefold() in known:
            return Reading(0.0, known[name.casefold()], name)
    return _unknown(inner, names[-1])


def _this_note(words: Stretch, around: Surroundings) -> Reading | None:
    if not _THIS.fullmatch(words.spoken):
        return None
    if around.active_file is None:
        return Reading(0.3, None, words.raw, issue="inactive")
    return Reading(0.0, around.active_file, words.raw, reference="activeFile")


def _this_kind(words: Stretch, index: NameIndex, around: Surroundings) -> Reading | None:
    """The open note by what it is: "this project", "the open meeting"."""
    inner = words.trimmed(("the", "my"))
    if inner.first.lower not in _OPEN or not 1 < len(inner) <= 4 or not inner.plain:
        return None
    noun = inner.part(inner.start + 1, inner.end).trimmed((), NOTE_NOUNS)
    if noun.last.lower in NOTE_NOUNS | FOLDER_NOUNS or noun.last.lower != noun.last.stem or not list(type_nouns.kinds(noun.raw, index)):
        return None
    if around.active_file is None:
        return Reading(0.3, None, words.raw, issue="inactive")
    if _is_kind(around.active_file, noun.raw, index):
        return Reading(0.0, around.active_file, words.raw, reference="activeFile")
    return Reading(0.3, around.active_file, words.raw, "activeFile", issue="near", doubt=f"the open note is no {noun.raw}")


def _daily_note(words: Stretch, index: NameIndex, around: Surroundings) -> Reading | None:
    said = " ".join(words.raw.casefold().replace("’", "'").split())
    match = _DAILY.fullmatch(said) or _DAYS_OWN.fullmatch(said)
    if match is None or (match["before"] is not None and match["after"] is not None):
        return None
    span = dates.parse(match["before"] or match["after"] or "today", around.today)
    if span is None or span.day is None:
        return None
    where = index.names.daily_note(span.day)
    if where in index.names.notes:
        return Reading(0.0, where, words.raw)
    return Reading(0.5, None, words.raw, issue="unknown", doubt=f"there is no daily note {where} yet")


def _dated(words: Stretch, index: NameIndex, around: Surroundings) -> Reading | None:
    """A note by its day and its name: "yesterday's weekly sync", "the supervision of October 14"."""
    said = " ".join(words.raw.replace("’", "'").split())
    for pattern in (_DAYS_NOTE, _NOTE_OF_DAY):
        match = pattern.fullmatch(said)
        span = dates.parse(match["day"], around.today) if match is not None else None
        if match is None or span is None or span.day is None:
            continue
        day = set_modifiers.days(span, "datedAfter", "datedBefore")
        meant = index.names.meant({"where": {"name": f"*{match['name']}*", **day}, "kind": "notes"})
        if meant:
            return _reading(tuple(sorted(meant)), 0.1, words.raw)
    return None


def _of_kind(words: Stretch, index: NameIndex) -> Reading | None:
    """A note with the kind that it is of: "my concept note Competition", "the Time blocking zettel", "project Garden"."""
    inner = words.trimmed(DETERMINERS)
    if not 1 < len(inner) <= LONGEST_NAME or not (inner.plain or any(token.kind in ("quoted", "link") for token in inner)):
        return None
    for at in range(1, min(3, len(inner) - 1) + 1):
        before, behind = inner.start + at, inner.end - at
        for name, kind in (
            (inner.part(before, inner.end), inner.part(inner.start, before)),
            (inner.part(inner.start, behind), inner.part(behind, inner.end)),
        ):
            if name.ragged or not kind.plain or (name.quoted is None and not name.plain):
                continue
            noun = kind.trimmed((), NOTE_NOUNS)
            if (numbered := _numbered(name, noun.raw, index)) is not None:
                return Reading(0.1, numbered, words.raw)
            found = index.find(name.quoted or name.raw, ("note",))
            if found is None or found.closeness > Closeness.STEMS:
                continue
            paths = tuple(path for path in found.paths if _is_kind(path, noun.raw, index))
            if paths:
                return _reading(paths, _CLOSENESS_COST[found.closeness] + 0.05, words.raw)
    return None


def _numbered(number: Stretch, noun: str, index: NameIndex) -> str | None:
    """The one note of a kind that has a number in its name: "chapter 3" is "3 Gardens", "lecture 2" is "Lecture 02 Membranes"."""
    if not (len(number) == 1 and number.first.text.isdigit() and len(number.first.text) < 4):
        return None
    pattern = regex.compile(rf"(?i)(?:\D{{0,20}}\b)?0*{int(number.first.text)}\b(?!\.?\d).*")
    found = {
        path
        for meaning in type_nouns.kinds(noun, index)
        for path in index.meant({"where": meaning, "kind": "notes"}) or ()
        if pattern.fullmatch(path.rpartition("/")[2].removesuffix(".md"))
    }
    return found.pop() if len(found) == 1 else None


def _is_kind(path: str, noun: str, index: NameIndex) -> bool:
    """Whether a note is of a kind, by its folder, a tag or a property."""
    return any(path in (index.meant({"where": meaning, "kind": "notes"}) or ()) for meaning in type_nouns.kinds(noun, index))


def _placed(words: Stretch, index: NameIndex, sorts: tuple[NameSort, ...]) -> Reading | None:
    """A note with the folder it is in: "the note Old plans in Notes/Travel". One of the name that is elsewhere is not meant."""
    if "note" not in sorts:
        return None
    for at in range(words.end - 2, words.start, -1):
        if words.tokens[at].lower not in _INSIDE:
            continue
        place = words.part(at + 1, words.end)
        if place.ragged or words.part(words.start, at).ragged:
            continue
        inner = place.trimmed(DETERMINERS | FOLDER_NOUNS, FOLDER_NOUNS)
        named = words.part(words.start, at)
        bare = named.trimmed(DETERMINERS | NOTE_NOUNS | CALLED, NOTE_NOUNS)
        if any(each.quoted is None and not each.plain for each in (inner, bare)):
            continue
        folders = index.find(inner.quoted or inner.raw, ("folder",))
        if folders is None or len(folders.paths) != 1 or folders.closeness > Closeness.STEMS:
            continue
        for name in named.names(bare):
            found = index.find(name, ("note",))
            paths = tuple(path for path in found.paths if path.startswith(f"{folders.paths[0]}/")) if found is not None else ()
            if found is not None and paths and found.closeness <= Closeness.STEMS:
                return _reading(paths, _CLOSENESS_COST[found.closeness] + _CLOSENESS_COST[folders.closeness], words.raw)
    return None


def _named(words: Stretch, index: NameIndex, sorts: tuple[NameSort, ...]) -> Reading | None:
    found = _named_alone(words, index, sorts)
    return found if found is not None and found.issue != "unknown" else _placed(words, index, sorts) or found


def _named_alone(words: Stretch, index: NameIndex, sorts: tuple[NameSort, ...]) -> Reading | None:
    nouns = (FOLDER_NOUNS if "folder" in sorts else frozenset()) | (NOTE_NOUNS if "note" in sorts else frozenset())
    inner = words.trimmed(DETERMINERS | nouns | CALLED, nouns)
    if len(inner) > LONGEST_NAME or (inner.quoted is None and not inner.plain):
        return None
    names = words.names(inner)
    names += [name[:-2] for name in names[-1:] if name.endswith(("'s", "’s"))]
    if inner.first.lower in _ABOUT and len(inner) > 1 and words.tokens[inner.start - 1].lower in NOTE_NOUNS and inner.start > words.start:
        names.append(words.part(inner.start + 1, inner.end).raw)  # "my note on whales"
    known = [(found, name) for name in names if (found := index.find(name, sorts)) is not None]
    if known:
        found, name = min(known, key=lambda each: each[0].closeness)
        plural = sorts == ("note",) and (words.last.lower in _SEVERAL or words.first.lower in _SEVERAL) and len(words) > 1
        return _reading(found.paths, _CLOSENESS_COST[found.closeness] + (0.4 if plural else 0.0), name)
    if len(inner) == 1 and names_out_of_bounds(inner.quoted or inner.raw):
        return Reading(0.0, inner.quoted or inner.raw, inner.raw)
    return _unknown(inner, names[0] if len(names) == 1 else words.names(inner)[-1])


def _reading(paths: tuple[str, ...], cost: float, name: str) -> Reading:
    if len(paths) > 1:
        return Reading(cost, None, name, issue="ambiguous", choices=paths)
    return Reading(cost, paths[0], name)


def _unknown(words: Stretch, name: str) -> Reading | None:
    """A name that nothing has, where something must; long ones are none."""
    if len(words) > 6:
        return None
    return Reading(0.5 if words.quoted is not None else 0.9 + 0.1 * len(words), None, name, issue="unknown")
