"""Saved actions: macros kept in the vault, made from runs, exchanged as files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from obsidian_agent.agent.execution.runs import Runs
from obsidian_agent.agent.macro import Imported, Macro, MacroError, MacroStore, macro_from_run, read_macro
from obsidian_agent.errors import PlanError, Problem
from obsidian_agent.plan.json_text import read_json
from obsidian_agent.tools.core.tool import Tool

MAX_FILE = 2 * 1024 * 1024


def untrusted(macro: Macro) -> MacroError:
    """Why a macro does not run. What to do about it is said by the front end."""
    why = "has changed since you accepted it" if macro.standing == "changed" else "came with the vault: nobody accepted it on this computer"
    return MacroError(f"The macro “{macro.name}” {why}.", code="MACRO_UNTRUSTED")


class SavedActions:
    """The macros of one vault. Every method may block."""

    def __init__(self, macros: MacroStore, runs: Runs, tools: Mapping[str, Tool]) -> None:
        self._macros = macros
        self._runs = runs
        self._tools = tools

    def list(self) -> list[Macro]:
        """Macros that can be read, sorted by name."""
        return self._macros.all()

    def trusted(self) -> Sequence[Macro]:
        """Those that this person saved, imported or accepted here: the only ones that words may find."""
        return [macro for macro in self._macros.all() if macro.trusted]

    def get(self, name: str) -> Macro:
        """One macro; MacroError when there is none of that name."""
        return self._macros.get(name)

    def to_run(self, name: str) -> Macro:
        """A macro that may run. MacroError MACRO_UNTRUSTED when this person has not accepted it as it is."""
        macro = self._macros.get(name)
        if not macro.trusted:
            raise untrusted(macro)
        return macro

    def accept(self, name: str, sha256: str) -> Macro:
        """Trust a macro with the content that was shown. MacroError MACRO_CHANGED when it is another one by now."""
        return self._macros.accept(name, sha256)

    def used(self, name: str) -> int:
        """How often it was run."""
        return self._macros.used(name)

    def count(self, name: str) -> None:
        """Note that it was run."""
        self._macros.count(name)

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
        plan = self._runs.plan_of(run_id)
        return self._macros.save(macro_from_run(plan.to_json(), name, self._tools, description, parameters), replacing=replacing)

    def rename(self, name: str, new_name: str) -> Macro:
        """Give it another name."""
        return self._macros.rename(name, new_name)

    def judge(self, document: Mapping[str, Any]) -> Sequence[Problem]:
        """What is wrong with a document that shall be a macro. Does not block."""
        try:
            read_macro(document, self._tools)
        except PlanError as error:
            return error.problems
        except MacroError as error:
            return (error.problem(),)
        return ()

    def edit(self, name: str, document: Mapping[str, Any]) -> Macro:
        """Keep a changed document in the place of a macro; its count stays. PlanError when it is not valid, MacroError when its new name is taken."""
        changed = read_macro(document, self._tools).macro
        if changed.name.casefold() != self.get(name).name.casefold():
            self._macros.rename(name, changed.name)
        return self._macros.save(changed, replacing=True)

    def delete(self, name: str) -> None:
        """Remove it."""
        self._macros.delete(name)

    def export(self, name: str, file: str) -> Path:
        """Write it to a new file of the operating system. MacroError when the file exists or cannot be written."""
        path = Path(file).expanduser()
        document = json.dumps(self.get(name).to_json(), ensure_ascii=False, indent=2) + "\n"
        try:
            with open(path, "x", encoding="utf-8") as out:
                out.write(document)
        except OSError as error:
            raise MacroError(f"{path} cannot be written: {error.strerror or error}.", path=str(path)) from error
        return path

    def read(self, file: str) -> Imported:
        """Read and judge a macro file; nothing is kept yet."""
        path = Path(file).expanduser()
        try:
            with open(path, "rb") as source:
                data = source.read(MAX_FILE + 1)
        except OSError as error:
            raise MacroError(f"{path} cannot be read: {error.strerror or error}.", path=str(path)) from error
        if len(data) > MAX_FILE:
            raise MacroError(f"{path} is larger than {MAX_FILE // 2**20} MB.", path=str(path))
        return read_macro(read_json(data, str(path)), self._tools)

    def keep(self, imported: Imported, *, replacing: bool = False) -> Macro:
        """Accept a macro that was read."""
        return self._macros.save(imported.macro, replacing=replacing)
