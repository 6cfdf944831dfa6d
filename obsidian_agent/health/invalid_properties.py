"""Findings about properties that are no YAML, and repairs that keep their meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from obsidian_agent.errors import VaultError
from obsidian_agent.health.digests import Digests
from obsidian_agent.health.finding import HealthFinding, Repair, RepairChoice, RepairStep, excerpt
from obsidian_agent.health.notes import writing
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.frontmatter import yaml_splice
from obsidian_agent.vault.frontmatter.properties import (
    find_frontmatter,
    parse_block,
    read_block,
    same,
)
from obsidian_agent.vault.frontmatter.yaml_scalars import Quote, write_text
from obsidian_agent.vault.frontmatter.yaml_splice import Layout, Splice
from obsidian_agent.vault.text import decode, newline_of, split_lines

_LINE: Final = re.compile(
    r"(?P<indent>[ \t]*)(?P<dashes>(?:-[ \t]+)*)"
    r"(?:(?P<key>[^\s\-\[\]{}#&*!|>'\"%@`,?:][^:]*):(?P<gap>[ \t]+|(?=\s*\Z)))?"
    r"(?P<value>.*?)(?P<end>\s*)"
)
_NO_ENTRY: Final = re.compile(r"[\s#\-]|\Z")
"""The beginning of a line that is not the first one of a property."""
_BLANK_OR_COMMENT: Final = re.compile(r"\s*(?:#.*)?\s*")
_APOSTROPHE: Final = re.compile(r"(?<=\w)'(?=\w)")
_QUOTED_WORDS: Final = re.compile(r'[^"\\]*(?:(?<!\w)"(?=\w)[^"\\]*(?<=\w)"(?!\w)[^"\\]*)+')
_LINK: Final = re.compile(r"\[\[[^\[\]\n]+\]\]")
_LINKS: Final = re.compile(rf"{_LINK.pattern}(?:[ \t]*,[ \t]*{_LINK.pattern})+")
_WITHOUT_BLANK: Final = re.compile(r"\A([A-Za-z][\w-]*:)(?=[^\s:/\\])(?!.*: )")
"""The key of a property in the first column whose value begins at once; no address."""
_ENTRY: Final = r"(?:[^\W\d_][\w -]*:(?:[ \t].*)?|[ \t]+\S.*|-[ \t].*)(?:\r?\n|\Z)"
_MISPLACED: Final = re.compile(
    rf"(?P<mark>\ufeff?)\s*--+[ \t]*\r?\n(?P<block>(?:{_ENTRY})+)(?P<end>--+[ \t]*\r?(?:\n|\Z))?"
)
"""Properties, not between the fences that Obsidian knows."""
_TAG: Final = r"#[^\W\d_][\w/-]*"
_TAGS_IN_COMMENT: Final = re.compile(rf"(?im)^(tags?:)[ \t]+({_TAG}(?:[ \t,]+{_TAG})*)[ \t]*$")
_ANCHOR: Final = re.compile(r"(?<=[\s\[{,])&\S")
_PAIRS: Final = {"[": "]", "{": "}"}


_SINGULAR: Final = {"tag": "tags", "alias": "aliases", "cssclass": "cssclasses", "tags": "tags"}
"""Obsidian's lists, by the names that it does not read since 1.9, and by their own."""


class Mended(NamedTuple):
    """A block of properties that can be read, and what was done to it, as a sentence."""

    block: str
    title: str


class _Line(NamedTuple):
    """A line of properties as it is written now, and the keys and values in it."""

    text: str
    scalars: tuple[Any, ...]
    has_quotes: bool = False


class _Problem(NamedTuple):
    """A problem of properties, with the number of lines before it."""

    text: str
    evidence: str
    lines_before: int
    mended: Mended | None


