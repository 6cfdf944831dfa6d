"""The only gate for paths: text from users, models and notes becomes a `VaultPath` or is refused.

A `VaultPath` proves that its text was validated. Everything that reads or writes the vault accepts
only a `VaultPath`, so a string cannot reach the disk. The gate validates text; the walk (`walk.py`)
ensures that no folder on the path is a link to another location.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache, total_ordering
from typing import Any, Final, NoReturn, Self

from obsidian_agent.errors import PathRefused
from obsidian_agent.vault.paths import rules
from obsidian_agent.vault.paths.rules import clean_component as clean_component
from obsidian_agent.vault.paths.rules import collision_key as collision_key
from obsidian_agent.vault.paths.rules import protected as protected
from obsidian_agent.vault.paths.rules import replace_illegal as replace_illegal

MAX_DEPTH: Final = 64
MAX_PATH_BYTES: Final = 3000
"""The limit of Linux is 4,096 bytes, which include the vault's own path and a temporary name."""

TRASH: Final = ".trash"
APP_FOLDER: Final = ".obsidian-agent"
CONFIG_FOLDER: Final = ".obsidian"
OTHER_AGENTS: Final = ".opencode"
"""The folder of another agent, whose agents, skills and configuration this program also reads."""
SKILL_FOLDERS: Final = (".claude", ".agents")
"""Folders of other programs that have skills in a sub-folder `skills`."""

_OTHER_AGENTS_FILES: Final = (f"{OTHER_AGENTS[1:]}.json", f"{OTHER_AGENTS[1:]}.jsonc")
"""Files in the vault's root with the configuration of the other agent."""

_WINDOWS = os.name == "nt"
_MAX_TEXT = 32_768
_MAX_WINDOWS_PATH = 240
_LEADS_UP = "The path goes up with '..': write it from the vault's root."


class PathUse(StrEnum):
    """The purpose of a path. New names have more rules than existing ones."""

    READ = "read"
    """An existing entry: reading, deleting, renaming from."""
    UPDATE = "update"
    """The content of an existing file."""
    CREATE = "create"
    """A new file or the target of a rename, whose name must be portable and linkable."""
    FOLDER = "folder"
    """An existing folder; the root is allowed."""
    MAKE_FOLDER = "make_folder"
    """A new folder."""


_NEW = frozenset({PathUse.CREATE, PathUse.MAKE_FOLDER})
_CONTENT = frozenset({PathUse.CREATE, PathUse.UPDATE})


