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
from obsidian_agent.cli.parser import (
    Commands,
    UsageError,
    add_actions,
    add_approval,
    context_options,
)
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
    action = add_actions(commands.add("macro", None, examples=examples))
    action.add("list", _list, summary="list saved macros")
    command = action.add(
        "save",
        _save,
        summary="save a run as a macro",
        examples=["macro save 'New project' --run RUN --parameter client=Ada"],
    )
    command.add_argument("name")
    command.add_argument("--run", required=True, metavar="RUN")
    command.add_argument("--description", metavar="TEXT")
    command.add_argument(
        "--parameter",
        metavar="NAME=LITERAL",
        action="append",
        default=[],
        help="replace this text of the plan by an input with this name (repeat)",
    )
    command.add_argument("--replace", action="store_true", help="replace a macro with this name")
    command = action.add(
        "run",
        _run,
        context_options(),
        summary="run a macro, without a model",
        examples=["macro run 'New project' --param client=Bo --dry-run"],
    )
    command.add_argument("name")
    mode = command.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", action="store_true", help="preview only")
    add_approval(mode)
    action.add("show", _show, summary="print a macro as JSON").add_argument("name")
    command = action.add(
        "trust",
        _trust,
        summary="display and trust a macro that came with the vault or was changed by a sync",
    )
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("name", nargs="?")
    which.add_argument(
        "--all", action="store_true", help="all macros that are not trusted, with one question"
    )
    command.add_argument(
        "--hash",
        metavar="SHA256",
        help="trust without asking if the file has this hash, which list --json prints",
    )
    command = action.add("edit", _edit, summary="replace a macro's document")
    command.add_argument("name")
    command.add_argument("file", metavar="FILE", help="JSON in the form that show prints")
    command = action.add("rename", _rename, summary="rename a macro")
    command.add_argument("name")
    command.add_argument("new_name")
    command = action.add("delete", _delete, summary="delete a macro")
    command.add_argument("name")
    add_approval(command)
    command = action.add("export", _export, summary="write a macro to standard output or a file")
    command.add_argument("name")
    command.add_argument("file", nargs="?", metavar="FILE")
    command = action.add(
        "import", _import, summary="import a macro from a file; it is displayed first"
    )
    command.add_argument("file", metavar="FILE")
    command.add_argument("--replace", action="store_true", help="replace a macro with this name")
    command.set_defaults(by_author=True)
    add_approval(command)


