"""`macro …`: saved plans, without a model."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from obsidian_agent.agent.macros.macro import Macro
from obsidian_agent.agent.macros.store import untrusted
from obsidian_agent.agent.session import Session
from obsidian_agent.cli.exits import Exit, of_problems
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import UsageError
from obsidian_agent.cli.plans import refuse, reject, run_document, show_preview
from obsidian_agent.cli.session_factory import open_session, pairs, parameters
from obsidian_agent.errors import PlanError


def macro_command(options: argparse.Namespace, out: Output) -> Exit:
    """Dispatch to one action."""
    session = open_session(options)
    actions: dict[str, Callable[[argparse.Namespace, Session, Output], Exit]] = {
        "list": _list,
        "save": _save,
        "run": _run,
        "show": _show,
        "trust": _trust,
        "edit": _edit,
        "rename": _rename,
        "delete": _delete,
        "export": _export,
        "import": _import,
    }
    return actions[options.action](options, session, out)


def _list(options: argparse.Namespace, session: Session, out: Output) -> Exit:
    macros = session.saved.list()
    if out.as_json:
        out.document({"macros": [_listed(macro, session) for macro in macros]})
    marks = {"trusted": "", "new": "  [not accepted here]", "changed": "  [changed since you accepted it]"}
    for macro in macros:
        inputs = f" ({', '.join(macro.plan.parameters)})" if macro.plan.parameters else ""
        out.line(f"{macro.name}{inputs}{f': {macro.description}' if macro.description else ''}{marks[macro.standing]}")
    if not out.as_json and not all(macro.trusted for macro in macros):
        out.note("What is not accepted does not run. Read and accept it: obsidian-agent macro trust NAME, or --all.")
    if not macros:
        out.line("No macros yet; a good run is saved with: obsidian-agent macro save NAME --run RUN")
    return Exit.DONE


def _listed(macro: Macro, session: Session) -> dict[str, Any]:
    inputs = {name: parameter.model_dump(mode="json", by_alias=True) for name, parameter in macro.plan.parameters.items()}
    listed = {"name": macro.name, "description": macro.description, "parameters": inputs, "used": session.saved.used(macro.name)}
    return listed | {"standing": macro.standing, "sha256": macro.sha256}


def _save(options: argparse.Namespace, session: Session, out: Output) -> Exit:
    literals = pairs(options.parameter, "--parameter")
    macro = session.saved.save(options.run, options.name, options.description, literals, replacing=options.replace)
    return _kept(macro, "Saved", out)


def _run(options: argparse.Namespace, session: Session, out: Output) -> Exit:
    macro = session.saved.get(options.name)
    values = parameters(options)
    document = macro.for_values(values)
    if not macro.trusted and not options.dry_run:
        # --yes approves what a person knows, and this they have not seen.
        if options.yes or out.as_json or not sys.stdin.isatty():
            return refuse((untrusted(macro).problem(),), out)
        if not _accepted(session, [macro], out):
            return Exit.NOT_APPROVED
    if not options.dry_run:
        code = run_document(session, document, values, options.yes, out)
        if code == Exit.DONE:
            session.saved.count(macro.name)
        return code
    try:
        ready = session.plans.dry_run(document, values)
    except PlanError as error:
        return reject(error, out)
    show_preview(session, ready, out)
    return Exit.DONE if ready.valid else of_problems(ready.errors)


def _show(options: argparse.Namespace, session: Session, out: Output) -> Exit:
    out.document(session.saved.get(options.name).to_json())
    return Exit.DONE


def _trust(options: argparse.Namespace, session: Session, out: Output) -> Exit:
    if options.hash is not None:
        if options.name is None:
            raise UsageError("--hash goes with the name of one macro.")
        return _kept(session.saved.accept(options.name, options.hash.strip().lower()), "Accepted", out)
    macros = session.saved.list() if options.all else [session.saved.get(options.name)]
    waiting = [macro for macro in macros if not macro.trusted]
    if waiting and not _accepted(session, waiting, out):
        return Exit.NOT_APPROVED
    if out.as_json:
        out.document({"outcome": "done", "accepted": []})
    out.line("Accepted: " + ", ".join(macro.name for macro in waiting) if waiting else "Nothing waits to be accepted.")
    return Exit.DONE


def _accepted(session: Session, macros: Sequence[Macro], out: Output) -> bool:
    """Show macros whole, ask, and trust them as they were shown. Without a terminal the answer is no."""
    for macro in macros:
        out.line(json.dumps(macro.to_json(), ensure_ascii=False, indent=2))
    question = f"Accept {'this macro' if len(macros) == 1 else f'these {len(macros)} macros'} on this computer? Nothing runs by that."
    if not _confirmed(question, False, out, "Not accepted: run it in a terminal to be asked, or add --hash with the hash of list --json."):
        return False
    for macro in macros:
        session.saved.accept(macro.name, macro.sha256)
    return True


def _edit(options: argparse.Namespace, session: Session, out: Output) -> Exit:
    changed = session.saved.read(options.file)
    out.problems(changed.warnings)
    return _kept(session.saved.edit(options.name, changed.macro.to_json()), "Changed", out)


def _rename(options: argparse.Namespace, session: Session, out: Output) -> Exit:
    return _kept(session.saved.rename(options.name, options.new_name), "Renamed", out)


def _delete(options: argparse.Namespace, session: Session, out: Output) -> Exit:
    macro = session.saved.get(options.name)
    if not _confirmed(f"Delete the macro {macro.name}?", options.yes, out):
        return Exit.NOT_APPROVED
    session.saved.delete(macro.name)
    return _kept(macro, "Deleted", out)


def _export(options: argparse.Namespace, session: Session, out: Output) -> Exit:
    macro = session.saved.get(options.name)
    if options.file is None:
        out.document(macro.to_json())
        return Exit.DONE
    path = session.saved.export(macro.name, options.file)
    out.note(f"Written to {path}.")
    return _kept(macro, "Exported", out)


def _import(options: argparse.Namespace, session: Session, out: Output) -> Exit:
    imported = session.saved.read(options.file)
    out.problems(imported.warnings)
    if not options.yes:
        for line in (f"Name: {imported.macro.name}", f"Goal: {imported.macro.plan.goal}"):
            out.line(line)
        for step in imported.macro.plan.steps:
            out.line(f"  {step.id}: {step.tool} {step.preview or ''}")
    if not _confirmed(f"Keep the macro {imported.macro.name}?", options.yes, out):
        return Exit.NOT_APPROVED
    return _kept(session.saved.keep(imported, replacing=options.replace), "Imported", out)


def _kept(macro: Macro, verb: str, out: Output) -> Exit:
    if out.as_json:
        out.document({"name": macro.name, "outcome": "done", "parameters": list(macro.plan.parameters)})
    out.line(f"{verb}: {macro.name}")
    return Exit.DONE


def _confirmed(question: str, yes: bool, out: Output, message: str = "Not done: add --yes, or run it in a terminal to be asked.") -> bool:
    if yes:
        return True
    if out.as_json or not sys.stdin.isatty():
        if out.as_json:
            out.document({"outcome": "refused", "message": message, "errors": [{"code": "NOT_APPROVED", "message": message}]})
        out.note(message)
        return False
    out.line(question)
    return out.agreed("Type yes: ")
