"""The macros of a vault: one JSON file each in the program's folder of the vault.

A macro file that the user did not save, import or accept on this computer (it came with the vault,
or a sync changed it) is not trusted. It is listed, but sentences do not match it, and it runs only
after it was displayed and accepted.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.errors import PlanError, Problem, VaultError
from obsidian_agent.plan.json_text import read_json
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.services.macro import (
    Imported,
    Macro,
    MacroError,
    macro_from_run,
    name_of,
    read_macro,
)
from obsidian_agent.services.trust import TrustStore, standing
from obsidian_agent.state_files import replace_file
from obsidian_agent.tools.core.tool import Tool
from obsidian_agent.vault.filesystem.app_folder import AppFolder
from obsidian_agent.vault.paths.path import clean_component

MAX_FILE = 2 * 1024 * 1024
"""Bytes of a macro file. This program does not write larger ones."""


def untrusted(macro: Macro) -> MacroError:
    """Return the error for a macro that may not run. The front end adds what to do about it."""
    if macro.standing == "changed":
        why = "has changed since you trusted it"
    else:
        why = "came with the vault, and you have not trusted it on this computer"
    return MacroError(f"The macro “{macro.name}” {why}.", code="MACRO_UNTRUSTED")


class MacroStore(Struct, frozen=True, kw_only=True):
    """The macros of a vault. Every method may block.

    `usage` is a file outside the vault with how often each macro ran. `plan_of` returns the plan of
    a run. Names are not case-sensitive. Macros that the user saves are trusted. For an unknown name
    `MacroError` MACRO_NOT_FOUND lists the saved ones.
    """

    folder: AppFolder
    usage: Path
    trust: TrustStore
    tools: Mapping[str, Tool]
    plan_of: Callable[[str], ActionPlan]

    def list(self) -> Sequence[Macro]:
        """Return the macros sorted by name, without files that cannot be read."""
        return sorted(
            (macro for macro, _ in self._files()), key=lambda macro: macro.name.casefold()
        )

    def trusted(self) -> Sequence[Macro]:
        """Return the macros that the user saved, imported or accepted on this computer."""
        return [macro for macro in self.list() if macro.trusted]

    def get(self, name: str) -> Macro:
        """Return the macro with a name, preferring a trusted one."""
        return self._existing(name)[0]

    def to_run(self, name: str) -> Macro:
        """Return a trusted macro. Raise `MacroError` MACRO_UNTRUSTED for any other."""
        macro = self.get(name)
        if not macro.trusted:
            raise untrusted(macro)
        return macro

    def accept(self, name: str, sha256: str) -> Macro:
        """Trust a macro as it was displayed.

        Raise `MacroError` MACRO_CHANGED if its file has changed since.
        """
        for macro, file in self._files():
            if _same(macro.name, name) and macro.sha256 == sha256:
                self.trust.trust(self.folder.path(file).text, sha256)
                return replace(macro, standing="trusted")
        current = self.get(name)
        raise MacroError(
            f"The macro “{current.name}” has changed since it was displayed.",
            code="MACRO_CHANGED",
            hint="Review it again.",
        )

    def put(self, macro: Macro, *, replacing: bool = False) -> Macro:
        """Save a macro. Raise `MacroError` MACRO_EXISTS for a name in use, unless `replacing`."""
        macro = replace(macro, name=name_of(macro.name))
        existing = self._find(macro.name)
        if existing is None:
            return self._write(self._free_file(macro.name), macro, trusted=True)
        if not replacing:
            raise _name_in_use(existing[0], "Choose another name, or replace it.")
        return self._write(existing[1], macro, trusted=True)

    def save(
        self,
        run_id: str,
        name: str,
        description: str | None = None,
        parameters: Mapping[str, str] | None = None,
        *,
        replacing: bool = False,
    ) -> Macro:
        """Save the plan of a run as a macro.

        `parameters` maps the names of new parameters to the literal texts that they replace.
        """
        plan = self.plan_of(run_id).to_json()
        macro = macro_from_run(plan, name, self.tools, description, parameters)
        return self.put(macro, replacing=replacing)

    def rename(self, name: str, new_name: str) -> Macro:
        """Rename a macro. Its use count and its standing stay the same."""
        macro, file = self._existing(name)
        renamed = replace(macro, name=name_of(new_name))
        other = self._find(renamed.name)
        if other is not None and other[1] != file:
            raise _name_in_use(other[0])
        target = file if other is not None else self._free_file(renamed.name)
        renamed = self._write(target, renamed, trusted=macro.trusted)
        if target != file:
            self._remove(file)
        counts = self._counts()
        if macro.name in counts:
            self._write_counts(counts | {renamed.name: counts.pop(macro.name)})
        return renamed

    def judge(self, document: Mapping[str, Any]) -> Sequence[Problem]:
        """Return what is wrong with the document of a macro. Does not block."""
        try:
            read_macro(document, self.tools)
        except PlanError as error:
            return error.problems
        return ()

    def edit(self, name: str, document: Mapping[str, Any]) -> Macro:
        """Replace a macro by an edited document. Its use count stays the same.

        Raise `PlanError` for an invalid document, `MacroError` for a name in use.
        """
        changed = read_macro(document, self.tools).macro
        if changed.name.casefold() != self.get(name).name.casefold():
            self.rename(name, changed.name)
        return self.put(changed, replacing=True)

    def delete(self, name: str) -> None:
        macro, file = self._existing(name)
        self._remove(file)
        counts = self._counts()
        if counts.pop(macro.name, None) is not None:
            self._write_counts(counts)

    def export(self, name: str, file: str) -> Path:
        """Write a macro to a new file outside the vault.

        Raise `MacroError` if the file exists or cannot be written.
        """
        path = Path(file).expanduser()
        document = json.dumps(self.get(name).to_json(), ensure_ascii=False, indent=2) + "\n"
        try:
            with open(path, "x", encoding="utf-8") as out:
                out.write(document)
        except OSError as error:
            raise MacroError(
                f"{path} cannot be written: {error.strerror or error}.", path=str(path)
            ) from error
        return path

    def read(self, file: str) -> Imported:
        """Read and validate a macro file without saving it."""
        path = Path(file).expanduser()
        try:
            with open(path, "rb") as source:
                data = source.read(MAX_FILE + 1)
        except OSError as error:
            raise MacroError(
                f"{path} cannot be read: {error.strerror or error}.", path=str(path)
            ) from error
        if len(data) > MAX_FILE:
            raise MacroError(f"{path} is larger than {MAX_FILE // 2**20} MB.", path=str(path))
        return read_macro(read_json(data, str(path)), self.tools)

    def keep(self, imported: Imported, *, replacing: bool = False) -> Macro:
        return self.put(imported.macro, replacing=replacing)

    def use_count(self, name: str) -> int:
        return self._counts().get(self.get(name).name, 0)

    def count(self, name: str) -> None:
        counts, key = self._counts(), self.get(name).name
        self._write_counts(counts | {key: counts.get(key, 0) + 1})

    # --- files ------------------------------------------------------------------------------

    def _files(self) -> Iterator[tuple[Macro, str]]:
        trusted = self.trust.hashes()
        for file in self.folder.list():
            with contextlib.suppress(VaultError, PlanError):
                read = self.folder.read(file)
                macro = read_macro(read.value, self.tools, judge=False).macro
                yield (
                    replace(
                        macro,
                        standing=standing(trusted.get(read.path.text), read.sha256),
                        sha256=read.sha256,
                    ),
                    file,
                )

    def _find(self, name: str) -> tuple[Macro, str] | None:
        matches = [(macro, file) for macro, file in self._files() if _same(macro.name, name)]
        # A file that came with a sync cannot hide the user's own macro by taking its name.
        return min(matches, key=lambda match: not match[0].trusted, default=None)

    def _existing(self, name: str) -> tuple[Macro, str]:
        existing = self._find(name)
        if existing is None:
            known = ", ".join(f"“{macro.name}”" for macro in self.list()) or "none"
            raise MacroError(
                f"There is no macro “{name}”.",
                code="MACRO_NOT_FOUND",
                hint=f"Saved macros: {known}.",
            )
        return existing

    def _write(self, file: str, macro: Macro, *, trusted: bool) -> Macro:
        written = self.folder.write(file, macro.to_json())
        if trusted:
            self.trust.trust(written.path.text, written.sha256)
        return replace(macro, standing="trusted" if trusted else "new", sha256=written.sha256)

    def _remove(self, file: str) -> None:
        self.folder.delete(file)
        self.trust.distrust(self.folder.path(file).text)

    def _free_file(self, name: str) -> str:
        """Return a free file name for a macro, whose document holds the name itself."""
        base = clean_component(name)
        used = {file.casefold() for file in self.folder.list()}
        file, number = base, 1
        while file.casefold() in used:
            number += 1
            file = f"{base} {number}"
        return file

    def _counts(self) -> dict[str, int]:
        try:
            document = json.loads(self.usage.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(document, dict):
            return {}
        return {key: value for key, value in document.items() if isinstance(value, int)}

    def _write_counts(self, counts: Mapping[str, int]) -> None:
        """Write the counts atomically. If that fails they are lost, which is not an error."""
        with contextlib.suppress(OSError):
            replace_file(self.usage, json.dumps(counts, ensure_ascii=False, indent=1).encode())


def _name_in_use(macro: Macro, hint: str = "Choose another name.") -> MacroError:
    message = f"A macro named “{macro.name}” already exists."
    return MacroError(message, code="MACRO_EXISTS", hint=hint)


def _same(name: str, other: str) -> bool:
    return name.strip().casefold() == other.strip().casefold()
