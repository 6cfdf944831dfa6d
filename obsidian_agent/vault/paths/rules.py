"""Rules for vault paths and their components: what is protected, what is not portable, what leads out of the vault without any `..`
(drives, URL schemes, home folders, variables, percent codes), what a legal name or a slug made from any text looks like.

Everything here is text in, text out; nothing looks at the disk. `paths.parse` puts the rules together.

Sources: Obsidian help ("Internal links", "Configuration folder"), Microsoft "Naming files, paths, and namespaces", the NTFS and HFS+
rules that git keeps for `.git` (t0060, t1014), Unicode TR 36 and Trojan Source (CVE-2021-42574) for invisible characters.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from obsidian_agent.errors import ToolError
from obsidian_agent.expression import expression

MAX_NAME_BYTES: Final = 255
"""Longest name that ext4, APFS and NTFS all take (ext4 counts bytes of UTF-8)."""

MAX_CLEAN_BYTES: Final = 240
"""Longest name that `clean_component` and `slug` make; leaves room for an extension and a ` 2`."""

PLAIN: Final = expression(r"[A-NP-Za-np-z0-9][A-Za-z0-9 ,()&'+=!_.-]*+")
"""Names that every rule for names on disk allows, told at once: most names are such. The others are asked about."""

INSTRUCTION_FILES: Final = frozenset({"agents.md", "claude.md", "gemini.md"})
"""Files that other agents obey in whichever folder they lie, case-folded: readable, never written."""

CODE_EXTENSIONS: Final = frozenset(
    (
        *(
            ".app",
            ".appimage",
            ".applescript",
            ".appref-ms",
            ".bash",
            ".bat",
            ".chm",
            ".cjs",
            ".cmd",
            ".com",
            ".command",
            ".cpl",
            ".csh",
        ),
        *(
            ".desktop",
            ".dll",
            ".dmg",
            ".exe",
            ".fish",
            ".gadget",
            ".hta",
            ".htm",
            ".html",
            ".inf",
            ".jar",
            ".js",
            ".jse",
            ".ksh",
            ".lnk",
        ),
        *(
            ".mht",
            ".mhtml",
            ".mjs",
            ".msc",
            ".msi",
            ".msp",
            ".mst",
            ".pif",
            ".pkg",
            ".pl",
            ".ps1",
            ".ps1xml",
            ".psd1",
            ".psm1",
            ".py",
        ),
        *(
            ".pyc",
            ".pyw",
            ".rb",
            ".reg",
            ".scf",
            ".scpt",
            ".scr",
            ".sct",
            ".settingcontent-ms",
            ".sh",
            ".shtml",
            ".terminal",
            ".tool",
        ),
        *(
            ".url",
            ".vb",
            ".vbe",
            ".vbs",
            ".webloc",
            ".workflow",
            ".ws",
            ".wsc",
            ".wsf",
            ".wsh",
            ".xht",
            ".xhtml",
            ".zsh",
        ),
    )
)
"""Extensions that a double click, a shell or a browser runs as code."""

# The 16 code points that HFS+ leaves out when it compares names.
_HFS_IGNORED = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)

# 8.3 names that NTFS gives to dot files: `.git` is `GIT~1`, `.obsidian` is `OBSIDI~1`; after four clashes two letters and a hash.
_SHORT_NAME = expression(
    r"(?:git|gitmod|gitatt|gitign|obsidi|openco|trash|claude|env|mcp|(?:gi|ob|op|tr|cl|en|mc)[0-9a-f]{4})~[0-9]+(?:\.[^.]{0,3})?"
)
_PROTECTED_FILE = "opencode.json"

_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$", "clock$"}
    | {f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789\u00b9\u00b2\u00b3"}
)

_CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_CONTROL = expression(f"[{_CONTROLS}]")
_ILLEGAL = expression(rf'[<>:"|?*\\/{_CONTROLS}]')
_UNLINKABLE = expression(r"[#^\[\]|]|%%")
_NO_TEXT = expression(
    "[\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)
_OPTION = expression(r"-[-A-Za-z0-9_=.]+")
_VARIABLE = expression(r"\$(?:env:)?[a-z_]\w*|\$\{\w+\}|%\w+%", re.ASCII | re.IGNORECASE)
_PERCENT_CODE = expression(r"%(?=[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})")

_SUBDIVISION_FLAG = expression(
    "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"
)
_VISIBLE_FORMATS = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
# What NFKC turns into a tilde, and into text with a slash or backslash.
_TILDES = expression("[~\uff5e]")
_LIKE_SLASH = frozenset("\u2100\u2101\u2105\u2106\uff0f\uff3c\ufe68")
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_JOINERS = "\u200c\u200d"


def extension(name: str) -> str:
    """The lower-case extension with its dot, or "": `.md` of `a.MD`; none in `1. Intro`, `.hidden` or `a.`."""
    stem, _, tail = name.rpartition(".")
    if not tail or " " in tail or not stem.strip("."):
        return ""
    return f".{tail.lower()}"


def collision_key(text: str) -> str:
    """Two texts with one key are one name on some disk: NFC and full case folding."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def protected(component: str) -> bool:
    """Whether a name is, on any disk, a dot file or folder or another name that no plan may read or touch.

    Compared after NFKC, case folding, and removal of what HFS+ ignores and Win32 drops (trailing dots and blanks, `:stream`).
    """
    if (
        component[:1].isalnum()
        and not _TILDES.search(component)
        and unicodedata.normalize("NFKC", component[0])[0] not in "oO"
    ):
        return False
    if component.isascii():
        folded = component.lower()
    else:
        folded = unicodedata.normalize("NFKC", component).casefold().translate(_HFS_IGNORED)
    name = folded.split(":", 1)[0].rstrip(". \t")
    if len(name) > 1 and name[0] == "." and name[1] != ".":
        return True
    return name == _PROTECTED_FILE or _SHORT_NAME.fullmatch(name) is not None