def _list(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    macros = session.saved.list()
    if out.as_json:
        out.document({"macros": [_document(macro, session) for macro in macros]})
    marks = {
        "trusted": "",
        "new": "  [not trusted on this computer]",
        "changed": "  [changed since you trusted it]",
    }
    for macro in macros:
        inputs = f" ({', '.join(macro.plan.parameters)})" if macro.plan.parameters else ""
        description = f": {macro.description}" if macro.description else ""
        out.line(f"{macro.name}{inputs}{description}{marks[macro.standing]}")
    if not out.as_json and not all(macro.trusted for macro in macros):
        out.note(
            "A macro that is not trusted does not run. Read and trust it with: "
            "obsidian-agent macro trust NAME, or --all."
        )
    if not macros:
        out.line("No macros yet. Save a run with: obsidian-agent macro save NAME --run RUN")
    return Exit.DONE


def _document(macro: Macro, session: Session) -> dict[str, Any]:
    inputs = {
        name: parameter.model_dump(mode="json", by_alias=True)
        for name, parameter in macro.plan.parameters.items()
    }
    return {
        "name": macro.name,
        "description": macro.description,
        "parameters": inputs,
        "used": session.saved.use_count(macro.name),
        "standing": macro.standing,
        "sha256": macro.sha256,
    }


def _save(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    literals = pairs(options.parameter, "--parameter")
    macro = session.saved.save(
        options.run, options.name, options.description, literals, replacing=options.replace
    )
    return _report(macro, "Saved", out)


def _run(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.cli.report import RunRequest, dry_run, refuse, run_plan

    session = open_session(options)
    macro = session.saved.get(options.name)
    values = parameters(options)
    document = macro.for_values(values)
    if not macro.trusted and not options.dry_run:
        # --yes approves only what the user has seen before.
        if options.yes or out.as_json or not on_terminal(sys.stdin):
            return refuse((_untrusted(macro),), out)
        if not _accepted(session, [macro], out):
            return Exit.NOT_APPROVED
    if options.dry_run:
        return dry_run(session, document, values, out)
    request = RunRequest(document=document, values=values, yes=options.yes)
    code = run_plan(session, request, out)
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
            raise UsageError("--hash needs the name of one macro.")
        macro = session.saved.accept(options.name, options.hash.strip().lower())
        return _report(macro, "Accepted", out)
    macros = session.saved.list() if options.all else [session.saved.get(options.name)]
    waiting = [macro for macro in macros if not macro.trusted]
    if waiting and not _accepted(session, waiting, out):
        return Exit.NOT_APPROVED
    if out.as_json:
        out.document({"outcome": "done", "accepted": []})
    if waiting:
        out.line(f"Trusted: {', '.join(macro.name for macro in waiting)}")
    else:
        out.line("All macros are trusted.")
    return Exit.DONE


def _accepted(session: Session, macros: Sequence[Macro], out: Output) -> bool:
    """Print the macros, ask, and trust them in that version. Without a terminal return False."""
    for macro in macros:
        out.line(json.dumps(macro.to_json(), ensure_ascii=False, indent=2))
    macros_text = "this macro" if len(macros) == 1 else f"these {len(macros)} macros"
    if not out.confirmed(
        f"Trust {macros_text} on this computer? Nothing is run.",
        False,
        "Not trusted: run it in a terminal to be asked, or add --hash with the hash that "
        "list --json prints.",
    ):
        return False
    for macro in macros:
        session.saved.accept(macro.name, macro.sha256)
    return True


def _edit(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    changed = session.saved.read(options.file)
    out.problems(changed.warnings)
    return _report(session.saved.edit(options.name, changed.macro.to_json()), "Changed", out)


def _rename(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    return _report(session.saved.rename(options.name, options.new_name), "Renamed", out)


def _delete(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    macro = session.saved.get(options.name)
    if not out.confirmed(f"Delete the macro {macro.name}?", options.yes):
        return Exit.NOT_APPROVED
    session.saved.delete(macro.name)
    return _report(macro, "Deleted", out)


def _export(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    macro = session.saved.get(options.name)
    if options.file is None:
        out.document(macro.to_json())
        return Exit.DONE
    path = session.saved.export(macro.name, options.file)
    out.note(f"Written to {path}.")
    return _report(macro, "Exported", out)


def _import(options: argparse.Namespace, out: Output) -> Exit:
    session = open_session(options)
    imported = session.saved.read(options.file)
    out.problems(imported.warnings)
    if not options.yes:
        out.line(f"Name: {imported.macro.name}")
        out.line(f"Goal: {imported.macro.plan.goal}")
        for step in imported.macro.plan.steps:
            out.line(f"  {step.id}: {step.tool} {step.preview or ''}")
    if not out.confirmed(f"Import the macro {imported.macro.name}?", options.yes):
        return Exit.NOT_APPROVED
    return _report(session.saved.keep(imported, replacing=options.replace), "Imported", out)


def _report(macro: Macro, verb: str, out: Output) -> Exit:
    if out.as_json:
        out.document(
            {"name": macro.name, "outcome": "done", "parameters": list(macro.plan.parameters)}
        )
    out.line(f"{verb}: {macro.name}")
    return Exit.DONE


def _untrusted(macro: Macro) -> Problem:
    from obsidian_agent.services.macro_store import untrusted

    error = untrusted(macro)
    name = shlex.quote(macro.name)
    return Problem(
        error.code,
        f"{error.message} Read it and trust it: obsidian-agent macro trust {name}; "
        f"without a terminal add --hash {macro.sha256}.",
    )
