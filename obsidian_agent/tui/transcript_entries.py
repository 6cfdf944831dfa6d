"""A kept conversation as lines of the transcript."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, assert_never

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass

if TYPE_CHECKING:
    from obsidian_agent.agent.threads.state import Said

Speaker = Literal["you", "agent", "note", "good", "bad"]


@dataclass(frozen=True, slots=True)
class Cited:
    """Vault paths of what an answer rests on, and of what else the model was shown."""

    sources: tuple[str, ...]
    besides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """An entry of the transcript. `mark` stands below an answer that is not whole; with `cited` it is the list below an answer."""

    speaker: Speaker
    text: str
    at: datetime | None = None
    mark: str = ""
    cited: Cited | None = None


def entries_of(said: Sequence[Said]) -> list[TranscriptEntry]:
    """Everything that was said, in order."""
    return [entry for each in said for entry in _entries(each)]


def _entries(said: Said) -> list[TranscriptEntry]:
    at = _time(said.time)
    match said.role:
        case "person":
            return [TranscriptEntry("you", said.text, at)] + (
                [TranscriptEntry("note", "This was not sent.", at)] if said.state == "unsent" else []
            )
        case "model":
            answer = [TranscriptEntry("agent", said.text, at)]  # one that was cut off says so itself
            cited = Cited(_paths(said.data.get("sources")), _paths(said.data.get("besides")))
            return answer + ([TranscriptEntry("note", "", at, cited=cited)] if cited.sources or cited.besides else [])
        case "look":
            return [TranscriptEntry("note", look_in_words(said.text, said.data.get("args"), str(said.data.get("why") or "")), at)]
        case "plan":
            return [TranscriptEntry("note", f"Plan: {said.text}", at)]
        case "notice":
            return [TranscriptEntry("note", said.text, at)]
        case "run":
            return [
                TranscriptEntry(
                    "good" if said.data.get("success") else "bad", f"{'Applied' if said.data.get('success') else 'Run'}: {said.text}", at
                )
            ]
        case "failed":
            return [TranscriptEntry("bad", said.text, at)]
        case _:
            assert_never(said.role)


def _paths(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()


def look_in_words(purpose: str, args: object, why: str) -> str:
    """What a model looks at: `Search the text of notes: “Japan” – to find what you wrote`."""
    given = [value for name, value in args.items() if name not in ("limit", "offset")] if isinstance(args, dict) else []
    match given[0] if given else "":
        case str(text) if text:
            what = f": “{terminal_text.shortened(text, 120)}”"
        case list(names):
            shown = ", ".join(terminal_text.shortened(str(each).rpartition("/")[2], 60) for each in names[:3])
            what = f": {shown}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        case _:
            what = ""
    return f"{purpose}{what}" + (f" – {terminal_text.shortened(why, 240)}" if why else "")


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
