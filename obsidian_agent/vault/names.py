"""Rules for one component of a vault path: what is protected, what is not portable, what a legal name made from any text looks like.

Everything here is text in, text out; nothing looks at the disk. `paths.parse` puts the rules together.

Sources: Obsidian help ("Internal links", "Configuration folder"), Microsoft "Naming files, paths, and namespaces", git's
`is_ntfs_dotgit` and HFS+ rules (t0060, t1014), Unicode UAX #31 and UTS #39 for invisible characters.
"""

from __future__ import annotations

import re
import unicodedata

MAX_NAME_BYTES = 255
"""Longest name that ext4, APFS and NTFS all take (ext4 counts bytes of UTF-8)."""

MAX_CLEAN_BYTES = 240
"""Longest name that `clean_component` makes; leaves room for an extension and a ` 2`."""

# The 16 code points that HFS+ leaves out when it compares names (git, utf8.c).
_HFS_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])

# 8.3 names that NTFS gives to dot folders: `.git` is `GIT~1`, `.obsidian` is `OBSIDI~1`; after four clashes two letters and a hash.
_SHORT_NAME = re.compile(r"(?:git|gitmod|gitatt|gitign|obsidi|openco|trash|claude|env|mcp|(?:gi|ob|op|tr|cl)[0-9a-f]{4})~[0-9]+(?:\.[^.]{0,3})?")

_PROTECTED_NAMES = frozenset({"opencode.json"})

INSTRUCTION_FILES = frozenset({"agents.md", "claude.md", "gemini.md"})
"""Files in the vault's root that other agents obey, case-folded: readable, never written."""

_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$", "clock$"}
    | {f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789\u00b9\u00b2\u00b3"}
)

_ILLEGAL = re.compile(r'[<>:"|?*\\/\x00-\x1f\x7f-\x9f\u2028\u2029]')
_UNLINKABLE = re.compile(r"[#^\[\]|]|%%")

# Extensions that a double click, a shell or a browser runs.
CODE_EXTENSIONS = frozenset(
    ".app .appimage .applescript .appref-ms .bash .bat .chm .cmd .com .command .cpl .csh .desktop .dll .dmg .exe .fish .gadget .hta .htm .html "
    ".inf .jar .js .jse .jsx .ksh .lnk .mht .mhtml .mjs .cjs .msc .msi .msp .mst .pif .pkg .pl .ps1 .ps1xml .psd1 .psm1 .py .pyc .pyw .rb .reg .scf .scpt "
    ".scr .sct .settingcontent-ms .sh .shtml .terminal .tool .ts .url .vb .vbe .vbs .webloc .workflow .ws .wsc .wsf .wsh .xht .xhtml .zsh".split()
)

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NONCHARACTER = re.compile("[\ufdd0-\ufdef" + "".join(chr(plane + last) for plane in range(0, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF)) + "]")
_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f")
_VISIBLE_FORMAT = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_JOINERS = frozenset("\u200c\u200d")
_OPTION = re.compile(r"-[-A-Za-z0-9_=.]+")


def extension(name: str) -> str:
    """The lower-case extension with its dot, or "": `.md` of `a.MD`, nothing of `1. Intro`, `..` or `.hidden`."""
    stem, dot, tail = name.rpartition(".")
    if not dot or not tail or " " in tail or not stem.strip("."):
        return ""
    return f".{tail.lower()}"


def protected(component: str) -> bool:
    """Whether a name is, on any disk, a dot file or folder or another name that no plan may touch.

    Compared after NFKC, case folding, and removal of what HFS+ ignores and Win32 drops (trailing dots and blanks, `:stream`).
    """
    if component.isascii():
        if component[:1] == "." or "~" in component or len(component) >= 13:
            return _is_protected(component.lower())
        return False
    folded = unicodedata.normalize("NFKC", component.translate(_HFS_IGNORED)).casefold().translate(_HFS_IGNORED)
    return _is_protected(folded)