def invalid_properties(survey: VaultSurvey, digests: Digests) -> Iterator[HealthFinding]:
    """Yield the notes whose properties are no valid YAML, or none that Obsidian reads as meant."""
    for note, digest in digests.of.items():
        has_no_tags = survey.facts[note].properties.get("tags", "") is None
        if not any(
            (digest.broken, digest.may_repeat_properties, digest.may_lack_fence, has_no_tags)
        ):
            continue
        try:
            data = survey.view.read(note)
            text = decode(data, note.text)
        except VaultError:
            continue
        if digest.may_lack_fence:
            start, end = 0, len(text)
            problem = _misplaced(text)
        elif (front := find_frontmatter(text)) is None:
            continue
        else:
            start, end = front.content_start, front.content_end
            block = text[start:end]
            if digest.broken:
                problem = _unreadable(block, digest.broken)
            else:
                problem = _repeated(block) if digest.may_repeat_properties else None
                problem = problem or _tags_in_comment(block)
        if problem is None:
            continue
        repair = None
        if problem.mended is not None:
            content = text[:start] + problem.mended.block + text[end:]
            choice = writing(note, data, content, problem.mended.title)
            repair = Repair((choice,)) if choice is not None else None
        yield HealthFinding(
            kind="invalid-properties",
            path=note.text,
            line=text.count("\n", 0, start) + 1 + problem.lines_before,
            subject="",
            text=problem.text,
            evidence=problem.evidence,
            repair=repair,
        )
    yield from _unread_lists(survey)


