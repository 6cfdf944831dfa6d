"""Readers of what a text loads or runs when Obsidian displays it: Markdown, HTML, CSS, addresses.

Markdown is parsed by CommonMark plus the additions of Obsidian and its plugins. Where Obsidian may
read something differently, both readings count: a warning too many is better than one too few.
Indented text never counts as code. Code counts as code only where no comment, formula or HTML can
have shifted its borders.

Tags are recognised wherever one can begin, as Obsidian renders a note block by block: a tokenizer
for whole pages would be blinded by an open quote. Attributes follow the tokenization of the HTML
standard (https://html.spec.whatwg.org/multipage/parsing.html, 13.2.5.32 to 13.2.5.39), addresses
the URL standard (https://url.spec.whatwg.org): tabs and line ends inside are dropped, `\\` counts
as `/`, and `https:host` needs no slashes.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from obsidian_agent.expression import expression

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


_INNER = expression(
    r"(?<![\w+.-])(?:(?:https?|wss?|ftps?):[\\/]*|(?<![^\s\"'`(,;=\[|])[\\/]{2})"
    r"[^\s\"'`<>()\\/|,;]+[^\s\"'`<>|]*",
    re.I,
)
_WHOLE = expression(r"(?:(?:https?|wss?|ftps?):[\\/]*|[\\/]{2,})[^\s\\/].*", re.I | re.S)
_FILE = expression(r"file:(?:[\\/]{2}(?![\\/]|localhost[\\/])|[\\/]{4,})[^\\/]", re.I)
_HOST = expression(r"^(?:[a-z]+:)?[\\/]*([^\\/?#\s\"'<>()]*)", re.I)
_DROPPED = expression(r"[\t\n\r]")
_BLANK = "".join(map(chr, range(0x21)))

_SCRIPT = expression(
    r"(?:java|vb|live)script:\s*\S|data:\s*(?:text/(?:html|xml)|application/(?:xhtml|xml))", re.I
)
_SVG_DATA = expression(r"data:\s*image/svg", re.I)
_COMMAND = expression(
    r"obsidian:[\\/]*(?!(?:open|search|daily|new|choose-vault|vault|show-plugin)\b)[\w-]", re.I
)
"""Links that plugins run as commands (Advanced URI, Shell commands, …).

The actions of Obsidian itself run nothing.
"""

_TAG = expression(r"<([a-z][^\s/>]*)", re.I)
_ATTRIBUTE = expression(r"[\s/]*([^\s/>][^\s/>=]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]*)))?")
_INERT_ATTRIBUTES: Final = frozenset(
    {
        "title",
        "alt",
        "class",
        "id",
        "cite",
        "xmlns",
        "placeholder",
        "lang",
        "rel",
        "name",
        "label",
        "summary",
        "d",
    }
)
"""Attributes whose addresses are never loaded."""
_INERT_PREFIXES = ("aria-", "data-", "xmlns:")
_FRAMES = frozenset({"iframe", "frame", "object", "embed", "webview", "a", "use", "portal"})
"""Elements that open their source as a document of its own."""

_STYLING = expression(r"\\(?:style|bbox|mmlToken|csname)(?![a-z])", re.I)
"""MathJax commands that take CSS or attributes, and the one that builds command names."""
_STYLING_SIGNS: Final = (b"\\style", b"\\bbox", b"\\mmltoken", b"\\csname")
_CSS_COMMENT = expression(r"/\*.*?(?:\*/|\Z)", re.S)
_CSS_ESCAPE = expression(r"\\(?:([0-9a-f]{1,6})\s?|(\n|\r\n?|\f)|(.))", re.I)


_MAX_NESTED: Final = 100
_MAX_REREAD: Final = 4
"""Levels of code within code that are read as text."""

_MAX_OPEN: Final = 1_000
"""Unclosed brackets: the parser searches for the end of each."""

_ONLY_COLOURED: Final = frozenset(
    re.findall(
        r"\S+",
        """text txt plain plaintext md markdown html xml svg css scss less js javascript ts
        typescript tsx json json5 jsonc jsonl yaml yml toml ini cfg conf csv tsv diff patch log sh
        bash zsh fish shell console powershell ps1 bat cmd python py python3 ipython r ruby rb perl
        php java kotlin scala groovy c h cpp c++ cs csharp objc swift go golang rust rs zig nim lua
        vim lisp clojure scheme haskell hs elm ocaml ml fsharp erlang elixir dart julia matlab
        fortran cobol pascal ada asm nasm sql graphql proto protobuf dockerfile docker makefile make
        cmake nginx apache http regex tex latex bibtex nix terraform hcl solidity vb vbnet awk sed
        gitignore properties""",
    )
)
"""Languages that are only highlighted.

