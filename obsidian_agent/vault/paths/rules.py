"""Rules for vault paths and their components.

They decide which names are protected or not portable, and which paths lead out of the vault without
any `..` (drives, URL schemes, home folders, variables, percent codes). They also turn any text into
a legal name or a slug. All of them are functions of text; none accesses the disk. `paths.parse`
combines them.

Sources: Obsidian help ("Internal links", "Configuration folder"), Microsoft "Naming files, paths,
and namespaces", git's NTFS and HFS+ rules for `.git` (t0060, t1014), Unicode TR 36 and Trojan
Source (CVE-2021-42574) for invisible characters.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from obsidian_agent.errors import ToolError
from obsidian_agent.expression import expression

MAX_NAME_BYTES: Final = 255
"""Length of the longest name that ext4, APFS and NTFS all allow. ext4 counts bytes of UTF-8."""

MAX_CLEAN_BYTES: Final = 240
"""Length of the longest name that `clean_component` and `slug` return.

It leaves room for an extension and a number.
"""

PLAIN: Final = expression(r"[A-NP-Za-np-z0-9][A-Za-z0-9 ,()&'+=!_.-]*+")
"""Names that pass all rules for names on disk. Most names do, so this avoids the other checks."""

INSTRUCTION_FILES: Final = frozenset({"agents.md", "claude.md", "gemini.md"})
"""Case-folded names of files that other agents obey in any folder. They are never written."""

CODE_EXTENSIONS: Final = frozenset((
    ".app", ".appimage", ".applescript", ".appref-ms", ".bash", ".bat", ".chm", ".cjs", ".cmd",
    ".com", ".command", ".cpl", ".csh", ".desktop", ".dll", ".dmg", ".exe", ".fish", ".gadget",
    ".hta", ".htm", ".html", ".inf", ".jar", ".js", ".jse", ".ksh", ".lnk", ".mht", ".mhtml",
    ".mjs", ".msc", ".msi", ".msp", ".mst", ".pif", ".pkg", ".pl", ".ps1", ".ps1xml", ".psd1",
    ".psm1", ".py", ".pyc", ".pyw", ".rb", ".reg", ".scf", ".scpt", ".scr", ".sct",
    ".settingcontent-ms", ".sh", ".shtml", ".terminal", ".tool", ".url", ".vb", ".vbe", ".vbs",
    ".webloc", ".workflow", ".ws", ".wsc", ".wsf", ".wsh", ".xht", ".xhtml", ".zsh",
))  # fmt: skip
"""Extensions that a double click, a shell or a browser runs as code."""

# The code points that HFS+ ignores when it compares names.
_HFS_IGNORED = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)

# 8.3 names that NTFS gives to dot files: `.git` is `GIT~1`, `.obsidian` is `OBSIDI~1`. After four
# collisions the name has two letters and a hash.
_SHORT_NAME = expression(
    r"(?:git|gitmod|gitatt|gitign|obsidi|openco|trash|claude|env|mcp"
    r"|(?:gi|ob|op|tr|cl|en|mc)[0-9a-f]{4})~[0-9]+(?:\.[^.]{0,3})?"
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
# Characters that NFKC turns into a tilde, and into text with a slash or backslash.
_TILDES = expression("[~\uff5e]")
_LIKE_SLASH = frozenset("\u2100\u2101\u2105\u2106\uff0f\uff3c\ufe68")
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_JOINERS = "\u200c\u200d"

_SLUG_DEVICE = expression(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])")
_EMPTY_SLUG = "untitled"

# `regex` compiles and caches these at the first use, because that takes longer than all the rest of
# this module.
_APOSTROPHES = r"(?<=\p{L})['\u2019\u02bc](?=\p{L})"
_WORD_CHARACTERS = r"\p{L}\p{M}\p{N}_\p{ExtPict}\p{RI}\p{EMod}"
_WORD_SEPARATORS = (
    rf"(?:[^{_WORD_CHARACTERS}\u200d]|(?!\ufe0f)[\p{{M}}\p{{L}}&&\p{{DI}}]"
    r"|(?<![\u0590-\U0010ffff])\u200d)+"
)

_SCHEME_OR_DRIVE = expression(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_KNOWN_SCHEME = expression(
    r"(?:https?|file|ftps?|sftp|ssh|smb|nfs|webdavs?|data|javascript|vbscript|mailto|obsidian"
    r"|vscode|app|blob|about):",
    re.IGNORECASE,
)
_DRIVE = expression(r"[A-Za-z]:")
_PERCENT = expression(r"%(?:u([0-9a-f]{4})|([0-9a-f]{2}))", re.IGNORECASE)
_OVERLONG = expression(r"%(?:c[01]%[0-9a-f]{2}|e0%[89]|f0%8)", re.IGNORECASE)
_MAX_DECODINGS: Final = 4
"""Levels of percent encoding that are decoded."""


def extension(name: str) -> str:
    """Return the lower-case extension with its dot, or "".

    It is `.md` for `a.MD`, and "" for `1. Intro`, `.hidden` and `a.`.
    """
    stem, _, tail = name.rpartition(".")
    if not tail or " " in tail or not stem.strip("."):
        return ""
    return f".{tail.lower()}"


def display_name(path: str) -> str:
    """Return the name of a file as users know it: without folders, a note's without `.md`."""
    return path.rpartition("/")[2].removesuffix(".md")


