"""What a text loads or runs when Obsidian shows it: Markdown, HTML, CSS and single addresses.

Markdown is read with a CommonMark parser and what Obsidian and its plugins add to the language. Where Obsidian may read something
otherwise than CommonMark does, both readings count: a warning too many is better than one too few. Indented text is never code. Code is
taken for code only where no comment, formula or HTML can have shifted its borders.

Tags are read wherever one can begin, whatever stands before them, as Obsidian renders a note block by block: a tokenizer for whole pages
would be blinded by a quote that stays open. Attributes follow the tokenization of the HTML standard
(https://html.spec.whatwg.org/multipage/parsing.html, 13.2.5.32 to 13.2.5.39), addresses the URL standard (https://url.spec.whatwg.org):
tabs and line ends inside are dropped, `\\` counts as `/`, and `https:host` needs no slashes at all.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.expression import expression

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


_INNER = expression(
    r"(?<![\w+.-])(?:(?:https?|wss?|ftps?):[\\/]*|(?<![^\s\"'`(,;=\[|])[\\/]{2})[^\s\"'`<>()\\/|,;]+[^\s\"'`<>|]*",
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
"""Links that plugins take as commands (Advanced URI, Shell commands, …); the actions of Obsidian itself run nothing."""

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
"""Attributes whose addresses nobody loads."""
_INERT_PREFIXES = ("aria-", "data-", "xmlns:")
_FRAMES = frozenset({"iframe", "frame", "object", "embed", "webview", "a", "use", "portal"})
"""Elements that open what they name as a document of its own."""

_STYLING = expression(r"\\(?:style|bbox|mmlToken|csname)(?![a-z])", re.I)
"""Commands of MathJax that take CSS or attributes, and the one that builds the name of a command."""
_STYLING_SIGNS: Final = (b"\\style", b"\\bbox", b"\\mmltoken", b"\\csname")
_CSS_COMMENT = expression(r"/\*.*?(?:\*/|\Z)", re.S)
_CSS_ESCAPE = expression(r"\\(?:([0-9a-f]{1,6})\s?|(\n|\r\n?|\f)|(.))", re.I)


_MOST_NESTED: Final = 100
_MOST_REREAD: Final = 4
"""Code in code in code … that is read as text."""

_MOST_OPEN: Final = 1_000
"""Brackets that stay open: the parser looks for the end of each."""

_ONLY_COLOURED: Final = frozenset(
    re.findall(
        r"\S+",
        """text txt plain plaintext md markdown html xml svg css scss less js javascript ts typescript tsx json json5 jsonc jsonl
        yaml yml toml ini cfg conf csv tsv diff patch log sh bash zsh fish shell console powershell ps1 bat cmd python py
        python3 ipython r ruby rb perl php java kotlin scala groovy c h cpp c++ cs csharp objc swift go golang rust rs zig nim
        lua vim lisp clojure scheme haskell hs elm ocaml ml fsharp erlang elixir dart julia matlab fortran cobol pascal ada asm
        nasm sql graphql proto protobuf dockerfile docker makefile make cmake nginx apache http regex tex latex bibtex nix
        terraform hcl solidity vb vbnet awk sed gitignore properties""",
    )
)
"""Languages that are only coloured. Of any other a plugin may make what it likes; most of them draw Markdown."""
_RUNS: Final = expression(
    r"\w*js|.*[-_]js(?:[-_].*)?|js[-_].*|\w*(?:jsx|tsx|ts):?.*|run-?\w*|execute.*|templater|button|meta-bind|meta-bind-button|quickadd|react|"
    r"svelte|vue|emera|mdx|datacore\w*|shell-?commands?|customjs|modal-?form.*|wasm|.*-script",
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
    | <style | <[a-z](?!(?:[\w /.,'-]*+|[a-z0-9+.-]*+:[^\s<>=&\\]*+)>)  # a tag whose attributes may have values
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
"""In a small text without tabs and line ends: one of these is in every remote address, however it is written."""
_TEMPLATER: Final = expression(r"<%")
_WEB_EMBED: Final = expression(r"!\[\[([^\]\n]+)")
_LOOSE_IMAGE: Final = expression(r"!\[[^\n]{0,500}?\]\(\s*<?([^)\n]{1,4000})")
_LOOSE_REFERENCE: Final = expression(r"!\[([^\]\n]{0,300})\](?:\[([^\]\n]{0,300})\])?")
_LOOSE_DEFINITION: Final = expression(
    r"^[ \t>*+\-\d.)]*\[([^\]\n]{1,300})\]:[ \t]*\n?[ \t>]*<?(\S+)", re.M
)
_DEEP: Final = expression(rf"^(?:[ \t]*(?:>|[-+*]|\d{{1,9}}[.)])){{{_MOST_NESTED - 20}}}", re.M)
_MARKER: Final = expression(
    r"^((?:[ \t>]|(?:[-+*]|\d{1,9}[.)])[ \t])*)(?:\[\^[^\]\n]+\]:|\[[^\]\n]\](?=[ \t]))[ \t]*", re.M
)
"""Footnotes and boxes of tasks, which CommonMark does not know: blocks may begin behind them."""
_QUOTE_MARK: Final = re.compile(r"\n[ \t]*>[> \t]*")
_STRUCTURE: Final = "<>`![]()"


class TooComplex(Exception):
    """The text is made so that reading it closely would take too long."""


@dataclass(slots=True)
class ActiveFindings:
    """What was found so far: addresses that would be loaded, and code with the kind of it in front."""

    remote: set[str] = field(default_factory=set)
    code: set[tuple[str, str]] = field(default_factory=set)

    def load(self, value: str) -> None:
        """A value that names one thing to be loaded."""
        self.remote |= set(whole_address(value))

    def compute(self, expression: str, context: str) -> None:
        """Record an address that is computed when the file is shown. `context`: `digest` of all that it may depend on."""
        self.remote.add(f"({' '.join(expression[:70].split())})\0{context}")

    def search(self, text: str) -> None:
        """Text in which an address may stand anywhere."""
        self.remote |= set(addresses(text))

    def follow(self, value: str, tag: str = "a") -> None:
        """A value that something is done with when it is opened or clicked."""
        plain = _DROPPED.sub("", value).strip(_BLANK)
        if _SCRIPT.match(plain) or (tag in _FRAMES and _SVG_DATA.match(plain)):
            self.code.add((plain.partition(":")[0].lower() + ":", plain))
        elif _COMMAND.match(plain):
            self.code.add(("obsidian: link", plain))


def whole_address(value: str) -> Iterator[str]:
    """The value itself when it leads out of this computer."""
    plain = _DROPPED.sub("", value).strip(_BLANK)
    if _WHOLE.match(plain) or _FILE.match(plain):
        yield plain


def addresses(text: str) -> Iterator[str]:
    """Every address that stands in a text, also one with line ends and tabs in it."""
    for reading in {text, _DROPPED.sub("", text)}:
        for found in _INNER.finditer(reading):
            yield found[0]


def host_of(address: str) -> str:
    """The computer that an address leads to, in lower case."""
    found = _HOST.match(address.removeprefix("file:"))
    return found[1].rpartition("@")[2].lower() if found else ""


def digest(text: str) -> str:
    """Return a short stand-in for a text."""
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=16).hexdigest()


def address_label(address: str) -> str:
    """Return what users see of an address: its host, or the expression that computes it."""
    return host_of(address) or address.partition("\0")[0][:80]


def read_maths(text: str, found: ActiveFindings, context: str) -> None:
    """Read formulas in a note. A command that takes CSS or attributes may load anything.

    Macros can be defined anywhere in the note, so arguments are not read: `context` is its `digest`.
    """
    for command in _STYLING.finditer(text):
        found.compute(f"a formula with {command[0]}", context)


def read_markup(text: str, found: ActiveFindings) -> None:
    """Every tag in a text."""
    budget = 2 * len(text) + 50_000
    for tag in _TAG.finditer(text):
        name, place = tag[1].lower(), tag.end()
        while (attribute := _ATTRIBUTE.match(text, place)) is not None:
            budget -= attribute.end() - place
            if budget < 0:
                raise TooComplex
            place = attribute.end()
            value = next((group for group in attribute.groups()[1:] if group is not None), "")
            _read_attribute(name, attribute[1].lower(), html.unescape(value), found)
        if name in ("script", "style"):
            content = _until(text, place, f"</{name}")
            # Where many are open at once each goes on to the end of the text.
            budget -= len(content)
            if budget < 0:
                raise TooComplex
            if name == "script":
                found.code.add(("<script>", content))
            else:
                read_css(content, found)


def read_css(text: str, found: ActiveFindings) -> None:
    """Style rules: any address in them is loaded."""
    for reading in (text, _CSS_COMMENT.sub("", text)):
        found.search(_CSS_ESCAPE.sub(_unescaped, reading))


def _read_attribute(tag: str, name: str, value: str, found: ActiveFindings) -> None:
    if name.startswith("on") and name[2:].isalpha():
        found.code.add((f"{name[:40]}=", value))
    elif name == "style":
        read_css(value, found)
    elif name == "srcdoc":
        read_markup(value, found)
    elif name not in _INERT_ATTRIBUTES and not name.startswith(_INERT_PREFIXES) and value:
        found.follow(value, tag)
        if not (tag in ("a", "area") and name.endswith("href")):
            found.load(value)
            found.search(value)
            read_css(value, found)  # attributes of SVG may hold CSS


def _until(text: str, place: int, end: str) -> str:
    closing = re.compile(re.escape(end), re.I).search(text, place)
    return text[place : closing.start() if closing else len(text)]


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        code = int(found[1], 16)
        return chr(code) if 0 < code < 0x110000 else "\ufffd"
    return "" if found[2] else found[3]


def is_quiet(text: str) -> bool:
    """Whether nothing in a note can load or run anything: a quick look, before any parsing."""
    # Looking for signs costs a tenth of matching patterns, and for one character a tenth of that.
    infos = _infos(text)
    if any(_runs(info) or _MARKUP.search(info) or "base" in _words(info) for info in infos) or (
        "`" in text and _CODE_SPAN.search(text)
    ):
        return False
    # What follows a code span may be read as part of the info before it.
    if "```" in text and any(_runs(line.replace("`", " ")) for line in _BROKEN_INFO.findall(text)):
        return False
    # No sign holds a letter that is the lower case of one beyond ASCII; bytes are searched at a fifth of the cost.
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
    found: ActiveFindings,
    special: Callable[[str, str], bool] = lambda language, content: False,
) -> None:
    """Everything in a note's text. `special` may read the content of a block by its language; True when it did. Raises `TooComplex`."""
    for script in _TEMPLATER.finditer(text):
        # Templater takes a file as it is, in code and anywhere.
        found.code.add(
            ("<% %>", text[script.end() : script.end() + 5_000].partition("%>")[0].strip())
        )
    definitions = {_label(label): address for label, address in _LOOSE_DEFINITION.findall(text)}
    try:
        _Reading(found, definitions, special, text).blocks(text, 0)
    except RecursionError as error:
        raise TooComplex from error


