"""`macro …`: saved plans, without a model."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output, on_terminal
from obsidian_agent.cli.parser import Commands, UsageError, actions, approval, context
from obsidian_agent.cli.session_factory import open_session, pairs, parameters
from obsidian_agent.errors import Problem

if TYPE_CHECKING:
    from obsidian_agent.services.macro import Macro
    from obsidian_agent.services.session import Session


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its actions."""
    examples = [
        "macro list --vault ~/Notes",
        "macro save 'Weekly review' --run RUN",
        "macro run 'Weekly review' --yes",
    ]
    action = actions(commands.add("macro", None, examples=examples))
    action.add("list", _list, summary="saved macros")
    command = action.add(
        "save",
        _save,
        summary="save a run as a macro",
        examples=["macro save 'New project' --run RUN --parameter client=Ada"],
    )
    command.add_argument("name")
    command.add_argument("--run", required=True, metavar="RUN")
    command.add_argument("--description", metavar="TEXT")
    inputs = "make a literal of the plan an input of this name (repeat)"
    command.add_argument(
        "--parameter", metavar="NAME=LITERAL", action="append", default=[], help=inputs
    )
    command.add_argument("--replace", action="store_true", help="a macro of that name is replaced")
    command = action.add(
        "run",
        _run,
        context(),
        summary="run a macro: no model",
        examples=["macro run 'New project' --param client=Bo --dry-run"],
    )
    command.add_argument("name")
    mode = command.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", action="store_true", help="preview only")
    approval(mode)
    action.add("show", _show, summary="the macro's document").add_argument("name")
    accept = (
        "accept a macro that came with the vault, or changed by a sync: it is shown, then asked"
    )
    command = action.add("trust", _trust, summary=accept)
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("name", nargs="?")
    which.add_argument(
        "--all", action="store_true", help="all that wait: each is shown, one question"
    )
    command.add_argument(
        "--hash",
        metavar="SHA256",
        help="accept it unasked if its file has this hash, as list --json tells it",
    )
    command = action.add("edit", _edit, summary="put a changed document in its place")
    command.add_argument("name")
    command.add_argument("file", metavar="FILE", help="JSON as show prints it")
    command = action.add("rename", _rename, summary="give it another name")
    command.add_argument("name")
    command.add_argument("new_name")
    command = action.add("delete", _delete, summary="remove it")
    command.add_argument("name")
    approval(command, "don't ask")
    command = action.add(
        "export", _export, summary="its document on standard output, or into a file"
    )
    command.add_argument("name")
    command.add_argument("file", nargs="?", metavar="FILE")
    command = action.add(
        "import", _import, summary="read one from a file; it is shown, and inert until accepted"
    )
    command.add_argument("file", metavar="FILE")
    command.add_argument("--replace", action="store_true", help="a macro of that name is replaced")
    command.set_defaults(by_author=True)
    approval(command, "don't ask")


