"""A conversation as a note: an ActionPlan that creates it, so that it is previewed and can be undone like everything else."""

from __future__ import annotations

import re
from typing import Any, Final

import frontmatter

from obsidian_agent.agent.threads.state import Said, ThreadState
from obsidian_agent.vault.paths.path import clean_component

FOLDER: Final = "Conversations"


def export_plan(state: ThreadState, path: str | None = None) -> dict[str, Any]:
    """The plan's document. `path` None: a note named after the title in the folder Conversations, numbered where the name is taken."""
    where = path or f"{FOLDER}/{clean_component(state.title or state.id)}.md"
    taken: dict[str, Any] = {"onConflict": "suffix"} if path is None else {"ifNotExists": False}
    args = {"path": _literal(where), "content": _literal(note_of(state)), **taken}
    step = {"id": "note", "tool": "vault.createFile", "args": args, "preview": f"Create {_literal(where)}"}
    return {"version": "1.0", "goal": f"Export the conversation “{state.title}” as a note", "riskLevel": "writes", "steps": [step]}


def note_of(state: ThreadState) -> str:
    """The conversation in Markdown, a heading for each side's words; when it began is a property."""
    parts = [f"# {state.title}"]
    for said in state.said:
        match said.role:
            case "person":
                parts += [f"## You, {_time(said)}", said.text.strip()]
            case "model":
                parts += [f"## Agent, {_time(said)}", _lowered(said.text.strip())]
                for title, key in (("Sources", "sources"), ("Also sent", "besides")):
                    if paths := said.data.get(key):
                        parts.append(f"{title}: " + ", ".join(f"[[{str(path).removesuffix('.md')}]]" for path in paths))
            case "plan" | "run":
                parts.append(f"> {said.text.strip()}")
            case "look" | "notice" | "failed":
                continue
    return frontmatter.dumps(frontmatter.Post("\n\n".join(parts), created=state.created[:19])) + "\n"


def _time(said: Said) -> str:
    return said.time[:16].replace("T", " ")


def _lowered(text: str) -> str:
    """The text with its headings below the ones of the roles."""
    return re.sub(r"^(#{1,4})(?= )", r"##\1", text, flags=re.MULTILINE)


def _literal(text: str) -> str:
    """The text as a plan's argument that means just this text."""
    return text.replace("${", "$${")