def collision_key(text: str) -> str:
    """Return a key that is equal for two texts that are the same name on some disk.

    It applies NFC and full case folding.
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def protected(component: str) -> bool:
    """Return True for a name that no plan may read or change: on some disk it is a dot file.

    It is compared after NFKC, case folding, and removal of characters that HFS+ ignores and Win32
    drops (trailing dots and blanks, `:stream`).
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
    """Return why text cannot be part of any name, or None. The reason completes "the name …"."""
    if text.isprintable():
        return None
    if _CONTROL.search(text):
        return "contains a control character or line break"
    if _NO_TEXT.search(text):
        return "contains half of a surrogate pair or another code point that is not a character"
    return None


def leads_up(component: str) -> bool:
    """Return True for a name that means the parent folder on some system.

    Examples are `..`, `.. ` and compatibility forms (`．．／`, `‥`).
    """
    if component.isascii() or (component[:1].isalnum() and _LIKE_SLASH.isdisjoint(component)):
        return component.rstrip() == ".."
    return any(
        part.rstrip() == ".."
        for part in unicodedata.normalize("NFKC", component).replace("\\", "/").split("/")
    )


def is_only_dots(component: str) -> bool:
    """Return True for a name of dots and blanks only, which Win32 strips to nothing.

    Compatibility forms of dots (`…`) count as dots.
    """
    if component[:1].isalnum():
        return False
    return not unicodedata.normalize("NFKC", component).strip(". \t")


def is_variable(component: str) -> bool:
    """Return True for a shell variable: `$HOME`, `${HOME}`, `%USERPROFILE%`, `$env:HOME`."""
    return _VARIABLE.fullmatch(component) is not None


def unportable(component: str) -> str | None:
    """Return why a new name is illegal, an alias or misleading on some system, or None.

    The reason completes "the name …".
    """
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
        return "starts with a dash, which commands interpret as an option"
    if "${" in component:
        return "contains a placeholder that was not filled in"
    return None if component.isascii() else _invisible(component)


def unlinkable(component: str) -> str | None:
    """Return why Obsidian's links cannot contain a new name, or None.

    The reason completes "the name …".
    """
    match = _UNLINKABLE.search(component)
    return f"contains {match[0]!r}, which Obsidian's links cannot contain" if match else None


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
    """Return True for an invisible character, which makes different names look the same.

    Joiners are allowed inside emoji and in scripts that need them.
    """
    if char.isascii():
        return False
    if char in _JOINERS:
        return previous < "\u0590"
    return char in _BLANK_LETTERS or (
        unicodedata.category(char) == "Cf" and char not in _VISIBLE_FORMATS
    )


def replace_illegal(text: str) -> str:
    """Replace every character that is illegal in names on some platform by `-`.

    The caller must refuse separators before.
    """
    return _ILLEGAL.sub("-", text)


def clean_component(text: str) -> str:
    """Turn any text into a legal, portable, linkable name of at most `MAX_CLEAN_BYTES`.

    Illegal characters become `-` between others and are removed at the ends. Characters that links
    cannot contain are removed. A name with a special meaning (devices, dot folders) gets a `-`. If
    nothing is left, the name is "Untitled".
    """
    cleaned = _cleaned(text)
    if protected(cleaned) or is_only_dots(cleaned):
        # It contains compatibility forms of dots, or is an 8.3 name.
        cleaned = _cleaned(unicodedata.normalize("NFKC", cleaned).replace("~", "-"))
    if is_variable(cleaned):
        cleaned = _trimmed(cleaned.strip("$%"))
    if _is_device(cleaned) or protected(cleaned):
        head, dot, tail = cleaned.partition(".")
        cleaned = f"{head.rstrip()}-{dot}{tail}"
    return cleaned if cleaned and not unportable(cleaned) else "Untitled"


def _cleaned(text: str) -> str:
    # A rule that removes characters can join others that another rule forbids.
    while text != (text := _cleaned_once(text)):
        pass
    return text


def _cleaned_once(text: str) -> str:
    text = _CONTROL.sub(" ", unicodedata.normalize("NFC", _NO_TEXT.sub("", text)))
    text = re.sub(r":\s+", " - ", text.strip(' <>:"|?*\\/'))
    text = _UNLINKABLE.sub("", _PERCENT_CODE.sub("-", text.replace("|", "-").replace("${", "-")))
    text = re.sub(r"\s{2,}", " ", _visible(_ILLEGAL.sub("-", text)))
    return _trimmed(_truncated(_trimmed(text)))


def _visible(text: str) -> str:
    if text.isascii():
        return text
    visible: list[str] = [""]
    for char in text:
        if not _is_hidden(char, visible[-1]):
            visible.append("-" if char in _LIKE_SLASH else char)
    return "".join(visible)