def _infos(text: str) -> list[str]:
    """What stands behind every mark that may begin a block of code; with backticks in it also the part before them."""
    infos: list[str] = _FENCE_INFO.findall(text) if "`" in text and "```" in text else []
    if "~" in text and "~~~" in text:
        infos += [
            info
            for found in _TILDE_INFO.findall(text)
            for info in {found, found.partition("`")[0]}
            if info
        ]
    return infos


def _runs(info: str) -> bool:
    """Whether a block of code with this behind its fence is run by a plugin. An entity may stand for anything."""
    return (
        "&" in info
        or "\\" in info
        or any(word not in _NOT_RUN and _RUNS.fullmatch(word) for word in _words(info))
    )


def _words(info: str) -> list[str]:
    return re.findall(r"[^\s{}]+", info.lower().replace("{.", " "))


class _Reading:
    def __init__(
        self,
        found: ActiveFindings,
        definitions: dict[str, str],
        special: Callable[[str, str], bool],
        whole: str,
    ) -> None:
        self._found = found
        self._definitions = definitions
        self._special = special
        self._context = digest(whole)

    def blocks(self, text: str, depth: int) -> None:
        if (
            depth > _MOST_REREAD
            or text.count("[") - text.count("]") > _MOST_OPEN
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
                    read_markup(token.content, self._found)
                    self._again(token.content, depth)
                case "fence":
                    self._fence(token, doubtful, depth)
                case _:
                    pass

    def _again(self, text: str, depth: int) -> None:
        """Read what one reading takes for code or HTML as a text of its own."""
        if depth >= _MOST_REREAD:
            raise TooComplex
        for token in _parser().parseInline(text):
            self._inline(token.children or (), True, depth + 1)

    def _fence(self, token: Token, doubtful: bool, depth: int) -> None:
        from markdown_it.common.utils import unescapeAll

        info = unescapeAll(token.info)
        language = (_words(info) or [""])[0]
        if _runs(info):
            self._found.code.add((f"{language[:40]} block", token.content))
        closed = (
            token.map is not None and token.map[1] - token.map[0] == token.content.count("\n") + 2
        )
        if not language or language in _ONLY_COLOURED:
            if doubtful or not closed:
                self.blocks(token.content, depth + 1)
        elif not self._special(language, token.content):
            self._found.search(token.content)
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
                        self._found.code.add(("block", child.content))
                    self._code(child.content, doubtful, depth)
                case "image":
                    self._found.load(str(child.attrs.get("src", "")))
                    self._found.follow(str(child.attrs.get("src", "")), "img")
                    self._inline(child.children or (), doubtful, depth)
                case "link_open":
                    self._found.follow(str(child.attrs.get("href", "")))
                case _:
                    pieces.append(child.markup)
        self._text("".join(pieces))

    def _text(self, text: str) -> None:
        # Deep in a footnote CommonMark takes the mark of a quote for text.
        for reading in {text, _QUOTE_MARK.sub("\n", text)}:
            read_markup(reading, self._found)
        read_maths(text, self._found, self._context)
        self._found.code |= {("block", info) for info in _infos(text) if _runs(info)}
        for image in _LOOSE_IMAGE.finditer(text):
            self._found.remote |= set(addresses(image[1]))
        for embed in _WEB_EMBED.finditer(text):
            self._found.load(embed[1])
        for image in _LOOSE_REFERENCE.finditer(text):
            self._found.load(self._definitions.get(_label(image[2] or image[1]), ""))
        for script in re.finditer(r"(?:java|vb)script:\S+", text, re.I):
            self._found.follow(script[0])

    def _code(self, content: str, doubtful: bool, depth: int) -> None:
        code = content.strip()
        if re.match(r"\$=|js\s*[:=]|button\[", code, re.I):
            self._found.code.add((f"inline {code[:2]}", code))
        elif re.match(r"=|(?:view|input)\[", code, re.I):
            self._found.search(code)
        # A table's cells end at |, so that a code span over it is none.
        if doubtful or code.startswith("=") or "|" in code or "\n" in code:
            self._again(content, depth)


def _without_markers(text: str) -> str:
    for _ in range(_MOST_NESTED):
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
        """Takes every address as it is written: which ones are harmless is not decided by the parser."""

        def validateLink(self, url: str) -> bool:  # noqa: N802
            return True

        def normalizeLink(self, url: str) -> str:  # noqa: N802
            return url

    return Lenient("commonmark", {"maxNesting": _MOST_NESTED}).disable(["code", "text_join"])