def _unread_lists(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield the properties of Obsidian's own that it does not read as they are written."""
    for note in survey.notes:
        values = survey.facts[note].properties
        for name, plural in _SINGULAR.items():
            written = values.get(name)
            if not written or (name == plural and not _is_several_tags(written)):
                continue
            items = [] if name == plural else _listed(values.get(plural), plural)
            items += [item for item in _listed(written, plural) if item not in items]
            args: dict[str, Any] = {"path": note.text, "set": {plural: items}}
            if name != plural:
                args["remove"] = [name]
            line = written if isinstance(written, str) else ", ".join(_listed(written, plural))
            choice = RepairChoice(
                f"{plural}: [{', '.join(items)}]", (RepairStep("vault.setFrontmatter", args),)
            )
            yield HealthFinding(
                kind="invalid-properties",
                path=note.text,
                subject=name,
                text=f"Obsidian ignores “{excerpt(f'{name}: {line}')}”.",
                evidence=f"it expects {plural}, as a list",
                repair=Repair((choice,)),
            )


def _is_several_tags(value: Any) -> bool:
    return isinstance(value, str) and re.search(r"[\s,]", value.strip()) is not None


def _listed(value: Any, plural: str) -> list[str]:
    """Return the items of a list, or of a text with several tags or classes."""
    if not isinstance(value, str):
        return [*map(str, value)] if isinstance(value, list) else []
    items = [value] if plural == "aliases" else re.split(r"[\s,]+", value)
    return [item.lstrip("#") for item in items if item.strip("#")]


def _unreadable(block: str, reason: str) -> _Problem:
    """Return the problem of the first property that cannot be read by itself."""
    evidence = "Obsidian ignores properties that it cannot read"
    before = 0
    for entry in _entries(block):
        if _read("".join(entry)) is None:
            line, text = _first_problem(entry, reason)
            return _Problem(text, evidence, before + line, mend(block))
        before += len(entry)
    return _Problem(reason, evidence, 0, mend(block))


def _first_problem(lines: Sequence[str], reason: str) -> tuple[int, str]:
    """Return the first line of a property with a problem of its own, and this in words."""
    for position, line in enumerate(lines):
        quoted = f"“{excerpt(line.strip())}”"
        if line.lstrip(" ").startswith("\t"):
            return position, f"{quoted} is indented with a tab, which YAML does not allow."
        if len(lines) == 1 or _read(f"x:\n  {line.strip()}\n") is None:
            return position, f"{quoted} is no valid YAML."
    return 0, reason


def _misplaced(text: str) -> _Problem | None:
    """Return the problem of properties that are not at the beginning or not between fences."""
    match = _MISPLACED.match(text)
    values = _read(match["block"]) if match is not None else None
    if match is None or not values:
        return None
    # One line of this form below a rule may be text.
    if not match["end"] and len(values) < 2 and not values.keys() & {"tags", "aliases"}:
        return None
    newline = newline_of(text)
    block = match["block"] if match["block"].endswith("\n") else match["block"] + newline
    fence = f"---{newline}"
    content = f"{match['mark']}{fence}{block}{fence}{text[match.end() :]}"
    return _Problem(
        "The properties are not between two --- lines at the top of the note.",
        "Obsidian shows them as ordinary text",
        text.count("\n", 0, match.start("block")) - 1,
        Mended(content, "Put the properties between --- lines"),
    )


def _tags_in_comment(block: str) -> _Problem | None:
    """Return the problem of tags with `#`, which begins a comment."""
    match = _TAGS_IN_COMMENT.search(block)
    if match is None:
        return None
    tags = ", ".join(re.split(r"[ \t,]*#", match[2])[1:])
    return _Problem(
        f"Obsidian finds no tags in “{excerpt(match[0].strip())}”.",
        "in properties, # starts a comment",
        block.count("\n", 0, match.start()),
        Mended(
            f"{block[: match.start()]}{match[1]} [{tags}]{block[match.end() :]}",
            f"{match[1]} [{tags}]",
        ),
    )


def _repeated(block: str) -> _Problem | None:
    """Return the problem of the first property whose name was there before."""
    parsed = parse_block(block)
    known: set[str] = set()
    for entry in parsed.entries if parsed is not None else ():
        if entry.key in known:
            text = f"The property “{entry.key}” is there more than once."
            before = block.count("\n", 0, entry.start)
            return _Problem(
                text,
                "programs read one of them, or no properties at all",
                before,
                without_repeated(block),
            )
        if entry.key is not None:
            known.add(entry.key)
    return None


def mend(block: str) -> Mended | None:
    """Return properties that YAML cannot read so that it can, or None if they are unclear.

    What can be read property by property has the same value afterwards, and the text of what cannot
    be read is the same. Its values are put in quotes, and tabs of the indentation become blanks.
    """
    expected: dict[str, Any] = {}
    mended: list[str] = []
    titles: dict[str, None] = {}
    has_anchors = _ANCHOR.search(block) is not None
    for entry in _entries(block):
        text = "".join(entry)
        values = _read(text)
        if values is None:
            lines = _mended_lines(entry, aliases=has_anchors)
            text = "".join(line.text for line in lines)
            values = _read(text)
            if not lines or values is None:
                return None
            if not same([*_scalars(values)], [scalar for line in lines for scalar in line.scalars]):
                return None
            if any(line.has_quotes for line in lines):
                titles["Quote the values that YAML cannot read"] = None
            if any(map(_WITHOUT_BLANK.match, entry)):
                titles["Put a blank behind the colon"] = None
            if any(old.lstrip(" ").startswith("\t") for old in entry):
                titles["Indent with blanks instead of tabs"] = None
        if values.keys() & expected.keys():
            return None
        expected |= values
        mended.append(text)
    result = "".join(mended)
    values = _read(result)
    if not titles or values is None or not same(values, expected):
        return None
    return Mended(result, ", and ".join(titles))


def without_repeated(block: str) -> Mended | None:
    """Return properties without those that are there again, or None if that loses a value.

    The last one of a name counts. Those before it have to be equal or empty.
    """
    parsed = parse_block(block)
    if parsed is None or parsed.flow:
        return None
    last = {entry.key: entry for entry in parsed.entries}
    layout = Layout(newline_of(block), parsed.column)
    splices: list[Splice] = []
    for previous, entry in zip((None, *parsed.entries), parsed.entries, strict=False):
        counts = last[entry.key]
        if entry is counts:
            continue
        if entry.node.value is not None and not same(entry.node.value, counts.node.value):
            return None
        try:
            splice = yaml_splice.remove(block, entry, layout, previous.start if previous else None)
        except VaultError:
            return None
        if "#" in block[splice.start : splice.end]:
            return None
        splices.append(splice)
    result = yaml_splice.apply(block, splices)
    values = _read(result)
    if values is None or not same(values, read_block(block)):
        return None
    return Mended(result, "Remove the one that does not count")


def _entries(block: str) -> list[list[str]]:
    """Return the lines of each property. Lines before the first one are an entry of their own."""
    entries: list[list[str]] = [[]]
    for line in split_lines(block):
        if not _NO_ENTRY.match(line):
            entries.append([])
        entries[-1].append(line)
    return entries


def _read(block: str) -> dict[str, Any] | None:
    try:
        values = read_block(block)
    except VaultError:
        return None
    # A text or a list is valid YAML, but no properties.
    return values if values or _BLANK_OR_COMMENT.fullmatch(block) or parse_block(block) else None


def _mended_lines(lines: Sequence[str], *, aliases: bool) -> list[_Line]:
    """Return the lines of a property that can be read; none if one of them is unclear."""
    mended: list[_Line] = []
    for line in lines:
        match = _LINE.fullmatch(_WITHOUT_BLANK.sub(r"\1 ", line))
        if all(map(str.isspace, line)) or line.lstrip().startswith("#"):
            mended.append(_Line(line, ()))
            continue
        if match is None or not (match["dashes"] or match["key"]):
            return []
        keys = (match["key"].rstrip(),) if match["key"] else ()
        is_item = bool(match["dashes"]) and not keys
        written = match["value"]
        value = _read(f"x:\n- {written}\n" if is_item else f"x: {written}\n")
        if value is None and keys and _LINKS.fullmatch(written):
            links = _LINK.findall(written)
            written, scalars = f"[{', '.join(map(_quoted, links))}]", (*keys, *links)
        elif value is not None:
            scalars = (*keys, *_scalars(value["x"]))
        else:
            text = _text_of(match["value"], aliases=aliases)
            # In a list, `- a: b: c` may be a text or a property of an item.
            if text is None or (match["dashes"] and (keys or ": " in text)):
                return []
            written, scalars = _quoted(text), (*keys, text)
        start = match["indent"].replace("\t", "  ") + match["dashes"]
        head = f"{match['key']}:{match['gap']}" if keys else ""
        mended.append(_Line(start + head + written + match["end"], scalars, value is None))
    return mended


def _scalars(value: Any) -> Iterator[Any]:
    """Yield the keys and values in properties, in order, without empty ones."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _scalars(item)
    elif isinstance(value, list):
        for item in value:
            yield from _scalars(item)
    elif value is not None:
        yield value


def _text_of(value: str, *, aliases: bool) -> str | None:
    """Return the text that a value means which YAML cannot read, or None if that is unclear."""
    first = value[:1]
    if " #" in value:
        return None
    if first in ("'", '"'):
        return _text_in_quotes(value)
    if first in _PAIRS:
        close = _closing(value)
        # A bracket at the end of a word, not a list with something after it.
        is_text = 0 < close < len(value) - 1 and "," not in value[: close + 2]
        return value if is_text else None
    if first == "*" and aliases:
        return None
    is_indicator = first in "|>&!" or value.startswith(("- ", "? ", ": "))
    return None if is_indicator else value


def _text_in_quotes(value: str) -> str | None:
    """Return the text of a value that begins with a quotation mark and cannot be read."""
    mark, inner = value[0], value[1:-1]
    if len(value) > 1 and value[-1] == mark:
        if mark == "'":
            return inner if "'" not in _APOSTROPHE.sub("", inner) else None
        if '"' in inner:
            return inner if _QUOTED_WORDS.fullmatch(inner) else None
        is_literal = "\\" in inner and "\\\\" not in inner
        return inner if is_literal else None
    close = value.find(mark, 1)
    return value if close > 0 and not value[close + 1].isalnum() else None


def _closing(value: str) -> int:
    """Return the position of the bracket that closes the first one, or -1."""
    opening, closing, depth = value[0], _PAIRS[value[0]], 0
    for position, character in enumerate(value):
        depth += (character == opening) - (character == closing)
        if not depth:
            return position
    return -1


def _quoted(text: str) -> str:
    quote: Quote = '"' if "'" in text or not ('"' in text or "\\" in text) else "'"
    return write_text(text, quote=quote)
