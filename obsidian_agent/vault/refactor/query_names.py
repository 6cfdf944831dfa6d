"""The names in queries: in bases, and in Dataview, Tasks and search blocks of notes.

Each language has a small parser, which returns the names in a query with their positions.
JavaScript, regular expressions and placeholders are `code`, whose names are not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, get_args

from msgspec import Struct

from obsidian_agent.expression import expression
from obsidian_agent.vault.markdown.bases import BASE
from obsidian_agent.vault.markdown.lines import Line, scan
from obsidian_agent.vault.paths.path import VaultPath

Language = Literal["dataview", "dataviewjs", "tasks", "query", "base"]

Kind = Literal["tag", "tag-part", "property", "path", "part", "link", "text", "code"]
"""The meaning of a name.

`tag-part` and `part` are parts of a tag and of a path, by which a query filters. `text` is a string
of unknown use, `code` a text that is never changed.
"""

Style = Literal["plain", "quoted", "identifier", "variable", "member"]
"""The form of a new name: plain, in a string, or an identifier of Dataview or of bases."""

_FENCE: Final = expression(r"(?:[-*+][ \t]+|\d+[.)][ \t]+)*(`{3,}|~{3,})[ \t]*([\w-]+)[ \t]*")
_INLINE: Final = expression(r"(?<!`)(`+)(?!`)([ \t]*(\$?=)(.*?))(?<!`)\1(?!`)")

_DATAVIEW_TOKEN: Final = expression(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<link>!?\[\[[^\[\]\n]+\]\])"""
    r"""|(?P<tag>\#[^\s"'()\[\]{},;:.!?&|=<>+*~`^$%@\\#]+)|(?P<name>[^\W\d][\w-]*)"""
    r"""|(?P<mark>[^\s\w])|(?P<number>\d[\w.]*)"""
)

_BASE_TOKEN: Final = expression(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<link>\[\[[^\[\]\n]+\]\])"""
    r"""|(?P<regex>(?<![\w)\]])/(?:[^/\\\n]|\\.)+/[a-z]*)|(?P<name>[^\W\d]\w*)"""
    r"""|(?P<mark>[^\s\w])|(?P<number>\d[\w.]*)"""
)

_TAGS_BEFORE: Final = expression(
    r"(?:\bhasTag\((?:[^()]*,)?|\b(?:\w+\.)*e?tags\)?\.contains(?:Any|All)?\((?:[^()]*,)?"
    r"|\b[ei]?contains\(\s*(?:\w+\.)*e?tags\s*,|\be?tags?\s*!?==?)\s*$"
)
_PATH_BEFORE: Final = expression(r"(?:\binFolder\(|\bfile\.(?:folder|path)\s*!?==?)\s*$")
_LINK_BEFORE: Final = expression(r"\b(?:link|file|hasLink|image|embed)\(\s*$")
_PART_BEFORE: Final = expression(r"\bfile\.(?:name|path|folder|basename|file)\b[^\"'\n]*$")

_PROPERTY_BEFORE: Final = expression(
    r"(?:\b(?:note|row|rows|this|properties|frontmatter)\[|\b(?:hasP|p)roperty\()\s*$"
)

_OWNER: Final = (
    r"(?:(?<![\w.\-\])])(?:this|row|rows|note|file\.frontmatter|file\.properties)"
    r"(?:\.([^\W\d][\w-]*)|\[\s*[\"']([^\"'\n]+)[\"']\s*\])"
    r"|(?<![\w.\-\])])([^\W\d][\w-]*))"
)

_VALUE_BEFORE: Final = expression(
    rf"(?:{_OWNER}\)?\s*(?:!=|==?)"
    rf"|{_OWNER}\)?\.(?:contains(?:Any|All)?|startsWith|endsWith|includes)\((?:[^()]*,)?"
    rf"|\b(?:[ei]?contains|containsword|startswith|endswith)\(\s*{_OWNER}\s*,)\s*$"
)
"""The text before a string that is compared with the value of a property."""
_AS_BEFORE: Final = expression(r"\bas\s+$", re.IGNORECASE)
_DATAVIEW_CLAUSES: Final = frozenset(("where", "sort", "group", "flatten", "limit"))

_DATAVIEW_WORDS: Final = _DATAVIEW_CLAUSES | {
    *("table", "list", "task", "calendar", "without", "id", "from", "by", "as", "asc", "desc"),
    *("ascending", "descending", "and", "or", "not", "true", "false", "null", "this", "file"),
    *("row", "rows", "key"),
}

_TASK_FIELDS: Final = frozenset(
    ("status", "checked", "completed", "fullycompleted", "text", "visual", "line", "linecount")
    + ("path", "section", "tags", "outlinks", "link", "children", "task", "annotated", "parent")
    + ("blockid", "created", "due", "completion", "start", "scheduled", "position", "header")
)
"""Fields that a task has itself, so that the name may not mean the note's property."""
_PROPERTY_CALL: Final = expression(r"""\b(?:hasP|p)roperty\(\s*(["'])([^"'\\\n]+)\1""")