@total_ordering
class VaultPath:
    """A validated, immutable path inside the vault.

    Its text has `/` between components and no `.` or `..` component, and is "" for the root. Paths
    are equal and ordered by their text. Only the functions of this module create one, and the
    navigation from another path.
    """

    __slots__ = ("_key", "_nfc", "_parent", "text")
    text: str
    _nfc: str | None
    _key: str | None
    _parent: VaultPath | None

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("Only paths.parse and paths.from_disk create a VaultPath.")

    def __init_subclass__(cls, **_: Any) -> NoReturn:
        raise TypeError("VaultPath has no subclasses.")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("A VaultPath cannot be changed.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("A VaultPath cannot be changed.")

    def __reduce__(self) -> NoReturn:
        raise TypeError("A VaultPath cannot be pickled; send its text and parse it again.")

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

    @property
    def nfc(self) -> str:
        """The key for look-ups: the text in NFC."""
        if self._nfc is None:
            _set_nfc(
                self, self.text if self.text.isascii() else unicodedata.normalize("NFC", self.text)
            )
        assert self._nfc is not None
        return self._nfc

    @property
    def key(self) -> str:
        """The collision key, equal for two paths that are the same file on some disk."""
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
        return rules.extension(self.name)

    @property
    def stem(self) -> str:
        """The name without the extension."""
        name = self.name
        # Most files are notes.
        ext = ".md" if name[-3:] == ".md" and name[-4:-3] not in "." else rules.extension(name)
        return name[: -len(ext)] if ext else name

    @property
    def parent(self) -> VaultPath:
        """The folder of the entry. The root's parent is the root."""
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
        """True for the vault itself."""
        return not self.text

    @property
    def is_note(self) -> bool:
        """True for a Markdown note: a name with the extension `.md` in upper or lower case."""
        # This is called for every file, so only a name of dots gets the slower check.
        return self.text[-3:].lower() == ".md" and (
            self.text[-4:-3] not in "./" or self.suffix == ".md"
        )

    def within(self, folder: VaultPath) -> bool:
        """Return True for a path below `folder`, at any depth, but not for `folder` itself."""
        if not folder.text:
            return bool(self.text)
        return self.text.startswith(folder.text + "/")

    def rebased(self, old_folder: VaultPath, new_folder: VaultPath) -> VaultPath:
        """Return the path after `old_folder` became `new_folder`.

        Raises ValueError for a path that is not `old_folder` or below it.
        """
        if self.text == old_folder.text:
            return new_folder
        if not self.within(old_folder):
            raise ValueError(f"{self.text!r} is not below {old_folder.text!r}")
        rest = self.text[len(old_folder.text) + 1 :] if old_folder.text else self.text
        return _new(f"{new_folder.text}/{rest}" if new_folder.text else rest)


# The setters of the slots, because `__setattr__` refuses every change.
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


def from_disk(parent: VaultPath, name: str) -> VaultPath:
    """Return the path of an entry that the disk lists in `parent`.

    Raises `PathRefused` for a name that `parse` would never accept.
    """
    if rules.PLAIN.fullmatch(name):
        return _new(f"{parent.text}/{name}" if parent.text else name, parent)
    _check_name(name, name)
    if foreign := rules.foreign_code(name, new=False) or (
        parent.is_root and rules.foreign_start(name, new=False)
    ):
        raise _outside(name, foreign)
    return _new(f"{parent.text}/{name}" if parent.text else name, parent)


def trash_path(name: str | None = None) -> VaultPath:
    """Return the path of the vault's `.trash` folder, or of an entry directly in it.

    This is the only function that returns such a path.
    """
    return _new(TRASH if name is None else f"{TRASH}/{_plain(name)}")


def app_path(sub: str, name: str | None = None) -> VaultPath:
    """Return the path of a folder `.obsidian-agent/<sub>`, or of a file directly in it."""
    return _new("/".join([APP_FOLDER, _plain(sub), *([] if name is None else [_plain(name)])]))


def custom_path(root: str, *parts: str) -> VaultPath:
    """Return the path of a file or folder with agents and skills.

    It is below `.obsidian-agent`, `.opencode` or one of `SKILL_FOLDERS`, or is `opencode.json` or
    `opencode.jsonc` in the vault's root.
    """
    if root not in (APP_FOLDER, OTHER_AGENTS, *SKILL_FOLDERS) and (
        parts or root not in _OTHER_AGENTS_FILES
    ):
        raise _refused("PATH_NOT_ALLOWED", root, f"{root!r} is not a folder for agents and skills.")
    return _new("/".join([root, *(_plain(part) for part in parts)]))


def config_path(*parts: str, folder: str = CONFIG_FOLDER) -> VaultPath:
    """Return a path in Obsidian's configuration folder, which may not be named `.obsidian`."""
    if not folder.startswith(".") or folder in (TRASH, APP_FOLDER, OTHER_AGENTS):
        raise _refused(
            "PATH_NOT_ALLOWED", folder, f"{folder!r} is not a configuration folder of Obsidian."
        )
    return _new("/".join([_plain(folder), *(_plain(part) for part in parts)]))


def is_trash(path: VaultPath) -> bool:
    """Return True for the vault's `.trash` and everything in it."""
    return path.text == TRASH or path.text.startswith(TRASH + "/")


def is_reserved(path: VaultPath) -> bool:
    """Return True for paths of `trash_path`, `app_path`, `custom_path` and `config_path`.

    Links on such a path are never followed.
    """
    first = path.text.partition("/")[0]
    return first.startswith(".") or first in _OTHER_AGENTS_FILES


def _plain(name: str) -> str:
    if not name or name in (".", "..") or "/" in name or "\\" in name or rules.unreadable(name):
        raise _refused("PATH_INVALID", name, f"{name!r} is not a valid name for a file or folder.")
    return name


def parse(
    text: object,
    use: PathUse,
    *,
    exists: Callable[[VaultPath], bool] | None = None,
    moved_from: VaultPath | None = None,
) -> VaultPath:
    """Return the canonical path for a text, or raise `PathRefused`.

    `//`, `/./` and backslashes between components are normalized first, then every component is
    validated for `use`. The codes are PATH_OUTSIDE_VAULT (parents, absolute paths, home folders,
    variables, URL schemes, encoded separators), PATH_NOT_ALLOWED (protected names, extensions that
    run as code) and PATH_INVALID (names that some system or Obsidian's links cannot represent).
    `hint` suggests a cleaned path if there is one.

    Existing names do not have to follow the rules for new names: `exists` tells if a folder exists,
    and the entry `moved_from` may keep its name and extension.
    """
    if not isinstance(text, str):
        raise PathRefused(f"A path must be text, not {type(text).__name__}.", code="PATH_INVALID")
    try:
        return _parse(text, use, exists, moved_from)
    except PathRefused as refusal:
        suggestion = _suggestion(text, use, refusal.code)
        if suggestion:
            refusal.hint = f"Use {suggestion!r} instead."
        raise


def _parse(
    text: str,
    use: PathUse,
    exists: Callable[[VaultPath], bool] | None,
    moved_from: VaultPath | None,
) -> VaultPath:
    if len(text) > _MAX_TEXT:
        raise _refused("PATH_INVALID", text, f"The path is {len(text):,} characters long.")
    if flaw := rules.unreadable(text):
        raise _refused("PATH_INVALID", text, f"The path {flaw}.")
    slashed = text.replace("\\", "/")
    if slashed.startswith("/"):
        raise _outside(text, "starts at the root of a disk")
    parts = _components(slashed)
    _check_shape(text, slashed, parts, use)
    if not parts:
        return ROOT
    canonical = "/".join(parts)
    new = use in _NEW
    if foreign := rules.foreign_start(parts[0], new=new) or rules.foreign_code(canonical, new=new):
        raise _outside(text, foreign)
    for part in parts:
        _check_name(part, text)
    if use in _CONTENT and collision_key(parts[-1]) in rules.INSTRUCTION_FILES:
        message = (
            f"{canonical} contains instructions for other agents, so plans never write it. "
            "Use another name."
        )
        raise _refused("PATH_NOT_ALLOWED", text, message)
    if new or _WINDOWS:
        _check_new(text, parts, exists, moved_from)
    if use is PathUse.CREATE:
        _check_extension(text, parts[-1], moved_from)
    return _new(canonical)


def _components(slashed: str) -> list[str]:
    return [part for part in slashed.split("/") if part not in ("", ".")]


def _check_shape(text: str, slashed: str, parts: list[str], use: PathUse) -> None:
    if ".." in slashed or not slashed.isascii():
        for part in parts:
            if rules.leads_up(part):
                raise _refused("PATH_OUTSIDE_VAULT", text, _LEADS_UP)
    if not parts and use is not PathUse.FOLDER:
        raise _refused(
            "PATH_INVALID", text, "The path is empty: name a file or folder inside the vault."
        )
    if use in _CONTENT and slashed.endswith(("/", "/.")):
        raise _refused("PATH_INVALID", text, "A file's path does not end with a slash.")
    if (
        len(parts) > MAX_DEPTH
        or len(slashed) > MAX_PATH_BYTES
        or len(slashed.encode()) > MAX_PATH_BYTES
    ):
        raise _refused(
            "PATH_INVALID",
            text,
            f"The path is deeper than {MAX_DEPTH} folders or longer than {MAX_PATH_BYTES:,} bytes.",
        )


def _check_name(component: str, text: str) -> None:
    if problem := _name_problem(component):
        code, message = problem
        raise _refused(code, text, message)


@lru_cache(maxsize=4096)
def _name_problem(component: str) -> tuple[str, str] | None:
    """Return the code and message for a name that is invalid even if it exists, or None."""
    if flaw := rules.unreadable(component):
        return "PATH_INVALID", f"The name {component!r} {flaw}."
    if protected(component):
        message = (
            f"{component!r} is protected: dot files and folders such as .obsidian, .git and .trash "
            "are neither read nor changed."
        )
        return "PATH_NOT_ALLOWED", message
    if rules.leads_up(component):
        return "PATH_OUTSIDE_VAULT", _LEADS_UP
    if not component or "/" in component or "\\" in component or rules.is_only_dots(component):
        return "PATH_INVALID", f"{component!r} is not a valid name for a file or folder."
    return None


@lru_cache(maxsize=4096)
def _new_name_flaw(component: str) -> str | None:
    return rules.unportable(component) or rules.unlinkable(component)


def _check_new(
    text: str,
    parts: list[str],
    exists: Callable[[VaultPath], bool] | None,
    moved_from: VaultPath | None,
) -> None:
    last = len(parts)
    for number, part in enumerate(parts, 1):
        flaw = _new_name_flaw(part)
        if flaw and number == last:
            if moved_from is None or moved_from.name != part:
                raise _refused("PATH_INVALID", text, f"The name {part!r} {flaw}.")
        elif flaw and (exists is None or not exists(_new("/".join(parts[:number])))):
            raise _refused("PATH_INVALID", text, f"The folder's name {part!r} {flaw}.")
    if _WINDOWS and len("/".join(parts)) > _MAX_WINDOWS_PATH:
        raise _refused(
            "PATH_INVALID",
            text,
            f"The path is longer than {_MAX_WINDOWS_PATH} characters, too long for Windows.",
        )


def _check_extension(text: str, name: str, moved_from: VaultPath | None) -> None:
    suffix = rules.extension(name)
    if suffix in rules.CODE_EXTENSIONS and (moved_from is None or moved_from.suffix != suffix):
        message = (
            f"Files that end in {suffix} can run as code, so plans never create them. "
            "Use a plain format such as .md."
        )
        raise _refused("PATH_NOT_ALLOWED", text, message)


def _suggestion(text: str, use: PathUse, code: str) -> str | None:
    """Return the path that was probably meant, if it is valid.

    It has no slash at the start, and its names are cleaned.
    """
    if len(text) > _MAX_TEXT or text.startswith(("//", "\\\\")):
        return None
    parts = _components(text.replace("\\", "/"))
    cleaned = [*map(clean_component, parts[:-1]), *map(_clean_file_name, parts[-1:])]
    if code == "PATH_OUTSIDE_VAULT" and (cleaned != parts or text[:1] not in "/\\"):
        return None
    if code == "PATH_NOT_ALLOWED" or not all(re.search(r"\w", part) for part in parts):
        return None
    try:
        return _parse("/".join(cleaned), use, None, None).text
    except PathRefused:
        return None


def _clean_file_name(name: str) -> str:
    ext = name[len(name) - len(rules.extension(name)) :]
    return (
        clean_component(name.removesuffix(ext)) + ext
        if ext[1:].isalnum()
        else clean_component(name)
    )


def _refused(code: str, text: str, message: str) -> PathRefused:
    return PathRefused(message, code=code, path=_printable(text))


def _outside(text: str, reason: str) -> PathRefused:
    message = f"The path {reason}: write it from the vault's root."
    return _refused("PATH_OUTSIDE_VAULT", text, message)


def _printable(text: str) -> str:
    """Return refused text for messages, truncated and with unprintable characters escaped."""
    short = text if len(text) <= 300 else text[:300] + "…"
    return short if short.isprintable() else short.encode("unicode_escape").decode()
