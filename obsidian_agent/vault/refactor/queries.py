"""Queries after a rename: bases, Dataview, Tasks and search blocks follow it.

Each language has a small parser, which returns the names in a query with their positions. A rename
decides what becomes of a name: a new text, a doubt, or nothing. Only the bytes of renamed names
change, and the new text is parsed again: it must hold the same names, with the new ones in place.

JavaScript, regular expressions and placeholders are never changed: they are in doubt if they hold
the old name. So is everything that would no longer match the same notes.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, Protocol, get_args

from msgspec import Struct

from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.expression import expression
from obsidian_agent.vault.index.index import VaultIndex, tag_key
from obsidian_agent.vault.index.text_search import exact_needle, folded_needle
from obsidian_agent.vault.links.link_text import (
    DEFAULT_STYLE,
    LinkStyle,
    shape_of,
    spellings,
)
from obsidian_agent.vault.markdown.bases import BASE
from obsidian_agent.vault.markdown.lines import Line, scan
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath
from obsidian_agent.vault.refactor.rename_links import FileMoves, LinksAfter
from obsidian_agent.vault.refactor.tags import TagRename
from obsidian_agent.vault.text import Edit, apply, decode
from obsidian_agent.vault.views.view import VaultEntry, VaultView

Language = Literal["dataview", "dataviewjs", "tasks", "query", "base"]

Kind = Literal["tag", "tag-part", "property", "path", "part", "link", "text", "code"]
"""The meaning of a name.