_TASK_FILTER: Final = expression(
    r"\b(?P<field>tags?|description|path|folder|root|filename)\s+"
    r"(?:includes?|does\s+not\s+include|do\s+not\s+include)\s+",
    re.IGNORECASE,
)
_IS_CODE: Final = expression(r"\{\{|\bregex\s|\bby\s+function\b", re.IGNORECASE)
_IS_COMBINED: Final = expression(r"\s*(?:[(\[{\"]|NOT\b)")
_COMBINED_VALUE: Final = expression(r"[^()\[\]{}\"\n]*")

_SEARCH_TERM: Final = expression(
    r"""-?(?:(?P<op>[a-z][a-z-]*):[ \t]*)?(?:"(?P<quoted>(?:[^"\\\n]|\\.)*)\""""
    r"""|(?P<regex>/(?:[^/\\\n]|\\.)+/)"""
    r"""|\[(?P<key>"[^"\n]*"|[^\[\]:\n]+)(?::[ \t]*(?P<value>[^\[\]\n]*))?\]"""
    r"""|(?P<word>[^\s()"\[\]]+))"""
)

_BASE_LINE: Final = expression(
    r"""(?P<indent>[ ]*)(?P<dashes>(?:-[ ]+)*)"""
    r"""(?:(?P<key>"(?:[^"\\\n]|\\.)*"|'(?:[^'\n]|'')*'"""
    r"""|[^\s'"\#\-&*!|>%@`{\[](?:(?!:[ ]|:$).)*?)[ ]*:(?=[ ]|$))?"""
    r"""[ ]*(?P<value>.*)"""
)

_BASE_WORDS: Final = frozenset(
    ("true", "false", "null", "file", "note", "formula", "this", "value", "index", "acc")
)
_BASE_IDS: Final = frozenset(("property", "column", "image"))
_KEYED_BY_ID: Final = (["columnSize"], ["summaries"], ["display"])
_NAMES_OF_VIEWS: Final = frozenset(("name", "displayName", "type", "direction", "limit"))
_FOREIGN_ID: Final = expression(r"(?:file|formula|this)\b")


class QueryName(NamedTuple):
    """A name in a query, at `start` to `end` of its fragment."""

    kind: Kind
    start: int
    end: int
    text: str
    style: Style = "plain"
    of: str = ""
    """The property with whose value a text is compared, if that is known."""


class Fragment(Struct, frozen=True):
    """A text of a query with the position of each character in the file.

    `positions` has one more element, the end. `scalar` is how YAML writes the text.
    """

    language: Language
    text: str
    positions: Sequence[int]
    scalar: Literal["", "plain", "'", '"'] = ""

    def part(self, start: int, end: int) -> Fragment:
        """Return the fragment from `start` to `end`."""
        return Fragment(self.language, self.text[start:end], self.positions[start : end + 1])


# --- fragments ---------------------------------------------------------------


def names_in(path: VaultPath, text: str) -> Iterator[tuple[Fragment, QueryName]]:
    """Yield the names in all queries of a file, in order."""
    if path.suffix == BASE:
        whole = Fragment("base", text, range(len(text) + 1))
        yield from _base_names(whole)
        return
    for fragment in _fragments(text):
        if fragment.language == "base":
            yield from _base_names(fragment)
            continue
        parser = _PARSERS[fragment.language]
        yield from ((fragment, name) for name in sorted(parser(fragment.text), key=_position))


def has_queries(data: bytes) -> bool:
    """Return True if a note has a query block or an inline query."""
    text = data.decode(errors="replace")
    return next(_fragments(text), None) is not None


def _position(name: QueryName) -> int:
    return name.start


def _fragments(text: str) -> Iterator[Fragment]:
    """Yield the query blocks and inline queries of a note."""
    block: list[Line] = []
    language = fence = ""
    for line in scan(text):
        if fence:
            closing = line.body.rstrip()
            if not line.hidden or (closing.startswith(fence) and not closing.strip(fence[0])):
                yield from _block(text, language, block)
                block, fence = [], ""
            else:
                block.append(line)
                continue
        elif line.hidden or line.opaque:
            opening = _FENCE.match(line.body)
            if opening is not None:
                fence, language = opening[1], opening[2].lower()
                continue
        if not line.hidden and "`" in line.body:
            yield from _inline(text, line)
    if fence:
        yield from _block(text, language, block)