A plugin may render any other as it likes; most of them render Markdown.
"""
_RUNS: Final = expression(
    r"\w*js|.*[-_]js(?:[-_].*)?|js[-_].*|\w*(?:jsx|tsx|ts):?.*|run-?\w*|execute.*|"
    r"templater|button|meta-bind|meta-bind-button|quickadd|react|svelte|vue|emera|mdx|"
    r"datacore\w*|shell-?commands?|customjs|modal-?form.*|wasm|.*-script",
    re.I,
)
_NOT_RUN: Final = _ONLY_COLOURED | {"nodejs"}

_MATHS_OR_COMMENT: Final = expression(r"\$\$|%%|\$[^$`~]*[`~][^$]*\$")
_FENCE_INFO: Final = expression(r"```(?<!````)`*+[^\S\n]*+(?=([^\s`][^\n`]*))")
_BROKEN_INFO: Final = expression(r"```[^\n`]+`[^\n]*")
_TILDE_INFO: Final = expression(r"~~~(?<!~~~~)~*+[^\S\n]*+(\S[^\n]*)")
_SCRIPT_SIGN: Final = expression(rb"<(?:%|script)")
_LOWER: Final = bytes(range(256)).lower()
_MARKUP: Final = expression(r"[\[\]*_<>!`~]")
_CODE_SPAN: Final = expression(r"`\s*(?:\$=|js\s*[:=]|button\[)", re.I)
_HANDLER: Final = expression(r"on(?<![a-z0-9]on)[a-z]{2,}\s*=")
_LOADING_MARK: Final = expression(
    r"""
    !\[(?!\[[^\[\]\n:]*\]\](?![(\[]))                       # an image, but not an embed of a note
    # a tag whose attributes may have values
    | <style | <[a-z](?!(?:[\w /.,'-]*+|[a-z0-9+.-]*+:[^\s<>=&\\]*+)>)
    | `\s*(?:=|view\[|input\[)                              # what plugins may draw
    """,
    re.I | re.X,
)
_PICTURES: Final = (
    "banner",
    "cover",
    "image",
    "img",
    "thumb",
    "poster",
    "photo",
    "picture",
    "avatar",
    "icon",
    "logo",
    "background",
)
_PICTURE_KEY: Final = expression(
    rf"[ \t]*(?:-[ \t]+)?[\"']?[\w -]{{0,60}}(?:{'|'.join(_PICTURES)})[\w -]{{0,60}}[\"']?[ \t]*:",
    re.I,
)
_LINK_CODE: Final = expression(
    r"script:|data:|obsidian:|\](?:\( *<?|: *<?)[^)\s]{0,200}(?:&(?:#|tab|newl|colon)|\\:)"
)
_LINK_SIGNS: Final = ("script:", "data:", "obsidian:", "&", "\\:")
_SCHEME: Final = expression(rb":(?:(?<=ttp:|tps:|ftp:|ipt:|ata:|ian:)|(?<=ws:|ss:))")
"""The ends of the schemes of remote addresses, and of those that a link runs."""
_ADDRESS_ESCAPE: Final = expression(r"\\[\\/0-9a-fux]|&[#a-z]")
"""One of these is in every remote address with escapes, however it is written.

They are searched in text without tabs and line ends, in lower case.
"""
_TEMPLATER: Final = expression(r"<%")
_WEB_EMBED: Final = expression(r"!\[\[([^\]\n]+)")
_LOOSE_IMAGE: Final = expression(r"!\[[^\n]{0,500}?\]\(\s*<?([^)\n]{1,4000})")
_LOOSE_REFERENCE: Final = expression(r"!\[([^\]\n]{0,300})\](?:\[([^\]\n]{0,300})\])?")
_LOOSE_DEFINITION: Final = expression(
    r"^[ \t>*+\-\d.)]*\[([^\]\n]{1,300})\]:[ \t]*\n?[ \t>]*<?(\S+)", re.M
)
_DEEP: Final = expression(rf"^(?:[ \t]*(?:>|[-+*]|\d{{1,9}}[.)])){{{_MAX_NESTED - 20}}}", re.M)
_MARKER: Final = expression(
    r"^((?:[ \t>]|(?:[-+*]|\d{1,9}[.)])[ \t])*)(?:\[\^[^\]\n]+\]:|\[[^\]\n]\](?=[ \t]))[ \t]*", re.M
)
"""Footnotes and task boxes, unknown to CommonMark: blocks may begin after them."""
_QUOTE_MARK: Final = re.compile(r"\n[ \t]*>[> \t]*")
_STRUCTURE: Final = "<>`![]()"


class TooComplex(Exception):
    """The text would take too long to parse."""


class ActiveFindings(Struct):
    """Addresses that would be loaded, and pairs of the kind of code and its text."""

    remote: set[str] = field(default_factory=set)
    code: set[tuple[str, str]] = field(default_factory=set)

    def load(self, value: str) -> None:
        """Add a value that names one thing to be loaded."""
        self.remote |= set(whole_address(value))

    def compute(self, expression: str, context: str) -> None:
        """Add an address that is computed when the file is displayed.

        `context` is the `digest` of everything it may depend on.
        """
        self.remote.add(f"({' '.join(expression[:70].split())})\0{context}")

    def search(self, text: str) -> None:
        """Add every address in a text."""
        self.remote |= set(addresses(text))

    def follow(self, value: str, tag: str = "a") -> None:
        """Add a value that is opened or run by a click."""
        plain = _DROPPED.sub("", value).strip(_BLANK)
        if _SCRIPT.match(plain) or (tag in _FRAMES and _SVG_DATA.match(plain)):
            self.code.add((plain.partition(":")[0].lower() + ":", plain))
        elif _COMMAND.match(plain):
            self.code.add(("obsidian: link", plain))


def whole_address(value: str) -> Iterator[str]:
    """Yield the value if it is an address outside this computer."""
    plain = _DROPPED.sub("", value).strip(_BLANK)
    if _WHOLE.match(plain) or _FILE.match(plain):
        yield plain


def addresses(text: str) -> Iterator[str]:
    """Yield every address in a text, also one with line ends and tabs in it."""
    for reading in {text, _DROPPED.sub("", text)}:
        for match in _INNER.finditer(reading):
            yield match[0]


def host_of(address: str) -> str:
    """Return the host of an address in lower case."""
    match = _HOST.match(address.removeprefix("file:"))
    return match[1].rpartition("@")[2].lower() if match else ""


def digest(text: str) -> str:
    """Return a short hash of a text."""
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=16).hexdigest()


def address_label(address: str) -> str:
    """Return the part of an address displayed to users: its host, or its expression."""
    return host_of(address) or address.partition("\0")[0][:80]


def read_maths(text: str, findings: ActiveFindings, context: str) -> None:
    """Read formulas in a note. A command that takes CSS or attributes may load anything.

    Macros can be defined anywhere in the note, so arguments are not read: `context` is its
    `digest`.
    """
    for command in _STYLING.finditer(text):
        findings.compute(f"a formula with {command[0]}", context)


def read_markup(text: str, findings: ActiveFindings) -> None:
    """Read every tag in a text."""
    budget = 2 * len(text) + 50_000
    for tag in _TAG.finditer(text):
        name, position = tag[1].lower(), tag.end()
        while (attribute := _ATTRIBUTE.match(text, position)) is not None:
            budget -= attribute.end() - position
            if budget < 0:
                raise TooComplex
            position = attribute.end()
            value = next((group for group in attribute.groups()[1:] if group is not None), "")
            _read_attribute(name, attribute[1].lower(), html.unescape(value), findings)
        if name in ("script", "style"):
            content = _until(text, position, f"</{name}")
            # Where many are open at once each goes on to the end of the text.
            budget -= len(content)
            if budget < 0:
                raise TooComplex
            if name == "script":
                findings.code.add(("<script>", content))
            else:
                read_css(content, findings)


def read_css(text: str, findings: ActiveFindings) -> None:
    """Read style rules: any address in them is loaded."""
    for reading in (text, _CSS_COMMENT.sub("", text)):
        findings.search(_CSS_ESCAPE.sub(_unescaped, reading))


def _read_attribute(tag: str, name: str, value: str, findings: ActiveFindings) -> None:
    if name.startswith("on") and name[2:].isalpha():
        findings.code.add((f"{name[:40]}=", value))
    elif name == "style":
        read_css(value, findings)
    elif name == "srcdoc":
        read_markup(value, findings)
    elif name not in _INERT_ATTRIBUTES and not name.startswith(_INERT_PREFIXES) and value:
        findings.follow(value, tag)
        if not (tag in ("a", "area") and name.endswith("href")):
            findings.load(value)
            findings.search(value)
            read_css(value, findings)  # attributes of SVG may hold CSS


def _until(text: str, position: int, end: str) -> str:
    closing = re.compile(re.escape(end), re.I).search(text, position)
    return text[position : closing.start() if closing else len(text)]


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        code = int(match[1], 16)
        return chr(code) if 0 < code < 0x110000 else "\ufffd"
    return "" if match[2] else match[3]


def is_quiet(text: str) -> bool:
    """Return whether nothing in a note can load or run anything, without parsing it."""
    # Substring tests cost a tenth of patterns, and single characters a tenth of that.
    infos = _infos(text)
    if any(_runs(info) or _MARKUP.search(info) or "base" in _words(info) for info in infos) or (
        "`" in text and _CODE_SPAN.search(text)
    ):
        return False
    # What follows a code span may be read as part of the info before it.
    if "```" in text and any(_runs(line.replace("`", " ")) for line in _BROKEN_INFO.findall(text)):
        return False
    # No sign holds a letter that is the lower case of a non-ASCII one; bytes are searched faster.
    signs = text.encode(errors="replace").translate(_LOWER, b"\n\t\r")
    if "<" in text and (
        _SCRIPT_SIGN.search(signs) or ("=" in text and _HANDLER.search(text.lower()))
    ):
        return False
    if any(sign in signs for sign in _STYLING_SIGNS):
        return False
    escaped = b"&" in signs or b"\\" in signs
    addressed = (b"/" in signs and (b"//" in signs or b"/\\" in signs)) or _SCHEME.search(signs)
    if not escaped and not addressed:
        return True
    plain = text.replace("\n", "").replace("\t", "").replace("\r", "").lower()
    if any(sign in plain for sign in _LINK_SIGNS) and _LINK_CODE.search(plain):
        return False
    if not addressed and not _ADDRESS_ESCAPE.search(plain):
        return True
    # A plugin may draw a block whose language is more than coloured.
    if not _ONLY_COLOURED.issuperset(
        words[0] for info in infos if (words := _words(info))
    ) or _LOADING_MARK.search(text):
        return False
    if not any(word in plain for word in _PICTURES):
        return True
    return not any(_PICTURE_KEY.match(line) for line in text.split("\n") if ":" in line)


def read_markdown(
    text: str,
    findings: ActiveFindings,
    special: Callable[[str, str], bool] = lambda language, content: False,
) -> None:
    """Read everything in a note's text. Raise `TooComplex`.

    `special` may read the content of a block by its language, and returns whether it did.
    """
    for script in _TEMPLATER.finditer(text):
        # Templater takes a file as it is, in code and anywhere.
        findings.code.add(
            ("<% %>", text[script.end() : script.end() + 5_000].partition("%>")[0].strip())
        )
    definitions = {_label(label): address for label, address in _LOOSE_DEFINITION.findall(text)}
    try:
        _MarkdownReader(findings, definitions, special, text).blocks(text, 0)
    except RecursionError as error:
        raise TooComplex from error


def _infos(text: str) -> list[str]:
    """Return the text after every mark that may begin a code block.

    An info string with backticks also counts up to the first of them.
    """
    infos: list[str] = _FENCE_INFO.findall(text) if "`" in text and "```" in text else []
    if "~" in text and "~~~" in text:
        infos += [
            info
            for info_ in _TILDE_INFO.findall(text)
            for info in {info_, info_.partition("`")[0]}
            if info
        ]
    return infos


def _runs(info: str) -> bool:
    """Return whether a plugin runs a code block with this info string.

    An entity may stand for anything.
    """
    return (
        "&" in info
        or "\\" in info
        or any(word not in _NOT_RUN and _RUNS.fullmatch(word) for word in _words(info))
    )


def _words(info: str) -> list[str]:
    return re.findall(r"[^\s{}]+", info.lower().replace("{.", " "))


class _MarkdownReader:
    def __init__(
        self,
        findings: ActiveFindings,
        definitions: dict[str, str],
        special: Callable[[str, str], bool],
        whole: str,
    ) -> None:
        self._findings = findings
        self._definitions = definitions
        self._special = special
        self._context = digest(whole)

    def blocks(self, text: str, depth: int) -> None:
        if (
            depth > _MAX_REREAD
            or text.count("[") - text.count("]") > _MAX_OPEN
            or _DEEP.search(text)
        ):
            raise TooComplex
        tokens = _parser().parse(_without_markers(text) + "\n")
        doubtful = _MATHS_OR_COMMENT.search(text) is not None or any(
            token.type == "html_block" for token in tokens
        )
        for token in tokens:
            match token.type:
                case "inline":
                    self._inline(token.children or (), doubtful, depth)
                case "html_block":
                    read_markup(token.content, self._findings)
                    self._reread(token.content, depth)
                case "fence":
                    self._fence(token, doubtful, depth)
                case _:
                    pass

    def _reread(self, text: str, depth: int) -> None:
        """Read what one reading takes for code or HTML as a text of its own."""
        if depth >= _MAX_REREAD:
            raise TooComplex
        for token in _parser().parseInline(text):
            self._inline(token.children or (), True, depth + 1)

    def _fence(self, token: Token, doubtful: bool, depth: int) -> None:
        from markdown_it.common.utils import unescapeAll

        info = unescapeAll(token.info)
        language = (_words(info) or [""])[0]
        if _runs(info):
            self._findings.code.add((f"{language[:40]} block", token.content))
        closed = (
            token.map is not None and token.map[1] - token.map[0] == token.content.count("\n") + 2
        )
        if not language or language in _ONLY_COLOURED:
            if doubtful or not closed:
                self.blocks(token.content, depth + 1)
        elif not self._special(language, token.content):
            self._findings.search(token.content)
            self.blocks(token.content, depth + 1)

    def _inline(self, children: Sequence[Token], doubtful: bool, depth: int) -> None:
        pieces: list[str] = []
        for child in children:
            match child.type:
                case "text":
                    pieces.append(child.content)
                case "text_special":
                    pieces.append(" " if child.content in _STRUCTURE else child.content)
                case "softbreak" | "hardbreak":
                    pieces.append("\n")
                case "html_inline":
                    pieces.append(child.content)
                case "code_inline":
                    pieces.append(" ")
                    if len(child.markup) > 2 and _runs(child.content.strip().partition(" ")[0]):
                        self._findings.code.add(("block", child.content))
                    self._code(child.content, doubtful, depth)
                case "image":
                    self._findings.load(str(child.attrs.get("src", "")))
                    self._findings.follow(str(child.attrs.get("src", "")), "img")
                    self._inline(child.children or (), doubtful, depth)
                case "link_open":
                    self._findings.follow(str(child.attrs.get("href", "")))
                case _:
                    pieces.append(child.markup)
        self._text("".join(pieces))

    def _text(self, text: str) -> None:
        # Deep in a footnote CommonMark takes the mark of a quote for text.
        for reading in {text, _QUOTE_MARK.sub("\n", text)}:
            read_markup(reading, self._findings)
        read_maths(text, self._findings, self._context)
        self._findings.code |= {("block", info) for info in _infos(text) if _runs(info)}
        for image in _LOOSE_IMAGE.finditer(text):
            self._findings.remote |= set(addresses(image[1]))
        for embed in _WEB_EMBED.finditer(text):
            self._findings.load(embed[1])
        for image in _LOOSE_REFERENCE.finditer(text):
            self._findings.load(self._definitions.get(_label(image[2] or image[1]), ""))
        for script in re.finditer(r"(?:java|vb)script:\S+", text, re.I):
            self._findings.follow(script[0])

    def _code(self, content: str, doubtful: bool, depth: int) -> None:
        code = content.strip()
        if re.match(r"\$=|js\s*[:=]|button\[", code, re.I):
            self._findings.code.add((f"inline {code[:2]}", code))
        elif re.match(r"=|(?:view|input)\[", code, re.I):
            self._findings.search(code)
        # A table's cells end at |, so that a code span over it is none.
        if doubtful or code.startswith("=") or "|" in code or "\n" in code:
            self._reread(content, depth)


def _without_markers(text: str) -> str:
    for _ in range(_MAX_NESTED):
        text, count = _MARKER.subn(r"\1", text)
        if not count:
            return text
    raise TooComplex


def _label(text: str) -> str:
    return " ".join(text.split()).casefold()


@cache
def _parser() -> MarkdownIt:
    # Imported here: a preview without anything to parse need not wait for it.
    from markdown_it import MarkdownIt

    class Lenient(MarkdownIt):
        """A parser that accepts every address; whether one is harmless is decided elsewhere."""

        def validateLink(self, url: str) -> bool:
            return True

        def normalizeLink(self, url: str) -> str:
            return url

    return Lenient("commonmark", {"maxNesting": _MAX_NESTED}).disable(["code", "text_join"])