def _list(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    macros = session.saved.list()
    if out.as_json:
        out.document({"macros": [_listed(macro, session) for macro in macros]})
    marks = {
        "trusted": "",
        "new": "  [not accepted here]",
        "changed": "  [changed since you accepted it]",
    }
    for macro in macros:
        inputs = f" ({', '.join(macro.plan.parameters)})" if macro.plan.parameters else ""
        out.line(
            f"{macro.name}{inputs}{f': {macro.description}' if macro.description else ''}{marks[macro.standing]}"
        )
    if not out.as_json and not all(macro.trusted for macro in macros):
        out.note(
            "What is not accepted does not run. Read and accept it: obsidian-agent macro trust NAME, or --all."
        )
    if not macros:
        out.line(
            "No macros yet; a good run is saved with: obsidian-agent macro save NAME --run RUN"
        )
    return Exit.DONE


def _listed(macro: Macro, session: Session) -> dict[str, Any]:
    inputs = {
        name: parameter.model_dump(mode="json", by_alias=True)
        for name, parameter in macro.plan.parameters.items()
    }
    listed = {
        "name": macro.name,
        "description": macro.description,
        "parameters": inputs,
        "used": session.saved.use_count(macro.name),
    }
    return listed | {"standing": macro.standing, "sha256": macro.sha256}


def _save(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    literals = pairs(options.parameter, "--parameter")
    macro = session.saved.save(
        options.run, options.name, options.description, literals, replacing=options.replace
    )
    return _kept(macro, "Saved", out)


def _run(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.cli.report import dry_run, refuse, run_document

    session = open_session(options)
    macro = session.saved.get(options.name)
    values = parameters(options)
    document = macro.for_values(values)
    if not macro.trusted and not options.dry_run:
        # --yes approves what a person knows, and this they have not seen.
        if options.yes or out.as_json or not on_terminal(sys.stdin):
            return refuse((_untrusted(macro),), out)
        if not _accepted(session, [macro], out):
            return Exit.NOT_APPROVED
    if options.dry_run:
        return dry_run(session, document, values, out)
    code = run_document(session, document, values, options.yes, out)
    if code == Exit.DONE:
        session.saved.count(macro.name)
    return code


def _show(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    out.document(session.saved.get(options.name).to_json())
    return Exit.DONE


def _trust(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    if options.hash is not None:
        if options.name is None:
            raise UsageError("--hash goes with the name of one macro.")
        return _kept(
            session.saved.accept(options.name, options.hash.strip().lower()), "Accepted", out
        )
    macros = session.saved.list() if options.all else [session.saved.get(options.name)]
    waiting = [macro for macro in macros if not macro.trusted]
    if waiting and not _accepted(session, waiting, out):
        return Exit.NOT_APPROVED
    if out.as_json:
        out.document({"outcome": "done", "accepted": []})
    out.line(
        "Accepted: " + ", ".join(macro.name for macro in waiting)
        if waiting
        else "Nothing waits to be accepted."
    )
    return Exit.DONE


def _accepted(session: Session, macros: Sequence[Macro], out: Output) -> bool:
    """Show macros whole, ask, and trust them as they were shown. Without a terminal the answer is no."""
    for macro in macros:
        out.line(json.dumps(macro.to_json(), ensure_ascii=False, indent=2))
    question = f"Accept {'this macro' if len(macros) == 1 else f'these {len(macros)} macros'} on this computer? Nothing runs by that."
    if not out.confirmed(
        question,
        False,
        "Not accepted: run it in a terminal to be asked, or add --hash with the hash of list --json.",
    ):
        return False
    for macro in macros:
        session.saved.accept(macro.name, macro.sha256)
    return True


def _edit(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    changed = session.saved.read(options.file)
    out.problems(changed.warnings)
    return _kept(session.saved.edit(options.name, changed.macro.to_json()), "Changed", out)


def _rename(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    return _kept(session.saved.rename(options.name, options.new_name), "Renamed", out)


def _delete(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    macro = session.saved.get(options.name)
    if not out.confirmed(f"Delete the macro {macro.name}?", options.yes):
        return Exit.NOT_APPROVED
    session.saved.delete(macro.name)
    return _kept(macro, "Deleted", out)


def _export(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    macro = session.saved.get(options.name)
    if options.file is None:
        out.document(macro.to_json())
        return Exit.DONE
    path = session.saved.export(macro.name, options.file)
    out.note(f"Written to {path}.")
    return _kept(macro, "Exported", out)


def _import(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    imported = session.saved.read(options.file)
    out.problems(imported.warnings)
    if not options.yes:
        for line in (f"Name: {imported.macro.name}", f"Goal: {imported.macro.plan.goal}"):
            out.line(line)
        for step in imported.macro.plan.steps:
            out.line(f"  {step.id}: {step.tool} {step.preview or ''}")
    if not out.confirmed(f"Keep the macro {imported.macro.name}?", options.yes):
        return Exit.NOT_APPROVED
    return _kept(session.saved.keep(imported, replacing=options.replace), "Imported", out)


def _kept(macro: Macro, verb: str, out: Output) -> Exit:
    if out.as_json:
        out.document(
            {"name": macro.name, "outcome": "done", "parameters": list(macro.plan.parameters)}
        )
    out.line(f"{verb}: {macro.name}")
    return Exit.DONE


def _untrusted(macro: Macro) -> Problem:
    from obsidian_agent.services.macro_store import untrusted

    error = untrusted(macro)
    how = f"obsidian-agent macro trust {shlex.quote(macro.name)}; without a terminal add --hash {macro.sha256}."
    return Problem(error.code, f"{error.message} Read it and accept it: {how}")
