"""The macros of a vault: one JSON file each in the vault's own folder, made from runs, exchanged as files.

A macro file that this person did not save, import or accept on this computer (it came with the vault, or changed by a sync) is not trusted: it
is listed, but nothing finds it by words, and it runs only after it was shown and accepted.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from obsidian_agent.dataclass import dataclass, replace
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
"""Bytes of a macro: what is larger was not made by this program."""


def untrusted(macro: Macro) -> MacroError:
    """Why a macro does not run. What to do about it is said by the front end."""
    why = (
        "has changed since you accepted it"
        if macro.standing == "changed"
        else "came with the vault: nobody accepted it on this computer"
    )
    return MacroError(f"The macro “{macro.name}” {why}.", code="MACRO_UNTRUSTED")


@dataclass(frozen=True, slots=True)
class MacroStore:
    """Every method may block. `usage` is a file outside of the vault with how often each ran; `plan_of` gives the plan of a run.

    Names are found whatever their case. What this person saves is trusted. MacroError MACRO_NOT_FOUND names those there are.
    """

    folder: AppFolder
    usage: Path
    trust: TrustStore
    tools: Mapping[str, Tool]
    plan_of: Callable[[str], ActionPlan]

    def list(self) -> Sequence[Macro]:
        """Every macro that can be read, sorted by name; broken files are left out."""
        return sorted(
            (macro for macro, _ in self._files()), key=lambda macro: macro.name.casefold()
        )

    def trusted(self) -> Sequence[Macro]:
        """Those that this person saved, imported or accepted here: the only ones that words may find."""
        return [macro for macro in self.list() if macro.trusted]

    def get(self, name: str) -> Macro:
        """The macro of a name; a trusted one before others."""
        return self._existing(name)[0]

    def to_run(self, name: str) -> Macro:
        """A macro that may run. MacroError MACRO_UNTRUSTED when this person has not accepted it as it is."""
        macro = self.get(name)
        if not macro.trusted:
            raise untrusted(macro)
        return macro

    def accept(self, name: str, sha256: str) -> Macro:
        """Trust a macro as it was shown. MacroError MACRO_CHANGED when its file has another content by now."""
        for macro, file in self._files():
            if _same(macro.name, name) and macro.sha256 == sha256:
                self.trust.trust(self.folder.path(file).text, sha256)
                return replace(macro, standing="trusted")
        found = self.get(name)
        raise MacroError(
            f"The macro “{found.name}” is another one than was shown.",
            code="MACRO_CHANGED",
            hint="Look at it again.",
        )

    def put(self, macro: Macro, *, replacing: bool = False) -> Macro:
        """Keep a macro. MacroError MACRO_EXISTS when the name is taken, unless `replacing`."""
        named = replace(macro, name=name_of(macro.name))
        taken = self._find(named.name)
        if taken is not None and not replacing:
            raise _taken(taken[0], "Choose another name, or replace it.")
        return self._write(
            taken[1] if taken is not None else self._free_file(named.name), named, trusted=True
        )

    def save(
        self,
        run_id: str,
        name: str,
        description: str | None = None,
        parameters: Mapping[str, str] | None = None,
        *,
        replacing: bool = False,
    ) -> Macro:
        """Keep the plan of a run. `parameters`: name of a new parameter -> the literal text of the plan that it replaces."""
        made = macro_from_run(
            self.plan_of(run_id).to_json(), name, self.tools, description, parameters
        )
        return self.put(made, replacing=replacing)

    def rename(self, name: str, new_name: str) -> Macro:
        """Give a macro another name; its count goes with it. One that is not trusted stays so."""
        macro, file = self._existing(name)
        renamed = replace(macro, name=name_of(new_name))
        other = self._find(renamed.name)
        if other is not None and other[1] != file:
            raise _taken(other[0])
        target = file if other is not None else self._free_file(renamed.name)
        renamed = self._write(target, renamed, trusted=macro.trusted)
        if target != file:
            self._remove(file)
        counts = self._counts()
        if macro.name in counts:
            self._keep(counts | {renamed.name: counts.pop(macro.name)})
        return renamed

    def judge(self, document: Mapping[str, Any]) -> Sequence[Problem]:
        """What is wrong with a document that shall be a macro. Does not block."""
        try:
            read_macro(document, self.tools)
        except PlanError as error:
            return error.problems
        return ()

    def edit(self, name: str, document: Mapping[str, Any]) -> Macro:
        """Keep a changed document in the place of a macro; its count stays. PlanError when it is not valid, MacroError for a taken name."""
        changed = read_macro(document, self.tools).macro
        if changed.name.casefold() != self.get(name).name.casefold():
            self.rename(name, changed.name)
        return self.put(changed, replacing=True)

    def delete(self, name: str) -> None:
        macro, file = self._existing(name)
        self._remove(file)
        counts = self._counts()
        if counts.pop(macro.name, None) is not None:
            self._keep(counts)

    def export(self, name: str, file: str) -> Path:
        """Write it to a new file of the operating system. MacroError when the file exists or cannot be written."""
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
        """Read and judge a macro file; nothing is kept yet."""
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
        self._keep(counts | {key: counts.get(key, 0) + 1})

    # --- files ----------------------------------------------------------------------------------------------------------------

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
        named = [(macro, file) for macro, file in self._files() if _same(macro.name, name)]
        # A file that came with a sync cannot stand in the way of the person's own macro by taking its name.
        return min(named, key=lambda each: not each[0].trusted, default=None)

    def _existing(self, name: str) -> tuple[Macro, str]:
        found = self._find(name)
        if found is None:
            known = ", ".join(f"“{macro.name}”" for macro in self.list()) or "none"
            raise MacroError(
                f"There is no macro “{name}”.",
                code="MACRO_NOT_FOUND",
                hint=f"Saved macros: {known}.",
            )
        return found

    def _write(self, file: str, macro: Macro, *, trusted: bool) -> Macro:
        written = self.folder.write(file, macro.to_json())
        if trusted:
            self.trust.trust(written.path.text, written.sha256)
        return replace(macro, standing="trusted" if trusted else "new", sha256=written.sha256)

    def _remove(self, file: str) -> None:
        self.folder.delete(file)
        self.trust.distrust(self.folder.path(file).text)

    def _free_file(self, name: str) -> str:
        """A file name made from the macro's name; the name itself stays inside the document."""
        base = clean_component(name)
        taken = {file.casefold() for file in self.folder.list()}
        candidates = (
            base if number == 1 else f"{base} {number}" for number in range(1, len(taken) + 2)
        )
        return next(file for file in candidates if file.casefold() not in taken)

    def _counts(self) -> dict[str, int]:
        try:
            document = json.loads(self.usage.read_bytes())
        except (OSError, ValueError):
            return {}
        return (
            {key: value for key, value in document.items() if isinstance(value, int)}
            if isinstance(document, dict)
            else {}
        )

    def _keep(self, counts: Mapping[str, int]) -> None:
        """Write the counts, all or nothing. They are worth no error: a folder that cannot be written to only loses them."""
        with contextlib.suppress(OSError):
            replace_file(self.usage, json.dumps(counts, ensure_ascii=False, indent=1).encode())


def _taken(macro: Macro, hint: str = "Choose another name.") -> MacroError:
    return MacroError(f"There is a macro “{macro.name}” already.", code="MACRO_EXISTS", hint=hint)


def _same(name: str, other: str) -> bool:
    return name.strip().casefold() == other.strip().casefold()
