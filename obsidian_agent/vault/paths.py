"""The one gate for paths: text from people, models and notes becomes a `VaultPath` here or is refused.

A `VaultPath` is proof that the text was judged; everything that reads or writes the vault takes one, so a string cannot reach the disk.
The gate judges text only. That the folders on the way are no links to somewhere else is the walk's business (`walk.py`).
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from typing import Any, Final, NoReturn, Self

from obsidian_agent.errors import PathRefused
from obsidian_agent.vault import names
from obsidian_agent.vault.names import clean_component, dash_illegal, protected

__all__ = [
    "ROOT",
    "PathUse",
    "VaultPath",
    "app_path",
    "clean_component",
    "config_path",
    "dash_illegal",
    "from_disk",
    "is_reserved",
    "is_trash",
    "parse",
    "protected",
    "trash_path",
]

MAX_DEPTH = 64
MAX_PATH_BYTES = 3000
TRASH = ".trash"
APP_FOLDER = ".obsidian-agent"
CONFIG_FOLDER = ".obsidian"


class PathUse(StrEnum):
    """What a path is for; new names have more rules than existing ones."""

    READ = "read"
    """An existing entry: reading, deleting, renaming from."""
    UPDATE = "update"
    """The content of an existing file."""
    CREATE = "create"
    """A new file or the target of a rename: must be portable and linkable."""
    FOLDER = "folder"
    """An existing folder; the root is allowed."""
    MAKE_FOLDER = "make_folder"
    """A new folder."""


class VaultPath:
    """A judged path inside the vault: `/` between components, no dots, "" for the root. Immutable; equal and ordered by `text`.

    Made only by `parse`, `from_disk`, `trash_path` and by navigation from another one.
    """

    __slots__ = ("_key", "_nfc", "_parent", "text")
    text: str
    _nfc: str | None
    _key: str | None
    _parent: VaultPath | None

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("A VaultPath is made by paths.parse or paths.from_disk only.")

    def __init_subclass__(cls, **_: Any) -> NoReturn:
        raise TypeError("VaultPath has no subclasses.")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("A VaultPath cannot be changed.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("A VaultPath cannot be changed.")

    def __reduce__(self) -> NoReturn:
        raise TypeError("A VaultPath is not pickled; send its text and parse it again.")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"VaultPath({self.text!r})"

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, VaultPath) else NotImplemented

    def __lt__(self, other: VaultPath) -> bool:
        return self.text < other.text

    def __le__(self, other: VaultPath) -> bool:
        return self.text <= other.text

    def __gt__(self, other: VaultPath) -> bool:
        return self.text > other.text

    def __ge__(self, other: VaultPath) -> bool:
        return self.text >= other.text

    @property
    def nfc(self) -> str:
        """The look-up key: the text in NFC."""
        if self._nfc is None:
            _set_nfc(self, self.text if self.text.isascii() else unicodedata.normalize("NFC", self.text))
        assert self._nfc is not None
        return self._nfc

    @property
    def key(self) -> str:
        """The collision key: equal for two spellings that some disk takes for one name (NFC and full case folding)."""
        if self._key is None:
            _set_key(self, collision_key(self.text))
        assert self._key is not None
        return self._key

    @property
    def name(self) -> str:
        """The last component; "" for the root."""
        return self.text.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The lower-case extension with its dot, or ""."""
        return names.extension(self.name)

    @property
    def stem(self) -> str:
        """The name without the extension."""
        name = self.name
        ext = names.extension(name)
        return name[: -len(ext)] if ext else name

    @property
    def parent(self) -> VaultPath:
        """The folder it is in; the root's parent is the root."""
        if self._parent is None:
            head = self.text.rpartition("/")[0]
            _set_parent(self, _new(head) if head else ROOT)
        assert self._parent is not None
        return self._parent

    @property
    def parts(self) -> tuple[str, ...]:
        """The components; () for the root."""
        return tuple(self.text.split("/")) if self.text else ()

    @property
    def is_root(self) -> bool:
        """Whether it is the vault itself."""
        return not self.text

    @property
    def is_note(self) -> bool:
        """Whether it has the extension of Markdown notes, `.md`, in any case."""
        return self.text[-3:].lower() == ".md" and self.suffix == ".md"

    def within(self, folder: VaultPath) -> bool:
        """Whether it is somewhere below `folder` (not `folder` itself)."""
        if not folder.text:
            return bool(self.text)
        return self.text.startswith(folder.text + "/")

    def rebased(self, old_folder: VaultPath, new_folder: VaultPath) -> VaultPath:
        """The path after `old_folder` became `new_folder`. It must be `old_folder` or below it (ValueError)."""
        if self.text == old_folder.text:
            return new_folder
        if not self.within(old_folder):
            raise ValueError(f"{self.text!r} is not below {old_folder.text!r}")
        rest = self.text[len(old_folder.text) + 1 :] if old_folder.text else self.text
        return _new(f"{new_folder.text}/{rest}" if new_folder.text else rest)