def _block(text: str, name: str, lines: Iterable[Line]) -> Iterator[Fragment]:
    language = next((language for language in get_args(Language) if language == name), None)
    if language is None:
        return
    positions: list[int] = []
    pieces: list[str] = []
    for line in lines:
        # The indentation matters in bases, the marks of quotes do not.
        start = text.find(line.body, line.start, line.end) if line.body else line.end
        blanks = len(text[line.start : start]) - len(text[line.start : start].rstrip(" "))
        start -= min(line.indent, blanks)
        pieces.append(text[start : line.end])
        positions += range(start, line.end + 1)
    positions.append(positions[-1] if positions else 0)
    body = "\n".join([*pieces, ""]) if pieces else ""
    yield Fragment(language, body, positions)


def _inline(text: str, line: Line) -> Iterator[Fragment]:
    for match in _INLINE.finditer(text, line.start, line.end):
        language: Language = "dataviewjs" if match[3] == "$=" else "dataview"
        start, end = match.span(4)
        yield Fragment(language, text[start:end], range(start, end + 1))


# --- expressions -------------------------------------------------------------


class Token(NamedTuple):
    """A token of an expression: `kind` is the name of a group of its pattern."""

    kind: str
    text: str
    start: int
    end: int


def _tokens(pattern: re.Pattern[str], text: str) -> list[Token]:
    return [
        Token(match.lastgroup or "", match[0], match.start(), match.end())
        for match in pattern.finditer(text)
    ]


def _string(text: str, token: Token, *, is_source: bool = False) -> QueryName:
    """Return the name in a string, whose use its surroundings tell."""
    before = text[text.rfind("\n", 0, token.start) + 1 : token.start]
    kind: Kind = "text"
    if is_source or _PATH_BEFORE.search(before):
        kind = "path"
    elif _TAGS_BEFORE.search(before):
        kind = "tag"
    elif _LINK_BEFORE.search(before):
        kind = "link"
    elif _PROPERTY_BEFORE.search(before):
        kind = "property"
    elif _PART_BEFORE.search(before):
        kind = "part"
    inner = token.text[1:-1]
    if "\\" in inner:
        # A name with escapes is not looked for in its raw form.
        return QueryName("code", token.start + 1, token.end - 1, inner)
    end = token.end - 1
    if kind == "link":
        inner = re.split(r"[#|]", inner, maxsplit=1)[0]
        end = token.start + 1 + len(inner)
    owner = _VALUE_BEFORE.search(before) if kind == "text" else None
    of = next(filter(None, owner.groups()), "") if owner is not None else ""
    return QueryName(kind, token.start + 1, end, inner, style="quoted", of=of)


def _link(token: Token) -> QueryName:
    start = token.start + token.text.index("[[") + 2
    target = re.split(r"[#|\]]", token.text[start - token.start :], maxsplit=1)[0]
    return QueryName("link", start, start + len(target), target)


# --- Dataview ----------------------------------------------------------------


def _dataview(text: str) -> Iterator[QueryName]:
    tokens = _tokens(_DATAVIEW_TOKEN, text)
    is_task_query = bool(tokens) and tokens[0].text.casefold() == "task"
    new_names = {
        after.text
        for token, after in zip(tokens, tokens[1:], strict=False)
        if token.text.casefold() == "as" and after.kind == "name"
    }
    in_source = False
    for number, token in enumerate(tokens):
        before = tokens[number - 1].text if number else ""
        word = token.text.casefold()
        if token.kind == "string":
            if not _AS_BEFORE.search(text, 0, token.start):
                name = _string(text, token, is_source=in_source)
                yield name._replace(of="") if name.of in new_names else name
        elif token.kind == "link":
            yield _link(token)
        elif token.kind == "tag":
            yield QueryName("tag", token.start, token.end, token.text)
        elif token.kind != "name" or before == "#":
            continue
        elif before != "." and word == "from":
            in_source = True
        elif before != "." and word in _DATAVIEW_CLAUSES:
            in_source = False
        elif not in_source and word not in _DATAVIEW_WORDS:
            following = tokens[number + 1].text if number + 1 < len(tokens) else ""
            is_own = is_task_query and word in _TASK_FIELDS
            kind: Kind = "property"
            if following == "(" and before != ".":
                continue
            if before == ".":
                head = _chain(tokens, number)
                if head[0] == "file" and head[1:2] != ["frontmatter"]:
                    continue
                if head not in (["this"], ["row"], ["rows"], ["file", "frontmatter"]):
                    kind = "text"
            if token.text in new_names or is_own:
                kind = "text"
            yield QueryName(kind, token.start, token.end, token.text, "identifier")