def unreadable(text: str) -> str | None:
    """Why text can be part of no name at all, or None. The answer completes "the name …"."""
    if text.isprintable():
        return None
    if _CONTROL.search(text):
        return "contains a control character or line break"
    return (
        "contains half of a surrogate pair or another code point that is no character"
        if _NO_TEXT.search(text)
        else None
    )


def climbs(component: str) -> bool:
    """Whether some system takes a name for a parent folder: `..`, `.. `, also behind compatibility forms (`．．／`, `‥`)."""
    if component.isascii() or (component[:1].isalnum() and _LIKE_SLASH.isdisjoint(component)):
        return component.rstrip() == ".."
    return any(
        part.rstrip() == ".."
        for part in unicodedata.normalize("NFKC", component).replace("\\", "/").split("/")
    )


def vanishes(component: str) -> bool:
    """Whether a name is dots and blanks alone, also in compatibility forms (`…`): Win32 strips it to nothing."""
    if component[:1].isalnum():
        return False
    return not unicodedata.normalize("NFKC", component).strip(". \t")


def is_variable(component: str) -> bool:
    """Whether shells would put something else in the place of a name: `$HOME`, `${HOME}`, `%USERPROFILE%`, `$env:HOME`."""
    return _VARIABLE.fullmatch(component) is not None


def unportable(component: str) -> str | None:
    """Why a new name would be illegal, an alias or invisible somewhere, or None. The answer completes "the name …"."""
    if illegal := _ILLEGAL.search(component):
        return f"contains {illegal[0]!r}, which some systems forbid in names"
    if component[-1:] == "." or component[-1:].isspace():
        return "ends in a dot or blank, which Windows drops"
    if _is_device(component):
        return "is the name of a Windows device"
    if len(component.encode()) > MAX_NAME_BYTES:
        return f"is longer than {MAX_NAME_BYTES} bytes"
    if component.startswith("..") and not (component[2:3].isalnum() or component[2:3] in "._"):
        return "starts with two dots"
    if _OPTION.fullmatch(component):
        return "starts with a dash, which commands take for an option"
    if "${" in component:
        return "holds a placeholder that was never filled in"
    return None if component.isascii() else _invisible(component)


def unlinkable(component: str) -> str | None:
    """Why Obsidian's links could not hold a new name, or None. The answer completes "the name …"."""
    found = _UNLINKABLE.search(component)
    return f"contains {found[0]!r}, which Obsidian's links cannot hold" if found else None


def _is_device(component: str) -> bool:
    return component.partition(".")[0].rstrip().lower() in _DEVICES


def _invisible(component: str) -> str | None:
    previous = ""
    for char in _SUBDIVISION_FLAG.sub("\u2691", component):
        if _is_hidden(char, previous):
            return f"contains the invisible character U+{ord(char):04X}"
        if char in _LIKE_SLASH:
            return f"contains {char!r}, which some systems turn into a slash"
        previous = char
    return None