def with_mark(name: str, mark: str) -> str:
    """Insert `mark` before a name's extension. The stem is truncated to fit `MAX_NAME_BYTES`."""
    ending = name[len(name) - len(extension(name)) :]
    if _size(ending) > MAX_NAME_BYTES // 2:
        ending = ""
    stem, room = name[: len(name) - len(ending)], MAX_NAME_BYTES - _size(mark) - _size(ending)
    if _size(stem) > room:
        stem = _truncated(stem, size=room).rstrip(f". {_JOINERS}") or _EMPTY_SLUG
    return f"{stem}{mark}{ending}"


def _truncated(text: str, most: int | None = None, size: int = MAX_CLEAN_BYTES) -> str:
    """Truncate text between user-perceived characters to `most` code points and `size` bytes."""
    if _fits(text, most, size):
        return text
    import regex  # Only long names need it, and it is slow to import.

    prefix = ""
    for cluster in regex.findall(r"\X", text):
        if not _fits(prefix + cluster, most, size):
            break
        prefix += cluster
    return prefix


def _fits(text: str, most: int | None, size: int = MAX_CLEAN_BYTES) -> bool:
    return (most is None or len(text) <= most) and _size(text) <= size


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _trimmed(text: str) -> str:
    """Strip characters that a name must not start or end with.

    These are dots, dashes and tildes with a meaning, blanks, and joiners that join nothing.
    """
    while text != (text := text.lstrip(f".-~ {_JOINERS}").rstrip(f". {_JOINERS}").strip()):
        pass
    return text


def slug(title: str, separator: str = "-", max_length: int | None = None) -> str:
    """Return a title in lower case with its words joined by `separator`.

    "Plan: Q3/Q4 (draft)" becomes "plan-q3-q4-draft". Letters and digits of all scripts, ``_`` and
    emoji stay, everything else separates words. The slug has at most `max_length` characters and
    `MAX_CLEAN_BYTES` bytes, and is truncated between words if possible. An empty slug becomes
    "untitled", and the name of a Windows device gets a ``_``.

    Raises `ToolError` ARGUMENT_INVALID for a separator that is not allowed in a file's name, or a
    length below 1.
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
        for part in regex.split(_WORD_SEPARATORS, folded, flags=regex.V1)
        if (word := part.strip("\u200d").lstrip("\ufe0f\u200d"))
    ]
    return _no_device(_joined(words, separator, max_length) or _EMPTY_SLUG[:max_length], max_length)


def _joined(words: list[str], separator: str, most: int | None) -> str:
    slug = ""
    for word in words:
        longer = f"{slug}{separator}{word}" if slug else word
        if not _fits(longer, most):
            return slug or _truncated(word, most)
        slug = longer
    return slug


def _no_device(name: str, most: int | None) -> str:
    head, dot, tail = name.partition(".")
    if not _SLUG_DEVICE.fullmatch(head):
        return name
    return f"{head if _fits(name + '_', most) else head[:-1]}_{dot}{tail}"


def foreign_start(first: str, *, new: bool) -> str | None:
    """Return what the first component of a path means outside of the vault, or None.

    The reason completes "the path …". An existing `~archive` or `Q: why.md` is only a name, but no
    `new` entry may get such a name.
    """
    if _KNOWN_SCHEME.match(first) or _SCHEME_OR_DRIVE.fullmatch(first):
        return "starts with a drive or a URL scheme"
    if first == "~" or (new and first[0] == "~"):
        return "starts with '~', which stands for a home folder"
    if new and _DRIVE.match(first):
        return "starts with a drive"
    if new and is_variable(first):
        return "starts with a variable, which is never replaced"
    return None


def foreign_code(path: str, *, new: bool) -> str | None:
    """Return a reason to refuse a canonical path because of its percent codes, or None.

    This program never decodes them. If another one did, they could make the path climb, hidden or,
    for a `new` path, deeper. The reason completes "the path …".
    """
    if "%" not in path:
        return None
    decoded = path
    for _ in range(_MAX_DECODINGS):
        decoded = _decoded(decoded)
    parts = decoded.replace("\\", "/").split("/")
    is_deeper = len(parts) > path.count("/") + 1
    is_hidden = bool(_OVERLONG.search(path) or unreadable(decoded)) or any(
        _is_special(part) for part in parts
    )
    if is_hidden or (new and is_deeper):
        return "has percent codes for separators, dots or control characters"
    return None


def _is_special(part: str) -> bool:
    return part.strip() in ("", ".") or leads_up(part) or protected(part)


def _decoded(text: str) -> str:
    decoded, end = bytearray(), 0
    for match in _PERCENT.finditer(text):
        wide, narrow = match.groups()
        decoded += text[end : match.start()].encode()
        decoded += chr(int(wide, 16)).encode(errors="replace") if wide else bytes.fromhex(narrow)
        end = match.end()
    return (decoded + text[end:].encode()).decode(errors="replace")