def _chain(tokens: Sequence[Token], number: int) -> list[str]:
    """Return the names before a member, such as ["file", "frontmatter"]; [""] for an expression."""
    names: list[str] = []
    while number >= 2 and tokens[number - 1].text == ".":
        number -= 2
        if tokens[number].kind != "name":
            return [""]
        names.insert(0, tokens[number].text)
    return names or [""]


# --- JavaScript, Tasks and searches ------------------------------------------


def _script(text: str) -> Iterator[QueryName]:
    """Yield the lines of a script. Only a property in `property('name')` can be renamed."""
    for line in re.finditer(r"[^\n]+", text):
        yield from _code(text, line.start(), line.end())


def _code(text: str, start: int, end: int) -> Iterator[QueryName]:
    pieces: list[str] = []
    position = start
    for call in _PROPERTY_CALL.finditer(text, start, end):
        yield QueryName("property", call.start(2), call.end(2), call[2], "quoted")
        pieces.append(text[position : call.start(2)])
        position = call.end(2)
    yield QueryName("code", start, end, "".join([*pieces, text[position:end]]))


def _tasks(text: str) -> Iterator[QueryName]:
    continued = False
    for line in re.finditer(r"[^\n]+", text):
        content = line[0].rstrip()
        continues = content.endswith("\\")
        if continued or continues or _IS_CODE.search(content):
            yield from _code(text, line.start(), line.start() + len(content))
        elif not content.lstrip().startswith("#"):
            yield from _task_filters(text, line.start(), line.start() + len(content))
        continued = continues


def _task_filters(text: str, start: int, end: int) -> Iterator[QueryName]:
    combined = _IS_COMBINED.match(text, start, end)
    for match in _TASK_FILTER.finditer(text, start, end):
        at = match.end()
        value = text[at:end]
        if combined is not None:
            inner = _COMBINED_VALUE.match(text, at, end)
            value = inner[0].rstrip() if inner is not None else ""
        field = match["field"].casefold()
        if field in ("tag", "tags"):
            yield QueryName("tag-part", at, at + len(value), value)
        elif field == "description":
            kind: Kind = "tag-part" if value.startswith("#") else "text"
            yield QueryName(kind, at, at + len(value), value)
        else:
            yield QueryName("part", at, at + len(value), value)
        if combined is None:
            return


def _search(text: str) -> Iterator[QueryName]:
    for term in _SEARCH_TERM.finditer(text):
        if term["regex"]:
            yield QueryName("code", *term.span("regex"), term["regex"])
            continue
        if term["key"]:
            yield from _search_property(term)
            continue
        group = "word" if term["quoted"] is None else "quoted"
        value, style = term[group], "quoted" if group == "quoted" else "plain"
        kind: Kind = "text"
        if term["op"] == "tag":
            kind = "tag"
        elif term["op"] in ("path", "file"):
            kind = "part"
        name = QueryName(kind, *term.span(group), value)
        yield name._replace(style="quoted") if style == "quoted" else name


def _search_property(term: re.Match[str]) -> Iterator[QueryName]:
    start, end = term.span("key")
    key = term["key"]
    if key.startswith('"'):
        start, end, key = start + 1, end - 1, key[1:-1]
        yield QueryName("property", start, end, key, "quoted")
    else:
        yield QueryName("property", start, end, key)
    value = term["value"]
    if value:
        kind: Kind = "tag" if key.casefold() in ("tag", "tags") else "text"
        start, end = term.span("value")
        if kind == "text" and len(value) > 1 and value[0] == value[-1] == '"':
            yield QueryName(kind, start + 1, end - 1, value[1:-1], style="quoted", of=key)
        else:
            yield QueryName(kind, start, end, value, of=key)


# --- bases -------------------------------------------------------------------