def _is_hidden(char: str, previous: str) -> bool:
    """Invisible characters make two names that look alike. Joiners do not inside emoji and in scripts that need them."""
    if char.isascii():
        return False
    if char in _JOINERS:
        return previous < "\u0590"
    return char in _BLANK_LETTERS or (
        unicodedata.category(char) == "Cf" and char not in _VISIBLE_FORMATS
    )


def dash_illegal(text: str) -> str:
    """The text with each character that is illegal in names on any platform as `-`. Separators must have been refused before."""
    return _ILLEGAL.sub("-", text)


def clean_component(text: str) -> str:
    """A legal, portable, linkable name (or part of one) made from any text, at most `MAX_CLEAN_BYTES` long; "Untitled" when none is left.

    Illegal characters become `-` between others and vanish at the ends, what links cannot hold vanishes, a name that a system gives
    a meaning (devices, dot folders) gets a `-`.
    """
    cleaned = _cleaned(text)
    if protected(cleaned) or vanishes(cleaned):
        # What is left is disguised: compatibility forms of dots, 8.3 names.
        cleaned = _cleaned(unicodedata.normalize("NFKC", cleaned).replace("~", "-"))
    if is_variable(cleaned):
        cleaned = _trimmed(cleaned.strip("$%"))
    if _is_device(cleaned) or protected(cleaned):
        head, dot, tail = cleaned.partition(".")
        cleaned = f"{head.rstrip()}-{dot}{tail}"
    return cleaned if cleaned and not unportable(cleaned) else "Untitled"


def _cleaned(text: str) -> str:
    """Cleaned until nothing changes: what one rule takes away can bring together what another one forbids."""
    while text != (text := _cleaned_once(text)):
        pass
    return text


def _cleaned_once(text: str) -> str:
    text = _CONTROL.sub(" ", unicodedata.normalize("NFC", _NO_TEXT.sub("", text)))
    text = re.sub(r":\s+", " - ", text.strip(' <>:"|?*\\/'))
    text = _UNLINKABLE.sub("", _PERCENT_CODE.sub("-", text.replace("|", "-").replace("${", "-")))
    text = re.sub(r"\s{2,}", " ", _visible(_ILLEGAL.sub("-", text)))
    return _trimmed(_cut(_trimmed(text)))


def _visible(text: str) -> str:
    if text.isascii():
        return text
    kept: list[str] = [""]
    for char in text:
        if not _is_hidden(char, kept[-1]):
            kept.append("-" if char in _LIKE_SLASH else char)
    return "".join(kept)


def marked(name: str, mark: str) -> str:
    """Return a name with `mark` before its extension, its stem shortened to at most `MAX_NAME_BYTES` bytes in all."""
    ending = name[len(name) - len(extension(name)) :]
    if _size(ending) > MAX_NAME_BYTES // 2:
        ending = ""
    stem, room = name[: len(name) - len(ending)], MAX_NAME_BYTES - _size(mark) - _size(ending)
    if _size(stem) > room:
        stem = _cut(stem, size=room).rstrip(f". {_JOINERS}") or _EMPTY
    return f"{stem}{mark}{ending}"


def _cut(text: str, most: int | None = None, size: int = MAX_CLEAN_BYTES) -> str:
    """As many of a text's characters, as people count them, as have room in `most` code points and in `size` bytes."""
    if _fits(text, most, size):
        return text
    import regex  # Only names this long need it, and it is slow to import.

    kept = ""
    for cluster in regex.findall(r"\X", text):
        if not _fits(kept + cluster, most, size):
            break
        kept += cluster
    return kept


def _fits(text: str, most: int | None, size: int = MAX_CLEAN_BYTES) -> bool:
    return (most is None or len(text) <= most) and _size(text) <= size


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _trimmed(text: str) -> str:
    """Without what must not begin or end a name: dots, dashes and tildes that mean something, blanks, joiners that join nothing."""
    while text != (text := text.lstrip(f".-~ {_JOINERS}").rstrip(f". {_JOINERS}").strip()):
        pass
    return text


# Compiled (and kept by `regex`) when first used: that takes longer than all the rest of this module.
_APOSTROPHES = r"(?<=\p{L})['\u2019\u02bc](?=\p{L})"
_KEPT = r"\p{L}\p{M}\p{N}_\p{ExtPict}\p{RI}\p{EMod}"
_NO_WORD = (
    rf"(?:[^{_KEPT}\u200d]|(?!\ufe0f)[\p{{M}}\p{{L}}&&\p{{DI}}]|(?<![\u0590-\U0010ffff])\u200d)+"
)
_DEVICE = expression(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])")
_EMPTY = "untitled"