_set_text = VaultPath.__dict__["text"].__set__
_set_nfc = VaultPath.__dict__["_nfc"].__set__
_set_key = VaultPath.__dict__["_key"].__set__
_set_parent = VaultPath.__dict__["_parent"].__set__


def _new(text: str, parent: VaultPath | None = None) -> VaultPath:
    path = object.__new__(VaultPath)
    _set_text(path, text)
    _set_nfc(path, None)
    _set_key(path, None)
    _set_parent(path, parent)
    return path


ROOT: Final = _new("")
"""The vault itself."""


def collision_key(text: str) -> str:
    """Two texts with one key are one name on some disk: NFC and full case folding."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def from_disk(parent: VaultPath, name: str) -> VaultPath:
    """The path of an entry that a listing of `parent` has shown. PathRefused for a name that no plan could write."""
    _judge_existing(name, name)
    return _new(f"{parent.text}/{name}" if parent.text else name, parent)


def trash_path(name: str) -> VaultPath:
    """The path of an entry directly inside the vault's own `.trash/`: the one sanctioned way to name one."""
    return _new(f"{TRASH}/{_plain(name)}")


def app_path(sub: str, name: str | None = None) -> VaultPath:
    """A folder of this program in the vault (`.obsidian-agent/<sub>`), or a file directly in it."""
    return _new("/".join([APP_FOLDER, _plain(sub), *([] if name is None else [_plain(name)])]))


def config_path(name: str) -> VaultPath:
    """One of Obsidian's own JSON files, `.obsidian/<name>.json`."""
    return _new(f"{CONFIG_FOLDER}/{_plain(name)}.json")


def is_trash(path: VaultPath) -> bool:
    """Whether a path is the vault's `.trash` or inside it."""
    return path.text == TRASH or path.text.startswith(TRASH + "/")


def is_reserved(path: VaultPath) -> bool:
    """Whether a path is one of `trash_path`, `app_path` and `config_path` (or their folders): links on it are never followed."""
    return path.text.partition("/")[0] in (TRASH, APP_FOLDER, CONFIG_FOLDER)


def _plain(name: str) -> str:
    if not name or name in (".", "..") or "/" in name or "\\" in name or names.unreadable_text(name):
        raise PathRefused(f"{name!r} is no name for a file or folder.", code="PATH_INVALID", path=name)
    return name