def _is_protected(folded: str) -> bool:
    name = folded.split(":", 1)[0].rstrip(". \t")
    if len(name) > 1 and name[0] == "." and name[1] != ".":
        return True
    return name in _PROTECTED_NAMES or _SHORT_NAME.fullmatch(name) is not None


def unreadable_text(component: str) -> str | None:
    """Why text can be part of no name at all, or None: control characters, lone surrogates, noncharacters."""
    if component.isascii():
        return "a control character" if not component.isprintable() else None
    if _CONTROL.search(component):
        return "a control character or line break"
    if _SURROGATE.search(component):
        return "half of a surrogate pair"
    return "a code point that is no character" if _NONCHARACTER.search(component) else None


def only_dots(component: str) -> bool:
    """Whether a name vanishes or becomes a parent on some system: dots and blanks alone, also in compatibility forms (`…`)."""
    if component[:1].isalnum():
        return False
    return not unicodedata.normalize("NFKC", component).strip(". \t")


def unportable(component: str) -> str | None:
    """Why a new name would be illegal, an alias or invisible somewhere, or None. The answer completes "the name has …"."""
    if illegal := _ILLEGAL.search(component):
        return f"{illegal[0]!r}, which some systems forbid in names"
    if component[-1:] == "." or component[-1:].isspace():
        return "a dot or blank at its end, which Windows drops"
    if component.partition(".")[0].rstrip().lower() in _RESERVED:
        return "the name of a Windows device"
    if len(component.encode()) > MAX_NAME_BYTES:
        return f"more than {MAX_NAME_BYTES} bytes"
    if component.startswith("..") and not (component[2:3].isalnum() or component[2:3] in "._"):
        return "two dots at its start"
    if _OPTION.fullmatch(component):
        return "a dash at its start, which commands take for an option"
    if "${" in component:
        return "a placeholder that was never filled in (${)"
    if not component.isascii():
        return _hidden(component)
    return None


def _hidden(component: str) -> str | None:
    if "/" in unicodedata.normalize("NFKC", component).replace("\\", "/"):
        return "a character that some systems turn into a slash"
    previous = ""
    for char in _FLAG.sub("\u2691", component):
        if char in _JOINERS:
            if previous < "\u0590":
                return f"the invisible character U+{ord(char):04X}"
        elif char in _BLANK_LETTERS or (unicodedata.category(char) == "Cf" and char not in _VISIBLE_FORMAT):
            return f"the invisible character U+{ord(char):04X}"
        previous = char
    return None


def unlinkable(component: str) -> str | None:
    """The characters of a new name that Obsidian's links cannot hold, or None."""
    found = _UNLINKABLE.search(component)
    return found[0] if found else None


def dash_illegal(text: str) -> str:
    """The text with each character that is illegal in names on any platform as `-`. Separators must have been refused before."""
    return _ILLEGAL.sub("-", text)


def clean_component(text: str) -> str:
    """A legal, portable, linkable name part made from any text; never empty ("Untitled").

    Never protected, never a device name, at most `MAX_CLEAN_BYTES` bytes, cut between characters.
    """
    text = unicodedata.normalize("NFC", _NONCHARACTER.sub("", _SURROGATE.sub("", text)))
    text = re.sub(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", text).replace("${", "-").replace("%%", "%")
    text = _ILLEGAL.sub("-", re.sub(r"[#^\[\]]", "", text))
    text = "".join(char for char in text if _hidden(char) is None or char in _JOINERS)
    text = _trimmed(text.encode()[:MAX_CLEAN_BYTES].decode(errors="ignore"))
    if not text:
        return "Untitled"
    if unportable(text) or protected(text):
        text = _trimmed(f"{text.translate(dict.fromkeys(map(ord, _JOINERS)))} -")
        head, dot, tail = text.partition(".")
        if head.rstrip().lower() in _RESERVED:
            text = f"{head.rstrip()}-{dot}{tail}"
    return text if text and not unportable(text) and not protected(text) else "Untitled"


def _trimmed(text: str) -> str:
    return text.lstrip(". -\t").rstrip(". \t").strip()