`tag-part` and `part` are parts of a tag and of a path, by which a query filters. `text` is a string
of unknown use, `code` a text that is never changed.
"""

Style = Literal["plain", "quoted", "identifier", "variable", "member"]
"""The form of a new name: plain, in a string, or an identifier of Dataview or of bases."""

_LANGUAGE_NAMES: Final = {
    "dataview": "Dataview query",
    "dataviewjs": "Dataview script",
    "tasks": "Tasks query",
    "query": "search",
    "base": "base",
}
_MARKS: Final = ("dataview", "```tasks", "``` tasks", "~~~tasks", "```query", "``` query")
_BASE_MARKS: Final = ("```base", "``` base", "`=", "` =", "`$=")
_FENCE: Final = expression(r"(?:[-*+][ \t]+|\d+[.)][ \t]+)*(`{3,}|~{3,})[ \t]*([\w-]+)[ \t]*")
_INLINE: Final = expression(r"(?<!`)(`+)(?!`)([ \t]*(\$?=)(.*?))(?<!`)\1(?!`)")
_PLAIN_VALUE: Final = expression(r"[\w-]+")
_MIN_PART: Final = 3
"""The length from which a part of a path counts as a name."""

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
_DATAVIEW_NAME: Final = expression(r"[^\W\d][\w-]*")
_BASE_NAME: Final = expression(r"[^\W\d]\w*")
_PLAIN_SCALAR: Final = expression(r"(?!-\s|[?:]\s)[^\s#&*!|>'\"%@`{}\[\],](?:(?!: |:$| #)[^\n])*")
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


class Doubt(NamedTuple):
    """A line with a query that a rename may change, and that is not rewritten."""

    line: int
    language: str
    """For users, such as "Dataview query"."""


class RewrittenQueries(Struct, frozen=True):
    """A file after a rename: its bytes, the number of new names, and the doubts by line."""

    content: bytes
    count: int = 0
    doubts: tuple[Doubt, ...] = ()


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


class Rename(Protocol):
    """A rename as queries see it."""

    @property
    def word(self) -> str:
        """A text that is in every query with the old name, or ""."""

    def renamed(self, name: QueryName, language: Language) -> str | None:
        """Return the new text of a name, or None if it does not change."""

    def is_doubtful(self, name: QueryName) -> bool:
        """Return True if a name that cannot be rewritten may mean the old one."""


# --- renames -----------------------------------------------------------------


class TagInQueries(Struct, frozen=True):
    """The rename of a tag in queries."""

    rename: TagRename

    @property
    def word(self) -> str:
        return ""  # a query can filter by a part of a tag

    def renamed(self, name: QueryName, language: Language) -> str | None:
        if name.kind in ("tag", "tag-part") or (name.kind == "text" and name.text[:1] == "#"):
            mark = "#" if name.text[:1] == "#" else ""
            new = self.rename.new_name(name.text.removeprefix("#").rstrip("/"))
            return None if new is None else mark + new
        return None

    def is_doubtful(self, name: QueryName) -> bool:
        old, new = f"#{tag_key(self.rename.old)}", f"#{tag_key(self.rename.new)}"
        text = name.text.casefold()
        if name.kind == "tag-part":
            is_part = len(text) > 1 and text in old and text not in new
            return is_part or _has_word(name.text, old)
        if name.kind == "text":
            return text.lstrip("#") == old[1:] or _has_word(name.text, old)
        return name.kind == "code" and _has_word(name.text, self.rename.old.rpartition("/")[2])


class PropertyInQueries(Struct, frozen=True):
    """The rename of a property in queries."""

    old: str
    new: str

    @property
    def word(self) -> str:
        return max(re.findall(r"\w+", self.old), key=len, default="")

    def renamed(self, name: QueryName, language: Language) -> str | None:
        if name.kind != "property":
            return None
        if name.text == self.old:
            return self.new
        if language == "dataview" and name.text == dataview_name(self.old):
            return dataview_name(self.new)
        return None

    def is_doubtful(self, name: QueryName) -> bool:
        if name.kind in ("text", "property"):
            return name.text.casefold() == self.old.casefold()
        if name.kind != "code":
            return False
        return _has_word(name.text, self.old) or _has_word(name.text, dataview_name(self.old))


class ValueInQueries(Struct, frozen=True):
    """The rename of texts that are values of a property, in queries."""

    key: str
    old: frozenset[str]
    new: str

    @property
    def word(self) -> str:
        return ""

    def renamed(self, name: QueryName, language: Language) -> str | None:
        if name.kind != "text" or name.text not in self.old or not self._is_of(name):
            return None
        if name.style == "plain" and not _PLAIN_VALUE.fullmatch(f"{name.text}{self.new}"):
            return None
        return self.new

    def is_doubtful(self, name: QueryName) -> bool:
        if name.kind == "code":
            return any(_has_word(name.text, old) for old in self.old)
        text = f"[[{name.text}]]" if name.kind == "link" else name.text
        if name.kind not in ("text", "link") or (name.of and not self._is_of(name)):
            return False
        folded = text.casefold()
        if folded in {old.casefold() for old in self.old}:
            return True
        is_part = any(folded in old.casefold() for old in self.old)
        return bool(name.of and folded) and (
            (is_part and folded not in self.new.casefold())
            or any(_has_word(text, old) for old in self.old)
        )

    def _is_of(self, name: QueryName) -> bool:
        return bool(name.of) and dataview_name(name.of) == dataview_name(self.key)


class MoveInQueries:
    """The rename of a note, of another file, or of a folder in queries."""

    def __init__(
        self,
        index: VaultIndex,
        moves: FileMoves,
        old: VaultPath,
        new: VaultPath,
        *,
        is_folder: bool,
        style: LinkStyle = DEFAULT_STYLE,
    ) -> None:
        self._index = index
        self._moves = moves
        self._old = old.text
        self._new = new.text
        self._is_folder = is_folder
        self._style = style
        self._after = LinksAfter(index, moves)
        self._others: list[str] | None = None
        self._stem = old.name if is_folder else old.stem
        self._has_new_name = old.name != new.name
        self.source = ROOT
        """The file with the query, before the rename."""

    @property
    def word(self) -> str:
        return ""

    def renamed(self, name: QueryName, language: Language) -> str | None:
        if name.kind == "path":
            return self._new_path(name.text)
        if name.kind == "link":
            return self._new_link(name.text)
        if name.kind == "part":
            new = self._new_path(name.text)
            return None if new is None or self._means_others(name.text, new) else new
        return None

    def is_doubtful(self, name: QueryName) -> bool:
        text = name.text.strip("/").casefold()
        old, new = f"{self._old}/".casefold(), f"{self._new}/".casefold()
        if name.kind == "part":
            if not self._is_folder:
                if text == old[:-1]:
                    return True
                # A move to another folder is meant to change which queries have the note.
                old, new = (path.split("/")[-2] for path in (old, new))
            return len(text) >= _MIN_PART and text in old and text not in new
        if name.kind in ("link", "path"):
            return False
        if name.kind == "text" and text == self._stem.casefold():
            return self._has_new_name
        if name.kind not in ("text", "code"):
            return False
        whole = self._old if self._is_folder else self._old.removesuffix(".md")
        if _has_word(name.text, whole):
            return True
        return name.kind == "code" and self._has_new_name and _has_word(name.text, self._stem)

    def _new_path(self, text: str) -> str | None:
        path, slash = text.rstrip("/"), "/" if text.endswith("/") else ""
        if path == self._old:
            return self._new + slash
        if self._is_folder and path.startswith(f"{self._old}/"):
            return self._new + path[len(self._old) :] + slash
        if f"{path}.md" == self._old and self._new.endswith(".md"):
            return self._new.removesuffix(".md")
        return None

    def _new_link(self, text: str) -> str | None:
        before = self._index.resolve(text, self.source) if text else None
        if before is None:
            return None
        file, path = self._moves.after(before), self._moves.after(self.source)
        if file is None or path is None or self._after.resolve(text, path) == file:
            return None
        shape = shape_of(text, before, self.source, self._style)
        for spelling in spellings(shape, file, path, self._style):
            if self._after.resolve(spelling.text, path) == file:
                return spelling.text
        return file.text

    def _means_others(self, old: str, new: str) -> bool:
        """Return True if a filter by a part of the path is about other files too."""
        if self._others is None:
            moved = self._moves.moved
            files = (path for path in self._index.files() if path not in moved)
            self._others = [path.text.casefold() for path in files]
        parts = old.casefold(), new.casefold()
        return any(part in path for path in self._others for part in parts)


def dataview_name(name: str) -> str:
    """Return the name by which Dataview queries know a property."""
    return re.sub(r"[^\w-]", "", re.sub(r"\s+", "-", name.strip())).lower()


def _has_word(text: str, word: str) -> bool:
    """Return True if a word is in a text, maybe a regular expression."""
    if not word:
        return False
    before = "" if word[:1] == "#" else r"(?<![\w-])"
    pattern = rf"{before}{re.escape(word)}(?![\w-])"
    # A class such as \d ends a word, another backslash only escapes.
    plain = re.sub(r"\\[A-Za-z]", " ", text).replace("\\", "")
    return re.search(pattern, plain, re.IGNORECASE) is not None


# --- files -------------------------------------------------------------------


def files_with_queries(index: VaultIndex) -> list[VaultPath]:
    """Return the bases, and the notes that may have queries, sorted by path."""
    files = {path.text: path for path in index.bases()}
    for mark in (*_MARKS, *_BASE_MARKS):
        needle = folded_needle(mark) if mark.isalpha() else exact_needle(mark)
        files.update((note.path.text, note.path) for note in index.texts(ROOT, needle))
    return [files[text] for text in sorted(files)]


class QueryFile(Struct, frozen=True):
    """A file whose queries a rename concerns: its new path, and its rewritten bytes."""

    path: VaultPath
    before: bytes
    queries: RewrittenQueries


def rewritten_files(
    view: VaultView,
    rename: Rename,
    contents: Callable[[VaultPath], bytes | None] = lambda path: None,
    moves: FileMoves | None = None,
    *,
    doubt_all: bool = False,
) -> Iterator[QueryFile]:
    """Yield the files with queries that contain the old name, and their rewritten contents.

    `contents` returns the bytes of a file that the rename rewrites for another reason, by its new
    path. Files that cannot be read are skipped. With `doubt_all`, and in files that may not be
    written, every query with the old name is in doubt.
    """
    for source in files_with_queries(view.index):
        path = source if moves is None else moves.after(source)
        if path is None:
            continue
        try:
            data = contents(path)
            if data is None:
                data = view.read(source)
            if isinstance(rename, MoveInQueries):
                rename.source = source
            queries = rewrite_queries(source, data, rename, doubt_all=doubt_all)
        except VaultError:
            continue
        if queries.count:
            try:
                paths.parse(path.text, PathUse.UPDATE)
            except PathRefused:
                queries = rewrite_queries(source, data, rename, doubt_all=True)
        if queries.count or queries.doubts:
            yield QueryFile(path, data, queries)


def move_in_queries(
    index: VaultIndex, moves: FileMoves, entry: VaultEntry, target: VaultPath, style: LinkStyle
) -> MoveInQueries:
    """Return the rename of an entry of the vault as queries see it."""
    return MoveInQueries(
        index, moves, entry.path, target, is_folder=entry.kind == "folder", style=style
    )


def rewrite_queries(
    path: VaultPath, data: bytes, rename: Rename, *, doubt_all: bool = False
) -> RewrittenQueries:
    """Return a file with the queries as they should be after a rename.

    With `doubt_all` nothing is rewritten, and all renamed names are in doubt. Raises VaultError
    NOT_TEXT if the file is not UTF-8.
    """
    text = decode(data, path.text)
    if rename.word and rename.word.casefold() not in text.casefold():
        return RewrittenQueries(data)
    edits: list[Edit[str]] = []
    doubts: list[tuple[int, Language]] = []
    expected: list[tuple[Kind, str]] = []
    renamed: list[tuple[int, Language]] = []
    for fragment, name in _names(path, text):
        at = fragment.positions[name.start]
        new = rename.renamed(name, fragment.language)
        edit = None
        if new is not None and new != name.text:
            edit = None if doubt_all else _edit(fragment, name, new)
            if edit is None:
                doubts.append((at, fragment.language))
            else:
                edits.append(edit)
                renamed.append((at, fragment.language))
        elif new is None and rename.is_doubtful(name):
            doubts.append((at, fragment.language))
        expected.append((name.kind, new if new is not None and edit is not None else name.text))
    content = apply(text, edits)
    if edits and [(name.kind, name.text) for _, name in _names(path, content)] != expected:
        content, edits = text, []
        doubts += renamed
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    listed = {Doubt(bisect_right(starts, at), _LANGUAGE_NAMES[name]) for at, name in doubts}
    return RewrittenQueries(content.encode(), len(edits), tuple(sorted(listed)))


def _edit(fragment: Fragment, name: QueryName, new: str) -> Edit[str] | None:
    """Return the edit that writes a new name, or None if it cannot be written there."""
    written: str | None = new
    if name.style == "quoted":
        quote = fragment.text[name.start - 1]
        written = json.dumps(new, ensure_ascii=False)[1:-1]
        if quote == "'":
            written = written.replace('\\"', '"').replace("'", "\\'")
    elif name.style == "identifier":
        written = new if _DATAVIEW_NAME.fullmatch(new) else dataview_name(new) or None
    elif name.style == "variable" and not _BASE_NAME.fullmatch(new):
        written = f"note[{json.dumps(new, ensure_ascii=False)}]"
    elif name.style == "member" and not _BASE_NAME.fullmatch(new):
        written = None
    if written is not None:
        written = _in_scalar(fragment, name, written)
    if written is None or "\n" in written:
        return None
    return Edit(fragment.positions[name.start], fragment.positions[name.end], written)


def _in_scalar(fragment: Fragment, name: QueryName, written: str) -> str | None:
    """Return a text as the scalar of a fragment writes it, or None if it would end the scalar."""
    if fragment.scalar == "'":
        return written.replace("'", "''")
    if fragment.scalar == '"':
        return json.dumps(written, ensure_ascii=False)[1:-1]
    if fragment.scalar == "plain":
        whole = fragment.text[: name.start] + written + fragment.text[name.end :]
        return written if _PLAIN_SCALAR.fullmatch(whole) else None
    return written


# --- parsers -----------------------------------------------------------------


def _names(path: VaultPath, text: str) -> Iterator[tuple[Fragment, QueryName]]:
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