_DRIVE_OR_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_SCHEME = re.compile(r"(?:https?|file|ftps?|sftp|ssh|smb|nfs|webdavs?|data|javascript|vbscript|mailto|obsidian|vscode|app|blob|about):", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\w+|\$\{\w+\}|\$env:\w+|%\w+%", re.ASCII | re.IGNORECASE)
_PERCENT = re.compile(r"%(?:u([0-9a-f]{4})|([0-9a-f]{2}))", re.IGNORECASE)
_OVERLONG = re.compile(r"%(?:c[01]%[0-9a-f]{2}|e0%[89]|f0%8)", re.IGNORECASE)

_NEW = frozenset({PathUse.CREATE, PathUse.MAKE_FOLDER})
_WRITES = frozenset({PathUse.CREATE, PathUse.UPDATE, PathUse.MAKE_FOLDER})
_FILES = frozenset({PathUse.CREATE, PathUse.UPDATE})


def parse(text: object, use: PathUse) -> VaultPath:
    """The path that `text` names, made canonical and judged for `use`, or PathRefused.

    `//`, `/./` and inner backslashes are collapsed first, then judged, component by component. Codes: PATH_OUTSIDE_VAULT (it would
    leave the vault: parents, absolute, home, variables, schemes, encoded), PATH_NOT_ALLOWED (protected names, extensions that run),
    PATH_INVALID (no name, or none that every system and Obsidian's links can take). `hint` has a cleaned suggestion where there is one.
    """
    if not isinstance(text, str):
        raise PathRefused(f"A path must be text, not {type(text).__name__}.", code="PATH_INVALID")
    if flaw := names.unreadable_text(text):
        raise _invalid(text, f"The path contains {flaw}.")
    slashed = text.replace("\\", "/")
    if slashed.startswith("/"):
        raise _outside(text, "starts at the root of a disk", slashed.lstrip("/"))
    parts = [part for part in slashed.split("/") if part not in ("", ".")]
    _judge_parents(text, parts)
    if not parts:
        if use is PathUse.FOLDER:
            return ROOT
        raise PathRefused("The path is empty: name a file or folder inside the vault.", code="PATH_INVALID", path=text)
    if use in _FILES and slashed.endswith(("/", "/.")):
        raise _invalid(text, "A file's path cannot end with a slash.", "/".join(parts))
    canonical = "/".join(parts)
    if len(parts) > MAX_DEPTH or len(canonical.encode()) > MAX_PATH_BYTES:
        raise PathRefused(f"The path is longer than {MAX_PATH_BYTES} bytes or deeper than {MAX_DEPTH} folders.", code="PATH_INVALID", path=text[:200])
    _judge_start(text, parts, use)
    _judge_encoded(text, canonical, use)
    for part in parts:
        _judge_existing(part, text)
    if use in _WRITES:
        _judge_write(text, parts, use)
    return _new(canonical)


def _judge_parents(text: str, parts: list[str]) -> None:
    judged = parts if text.isascii() else [*parts, *unicodedata.normalize("NFKC", text).replace("\\", "/").split("/")]
    if any(part.rstrip() == ".." for part in judged):
        raise PathRefused("The path contains '..': write it from the vault's root, without parent folders.", code="PATH_OUTSIDE_VAULT", path=text)


def _judge_start(text: str, parts: list[str], use: PathUse) -> None:
    first = parts[0]
    if _SCHEME.match(first) or _DRIVE_OR_SCHEME.fullmatch(first):
        raise _outside(text, "starts with a drive or a URL scheme")
    if first == "~" or (first.startswith("~") and use in _NEW):
        raise _outside(text, "starts with '~', a home folder elsewhere")
    if use in _NEW:
        if re.match("[A-Za-z]:", first):
            raise _outside(text, "starts with a drive")
        if _VARIABLE.fullmatch(first):
            raise _outside(text, "starts with an environment variable, which is never filled in")


def _judge_encoded(text: str, canonical: str, use: PathUse) -> None:
    if "%" not in canonical:
        return
    decoded, previous = canonical, ""
    for _ in range(3):
        previous, decoded = decoded, _percent_decoded(decoded)
        if decoded == previous:
            break
    if decoded == canonical and not _OVERLONG.search(canonical):
        return
    parts = decoded.replace("\\", "/").split("/")
    bad = _OVERLONG.search(canonical) or names.unreadable_text(decoded) or any(part.rstrip() in ("", ".", "..") or protected(part) for part in parts)
    if bad or (use in _NEW and len(parts) != canonical.count("/") + 1):
        raise PathRefused(
            "The path holds percent-encoded separators, dots or control characters: write it in plain text.", code="PATH_OUTSIDE_VAULT", path=text
        )


def _percent_decoded(text: str) -> str:
    def byte(found: re.Match[str]) -> bytes:
        wide, narrow = found.groups()
        return chr(int(wide, 16)).encode(errors="replace") if wide else bytes([int(narrow, 16)])

    decoded, end = bytearray(), 0
    for found in _PERCENT.finditer(text):
        decoded += text[end : found.start()].encode() + byte(found)
        end = found.end()
    return (decoded + text[end:].encode()).decode(errors="replace")


def _judge_existing(component: str, text: str) -> None:
    if flaw := names.unreadable_text(component):
        raise _invalid(text, f"The name contains {flaw}.")
    if protected(component):
        raise PathRefused(
            f"{component!r} is protected: dot files and folders such as .obsidian, .git and .trash are never read or changed.",
            code="PATH_NOT_ALLOWED",
            path=text,
        )
    if not component or "/" in component or names.only_dots(component):
        raise _invalid(text, f"{component!r} is no name for a file or folder.")


def _judge_write(text: str, parts: list[str], use: PathUse) -> None:
    if len(parts) == 1 and collision_key(parts[0]) in names.INSTRUCTION_FILES and use in _FILES:
        raise PathRefused(
            f"{parts[0]} holds instructions that other agents obey, so it is never written; use another name.", code="PATH_NOT_ALLOWED", path=text
        )
    if use not in _NEW:
        return
    for part in parts:
        if flaw := names.unportable(part):
            raise _invalid(text, f"The name {part!r} has {flaw}.", _suggestion(parts))
        if character := names.unlinkable(part):
            raise _invalid(text, f"The name {part!r} has {character!r}, which Obsidian's links cannot hold.", _suggestion(parts))
    if use is PathUse.CREATE and (found := names.extension(parts[-1])) in names.CODE_EXTENSIONS:
        raise PathRefused(
            f"Files that end in {found} can run as code and are not made here; use .md or another plain format.", code="PATH_NOT_ALLOWED", path=text
        )


def _suggestion(parts: list[str]) -> str:
    *folders, name = parts
    ext = names.extension(name)
    return "/".join([*map(clean_component, folders), clean_component(name.removesuffix(ext) if name.endswith(ext) else name[: -len(ext)]) + ext])


def _invalid(text: str, message: str, suggestion: str | None = None) -> PathRefused:
    hint = f"Use {suggestion!r} instead." if suggestion and suggestion != text else None
    return PathRefused(message, code="PATH_INVALID", path=text, hint=hint)


def _outside(text: str, why: str, suggestion: str | None = None) -> PathRefused:
    hint = f"Use {suggestion!r} instead." if suggestion else None
    return PathRefused(f"The path {why}: give it relative to the vault's root.", code="PATH_OUTSIDE_VAULT", path=text, hint=hint)
