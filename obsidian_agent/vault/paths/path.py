"""The one gate for paths: text from people, models and notes becomes a `VaultPath` here or is refused.

A `VaultPath` is proof that the text was judged; everything that reads or writes the vault takes one, so a string cannot reach the disk.
The gate judges text only. That the folders on the way are no links to somewhere else is the walk's business (`walk.py`).
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
from obsidian_agent.vault.paths.rules import dash_illegal as dash_illegal
from obsidian_agent.vault.paths.rules import protected as protected

MAX_DEPTH: Final = 64
MAX_PATH_BYTES: Final = 3000
"""Linux takes 4,096 bytes in one call, the vault's own path and a temporary name included."""

TRASH: Final = ".trash"
APP_FOLDER: Final = ".obsidian-agent"
CONFIG_FOLDER: Final = ".obsidian"
OTHER_AGENTS: Final = ".opencode"
"""Where another agent keeps what we read too: agents, skills, its configuration."""
SKILL_FOLDERS: Final = (".claude", ".agents")
"""Where other programs keep skills in a folder `skills`."""


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


@total_ordering
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

    @property
    def nfc(self) -> str:
        """The look-up key: the text in NFC."""
        if self._nfc is None:
            _set_nfc(
                self, self.text if self.text.isascii() else unicodedata.normalize("NFC", self.text)
            )
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
        return rules.extension(self.name)

    @property
    def stem(self) -> str:
        """The name without the extension."""
        name = self.name
        ext = rules.extension(name)
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
        # Asked of every file there is: what needs a closer look is a name of dots alone.
        return self.text[-3:].lower() == ".md" and (
            self.text[-4:-3] not in "./" or self.suffix == ".md"
        )

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


def from_disk(parent: VaultPath, name: str) -> VaultPath:
    """The path of an entry that a listing of `parent` has shown. PathRefused for a name by which nobody could ask for it."""
    if rules.PLAIN.fullmatch(name):
        return _new(f"{parent.text}/{name}" if parent.text else name, parent)
    _judge_name(name, name)
    if foreign := rules.foreign_code(name, new=False) or (
        parent.is_root and rules.foreign_start(name, new=False)
    ):
        raise _outside(name, foreign)
    return _new(f"{parent.text}/{name}" if parent.text else name, parent)


def trash_path(name: str | None = None) -> VaultPath:
    """The vault's own `.trash`, or an entry directly inside it: the one sanctioned way to name one."""
    return _new(TRASH if name is None else f"{TRASH}/{_plain(name)}")


def app_path(sub: str, name: str | None = None) -> VaultPath:
    """A folder of this program in the vault (`.obsidian-agent/<sub>`), or a file directly in it."""
    return _new("/".join([APP_FOLDER, _plain(sub), *([] if name is None else [_plain(name)])]))


def custom_path(root: str, *parts: str) -> VaultPath:
    """A file or folder below `.obsidian-agent`, `.opencode` or `SKILL_FOLDERS`, or `opencode.json` and `opencode.jsonc` in the vault itself."""
    if root not in (APP_FOLDER, OTHER_AGENTS, *SKILL_FOLDERS) and (
        parts or root not in (f"{OTHER_AGENTS[1:]}.json", f"{OTHER_AGENTS[1:]}.jsonc")
    ):
        raise _refused("PATH_NOT_ALLOWED", root, f"{root!r} is no place for agents and skills.")
    return _new("/".join([root, *(_plain(part) for part in parts)]))


def config_path(*parts: str, folder: str = CONFIG_FOLDER) -> VaultPath:
    """A file or folder in Obsidian's own folder, which people may have named otherwise than `.obsidian`."""
    if not folder.startswith(".") or folder in (TRASH, APP_FOLDER, OTHER_AGENTS):
        raise _refused(
            "PATH_NOT_ALLOWED", folder, f"{folder!r} is no configuration folder of Obsidian."
        )
    return _new("/".join([_plain(folder), *(_plain(part) for part in parts)]))


def is_trash(path: VaultPath) -> bool:
    """Whether a path is the vault's `.trash` or inside it."""
    return path.text == TRASH or path.text.startswith(TRASH + "/")


def is_reserved(path: VaultPath) -> bool:
    """Whether a path is one of `trash_path`, `app_path`, `custom_path` and `config_path` (or their folders): links on it are never followed."""
    first = path.text.partition("/")[0]
    return first.startswith(".") or first in (
        f"{OTHER_AGENTS[1:]}.json",
        f"{OTHER_AGENTS[1:]}.jsonc",
    )


def _plain(name: str) -> str:
    if not name or name in (".", "..") or "/" in name or "\\" in name or rules.unreadable(name):
        raise _refused("PATH_INVALID", name, f"{name!r} is no name for a file or folder.")
    return name


_NEW = frozenset({PathUse.CREATE, PathUse.MAKE_FOLDER})
_CONTENT = frozenset({PathUse.CREATE, PathUse.UPDATE})
_WINDOWS = os.name == "nt"
_MAX_TEXT = 32_768
_WINDOWS_PATH = 240
_CLIMBS = "The path climbs with '..': write it from the vault's root."