def slug(title: str, separator: str = "-", max_length: int | None = None) -> str:
    """A title in lower case, its words joined by `separator`: "Plan: Q3/Q4 (draft)" becomes "plan-q3-q4-draft".

    Letters and digits of all scripts, ``_`` and emoji stay, everything else separates words. At most `max_length` characters and
    `MAX_CLEAN_BYTES` bytes, cut between words where there are any; "untitled" when nothing is left. The name of a Windows device gets a ``_``.
    Raises `ToolError` ARGUMENT_INVALID for a separator that is no part of a file's name, or a length below 1.
    """
    if len(separator) > 5 or not all(character in "-_.~+ " for character in separator):
        raise ToolError(
            f"“{separator}” cannot separate the words of a slug.",
            hint="Use -, _, ., ~, + or a blank.",
        )
    if max_length is not None and max_length < 1:
        raise ToolError(
            f"A slug of {max_length} characters is not possible.", hint="maxLength is 1 or more."
        )
    import regex  # Slow to import, and not needed to read paths.

    folded = unicodedata.normalize("NFC", regex.sub(_APOSTROPHES, "", title).lower())
    words = [
        word
        for part in regex.split(_NO_WORD, folded, flags=regex.V1)
        if (word := part.strip("\u200d").lstrip("\ufe0f\u200d"))
    ]
    return _no_device(_joined(words, separator, max_length) or _EMPTY[:max_length], max_length)


def _joined(words: list[str], separator: str, most: int | None) -> str:
    kept = ""
    for word in words:
        longer = f"{kept}{separator}{word}" if kept else word
        if not _fits(longer, most):
            return kept or _cut(word, most)
        kept = longer
    return kept


def _no_device(name: str, most: int | None) -> str:
    head, dot, tail = name.partition(".")
    if not _DEVICE.fullmatch(head):
        return name
    return f"{head if _fits(name + '_', most) else head[:-1]}_{dot}{tail}"


_SCHEME_OR_DRIVE = expression(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_KNOWN_SCHEME = expression(
    r"(?:https?|file|ftps?|sftp|ssh|smb|nfs|webdavs?|data|javascript|vbscript|mailto|obsidian|vscode|app|blob|about):",
    re.IGNORECASE,
)
_DRIVE = expression(r"[A-Za-z]:")
_PERCENT = expression(r"%(?:u([0-9a-f]{4})|([0-9a-f]{2}))", re.IGNORECASE)
_OVERLONG = expression(r"%(?:c[01]%[0-9a-f]{2}|e0%[89]|f0%8)", re.IGNORECASE)
_ROUNDS: Final = 4


def foreign_start(first: str, *, new: bool) -> str | None:
    """What the first component of a path stands for outside of the vault, or None. The answer completes "the path …".

    An existing `~archive` or `Q: why.md` is only a name; nothing `new` gets such a one.
    """
    if _KNOWN_SCHEME.match(first) or _SCHEME_OR_DRIVE.fullmatch(first):
        return "starts with a drive or a URL scheme"
    if first == "~" or (new and first[0] == "~"):
        return "starts with '~', which stands for a home folder"
    if new and _DRIVE.match(first):
        return "starts with a drive"
    return (
        "starts with a variable, which is never filled in" if new and is_variable(first) else None
    )


def foreign_code(path: str, *, new: bool) -> str | None:
    """Percent codes that would make a canonical path climb, hidden or (a `new` one) deeper if something decoded them; we never do.

    The answer completes "the path …".
    """
    if "%" not in path:
        return None
    decoded = path
    for _ in range(_ROUNDS):
        decoded = _decoded(decoded)
    parts = decoded.replace("\\", "/").split("/")
    hides = bool(_OVERLONG.search(path) or unreadable(decoded)) or any(
        _means_more(part) for part in parts
    )
    return (
        "has percent codes for separators, dots or control characters"
        if hides or (new and len(parts) > path.count("/") + 1)
        else None
    )


def _means_more(part: str) -> bool:
    return part.strip() in ("", ".") or climbs(part) or protected(part)


def _decoded(text: str) -> str:
    decoded, end = bytearray(), 0
    for found in _PERCENT.finditer(text):
        wide, narrow = found.groups()
        decoded += text[end : found.start()].encode()
        decoded += chr(int(wide, 16)).encode(errors="replace") if wide else bytes.fromhex(narrow)
        end = found.end()
    return (decoded + text[end:].encode()).decode(errors="replace")