def _base_names(base: Fragment) -> Iterator[tuple[Fragment, QueryName]]:
    """Yield the names in a base: those of its expressions, and properties that it displays."""
    keys: list[tuple[int, str]] = []
    block = -1
    """The column of a key whose text is on the following, deeper lines."""
    for line in re.finditer(r"[^\r\n]+", base.text):
        match = _BASE_LINE.fullmatch(line[0])
        if match is None or not line[0].strip() or line[0].lstrip().startswith("#"):
            continue
        indent = len(match["indent"])
        if 0 <= block < indent:
            yield base, QueryName("code", line.start(), line.end(), line[0])
            continue
        block = -1
        column = indent + len(match["dashes"])
        while keys and keys[-1][0] >= column:
            keys.pop()
        context = [key for _, key in keys]
        key, value = match["key"], match["value"]
        offset = line.start()
        if key is not None:
            scalar = _scalar(base, offset + match.start("key"), offset + match.end("key"))
            keys.append((column, key.strip("\"'")))
            is_id = context == ["properties"] or context[-1:] in _KEYED_BY_ID
            if is_id and context != ["summaries"] and scalar is not None:
                yield from ((scalar, name) for name in _property_id(scalar.text))
        if not value:
            continue
        start, end = offset + match.start("value"), offset + match.end("value")
        if value[0] in "|>":
            block = column if key is not None else indent
        scalar = _scalar(base, start, end)
        if scalar is None:
            yield base, QueryName("code", start, end, value)
            continue
        yield from ((scalar, name) for name in _base_value(scalar.text, context, key))


def _base_value(text: str, context: Sequence[str], key: str | None) -> Iterable[QueryName]:
    if "filters" in context or key == "filters" or context[:1] in (["formulas"], ["summaries"]):
        return _expression(text)
    if context[-1:] == ["order"] or key in _BASE_IDS:
        return _property_id(text)
    if key in _NAMES_OF_VIEWS or context[-1:] in _KEYED_BY_ID:
        return ()
    if text.startswith("note."):
        return _property_id(text)
    return (QueryName("text", 0, len(text), text),)


def _scalar(base: Fragment, start: int, end: int) -> Fragment | None:
    """Return the decoded scalar at `start` to `end`, or None for other notations of YAML."""
    raw = base.text[start:end].rstrip()
    quote = raw[:1]
    if quote in ("'", '"'):
        pattern = r"'((?:[^']|'')*)'" if quote == "'" else r'"((?:[^"\\]|\\["\\/])*)"'
        match = re.match(pattern + r"(?:[ ]+#.*)?$", raw)
        if match is None:
            return None
        chars, positions = [], []
        escape = r"''|[^']" if quote == "'" else r"\\.|[^\\]"
        for char in re.finditer(escape, match[1]):
            chars.append(char[0][-1])
            positions.append(base.positions[start + 1 + char.start()])
        positions.append(base.positions[start + 1 + len(match[1])])
        return Fragment("base", "".join(chars), positions, "'" if quote == "'" else '"')
    if not raw or quote in "&*!|>%@`{[":
        return None
    length = len(re.split(r"[ ]+#", raw, maxsplit=1)[0])
    part = base.part(start, start + length)
    return Fragment("base", part.text, part.positions, "plain")


def _property_id(text: str) -> Iterator[QueryName]:
    """Yield the property that the id of a column means."""
    if _FOREIGN_ID.match(text):
        return
    if member := re.fullmatch(r"""note\[(["'])(.*)\1\]""", text):
        yield QueryName("property", *member.span(2), member[2], "quoted")
        return
    start = len("note.") if text.startswith("note.") else 0
    yield QueryName("property", start, len(text), text[start:])


def _expression(text: str) -> Iterator[QueryName]:
    tokens = _tokens(_BASE_TOKEN, text)
    for number, token in enumerate(tokens):
        if token.kind == "string":
            yield _string(text, token)
        elif token.kind == "link":
            yield _link(token)
        elif token.kind == "regex":
            yield QueryName("code", token.start, token.end, token.text)
        elif token.kind == "name":
            following = tokens[number + 1].text if number + 1 < len(tokens) else ""
            if following == "(":
                continue
            if number == 0 or tokens[number - 1].text != ".":
                if token.text not in _BASE_WORDS:
                    yield QueryName("property", token.start, token.end, token.text, "variable")
                continue
            chain = _chain(tokens, number)
            if chain in (["note"], ["this"], ["this", "note"], ["file", "properties"]):
                if chain != ["this"] or token.text not in _BASE_WORDS:
                    yield QueryName("property", token.start, token.end, token.text, "member")
            elif chain[0] not in ("file", "formula") and chain[:2] != ["this", "file"]:
                yield QueryName("text", token.start, token.end, token.text)


_PARSERS: Final[dict[Language, Callable[[str], Iterator[QueryName]]]] = {
    "dataview": _dataview,
    "dataviewjs": _script,
    "tasks": _tasks,
    "query": _search,
}