def parse(
    text: object,
    use: PathUse,
    *,
    exists: Callable[[VaultPath], bool] | None = None,
    moved_from: VaultPath | None = None,
) -> VaultPath:
    """The path that `text` names, made canonical and judged for `use`, or PathRefused.

    `//`, `/./` and inner backslashes are collapsed first, then judged, component by component. Codes: PATH_OUTSIDE_VAULT (it would
    leave the vault: parents, absolute, home, variables, schemes, encoded), PATH_NOT_ALLOWED (protected names, extensions that run),
    PATH_INVALID (no name, or none that every system and Obsidian's links can take). `hint` has a cleaned suggestion where there is one.

    The rules for new names are not for old ones: with `exists` (of a folder) the names of folders that are there are not judged anew,
    and neither are the name and extension that the entry `moved_from` already has.
    """
    if not isinstance(text, str):
        raise PathRefused(f"A path must be text, not {type(text).__name__}.", code="PATH_INVALID")
    try:
        return _judged(text, use, exists, moved_from)
    except PathRefused as refusal:
        if suggestion := _suggestion(text, use, refusal.code):
            refusal.hint = f"Use {suggestion!r} instead."
        raise


def _judged(
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
    _judge_shape(text, slashed, parts, use)
    if not parts:
        return ROOT
    canonical = "/".join(parts)
    new = use in _NEW
    if foreign := rules.foreign_start(parts[0], new=new) or rules.foreign_code(canonical, new=new):
        raise _outside(text, foreign)
    for part in parts:
        _judge_name(part, text)
    if use in _CONTENT and collision_key(parts[-1]) in rules.INSTRUCTION_FILES:
        why = f"{canonical} holds instructions that other agents obey, so plans never write it. Use another name."
        raise _refused("PATH_NOT_ALLOWED", text, why)
    if new or _WINDOWS:
        _judge_new(text, parts, exists, moved_from)
    if use is PathUse.CREATE:
        _judge_extension(text, parts[-1], moved_from)
    return _new(canonical)


def _components(slashed: str) -> list[str]:
    return [part for part in slashed.split("/") if part not in ("", ".")]


def _judge_shape(text: str, slashed: str, parts: list[str], use: PathUse) -> None:
    if ".." in slashed or not slashed.isascii():
        for part in parts:
            if rules.climbs(part):
                raise _refused("PATH_OUTSIDE_VAULT", text, _CLIMBS)
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


def _judge_name(component: str, text: str) -> None:
    if problem := _name_problem(component):
        code, why = problem
        raise _refused(code, text, why)


@lru_cache(maxsize=4096)
def _name_problem(component: str) -> tuple[str, str] | None:
    """What holds for every name, old or new: code and message, or None."""
    if flaw := rules.unreadable(component):
        return "PATH_INVALID", f"The name {component!r} {flaw}."
    if protected(component):
        why = f"{component!r} is protected: dot files and folders such as .obsidian, .git and .trash are neither read nor changed."
        return "PATH_NOT_ALLOWED", why
    if rules.climbs(component):
        return "PATH_OUTSIDE_VAULT", _CLIMBS
    if not component or "/" in component or "\\" in component or rules.vanishes(component):
        return "PATH_INVALID", f"{component!r} is no name for a file or folder."
    return None


@lru_cache(maxsize=4096)
def _new_name_flaw(component: str) -> str | None:
    return rules.unportable(component) or rules.unlinkable(component)


def _judge_new(
    text: str,
    parts: list[str],
    exists: Callable[[VaultPath], bool] | None,
    moved_from: VaultPath | None,
) -> None:
    last = len(parts)
    for at, part in enumerate(parts, 1):
        flaw = _new_name_flaw(part)
        if flaw and at == last:
            if moved_from is None or moved_from.name != part:
                raise _refused("PATH_INVALID", text, f"The name {part!r} {flaw}.")
        elif flaw and (exists is None or not exists(_new("/".join(parts[:at])))):
            raise _refused("PATH_INVALID", text, f"The folder's name {part!r} {flaw}.")
    if _WINDOWS and len("/".join(parts)) > _WINDOWS_PATH:
        raise _refused(
            "PATH_INVALID",
            text,
            f"The path is longer than {_WINDOWS_PATH} characters, too long for Windows.",
        )


def _judge_extension(text: str, name: str, moved_from: VaultPath | None) -> None:
    found = rules.extension(name)
    if found in rules.CODE_EXTENSIONS and (moved_from is None or moved_from.suffix != found):
        why = f"Files that end in {found} can run as code and are not made here; use a plain format such as .md."
        raise _refused("PATH_NOT_ALLOWED", text, why)


def _suggestion(text: str, use: PathUse, code: str) -> str | None:
    """The path that was probably meant: without the slash at its start, or with its names cleaned, if the gate takes that."""
    if len(text) > _MAX_TEXT or text.startswith(("//", "\\\\")):
        return None
    parts = _components(text.replace("\\", "/"))
    cleaned = [*map(clean_component, parts[:-1]), *map(_clean_file_name, parts[-1:])]
    if code == "PATH_OUTSIDE_VAULT" and (cleaned != parts or text[:1] not in "/\\"):
        return None
    if code == "PATH_NOT_ALLOWED" or not all(re.search(r"\w", part) for part in parts):
        return None
    try:
        return _judged("/".join(cleaned), use, None, None).text
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
    return PathRefused(message, code=code, path=_shown(text))


def _outside(text: str, why: str) -> PathRefused:
    return _refused("PATH_OUTSIDE_VAULT", text, f"The path {why}: write it from the vault's root.")


def _shown(text: str) -> str:
    """Refused text for messages: short, and without anything that is not to be printed."""
    short = text if len(text) <= 300 else text[:300] + "…"
    return short if short.isprintable() else short.encode("unicode_escape").decode()
