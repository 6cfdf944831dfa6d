"""Reports as lines of text: what was sent, what would be sent, what it cost, what is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from obsidian_agent import terminal_text

if TYPE_CHECKING:
    from obsidian_agent.agent.events import ExecutionResult, TokensUsed
    from obsidian_agent.agent.token_budget import WindowUse
    from obsidian_agent.app_services import CacheInfo
    from obsidian_agent.integrations.community_plugins import PluginMatches
    from obsidian_agent.journal.records import StepOutcome
    from obsidian_agent.services.model_turns import RequestPreview
    from obsidian_agent.threads.tasks import PlanStepState

Line = tuple[str, str]
"""A line and its style."""

STEP_SIGNS: Mapping[PlanStepState, tuple[str, str]] = {
    "applied": ("✓", "$success"),
    "partly applied": ("◐", "$warning"),
    "not applied": ("○", "$warning"),
    "undone": ("↶", "$secondary"),
    "no changes": ("·", "$quiet"),
    "interrupted": ("▲", "$error"),
    "open": ("○", "$quiet"),
    "unknown": ("?", "$quiet"),
}
"""Sign and style of the outcome of a step, wherever it is shown."""

Speaker = Literal["you", "agent", "note", "good", "bad"]
"""Whose words an entry of the conversation is, or how a remark is meant."""

ALLOWED = {
    "once": "you, that time",
    "thread": "you, for the conversation",
    "folder": "you, for its folder",
    "granted": "you, earlier",
    "rule": "a rule",
    "local": "a model on this machine",
    "context": "it was open, which every message tells",
}
LEVELS = {"name": "its name", "preview": "some lines", "text": "its text"}
MOST = 400
"""Entries that a report shows; how many more there are is said."""


def sent_lines(entries: Sequence[Mapping[str, Any]], thread_id: str | None) -> list[Line]:
    """The ledger, newest first; what belongs to the conversation on the screen is marked."""
    if not entries:
        return [("Nothing of this vault was ever sent to a model.", "$quiet")]
    lines: list[Line] = []
    for entry in list(reversed(entries))[:MOST]:
        here = "▸ " if thread_id is not None and entry.get("conversation") == thread_id else "  "
        time = terminal_text.line(str(entry.get("time", ""))[:19].replace("T", " "))
        to = f"{entry.get('provider', '')} {entry.get('address', '')}".strip()
        what = entry.get("tool") or ""
        what = "with your message" if what == "context" else str(what)
        lines.append(
            (
                f"{here}{time}  {terminal_text.shortened(to, 100)}  {terminal_text.shortened(what, 60)}",
                "$foreground",
            )
        )
        files = entry.get("files")
        for file in files if isinstance(files, list) else ():
            path = terminal_text.shortened(str(file.get("path") or "the selection"), 160)
            level = LEVELS.get(str(file.get("shared")), str(file.get("shared")))
            by = ALLOWED.get(str(file.get("allowedBy")), str(file.get("allowedBy")))
            lines.append(
                (
                    f"      {path}: {level}, {file.get('characters', 0):,} characters; allowed by {by}",
                    "$quiet",
                )
            )
    if len(entries) > MOST:
        lines.append((f"and {len(entries) - MOST:,} earlier", "$quiet"))
    return lines


def audit_rows(entries: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The record, newest first: number, time and kind of each entry, and what else it says."""
    from obsidian_agent.agent.privacy.record import entry_text

    return [
        (
            f"{entry.get('n')}  {str(entry.get('time', ''))[:19].replace('T', ' ')}  {entry.get('kind')}",
            entry_text(entry),
        )
        for entry in reversed(entries)
    ]


def gauge(use: WindowUse, width: int = 20) -> str:
    """How full the model's window is, as a bar: `█████░░░░░ 48 %`."""
    filled = min(width, round(use.share * width))
    return f"{'█' * filled}{'░' * (width - filled)} {use.share:.0%}"


def request_lines(outlook: RequestPreview | None) -> list[Line]:
    """What a message would send, with its size and price, and then all of it."""
    if outlook is None:
        return [("No model is chosen: nothing is sent anywhere. /model chooses one.", "$quiet")]
    use = outlook.use
    window = f"{use.window:,}" + ("" if use.known else " (a guess)")
    to = f"To {outlook.provider}" + (f" at {outlook.address}" if outlook.address else "")
    lines: list[Line] = [
        (terminal_text.shortened(to, 200), "bold"),
        (f"{gauge(use)} of {window} tokens", "$warning" if use.full else "$primary"),
    ]
    parts = (
        ("system and tools", use.system),
        ("instructions", use.instructions),
        ("notes", use.context),
        ("conversation", use.history),
        ("kept for the reply", use.reply),
    )
    lines += [(f"  {name:<20}{count:>9,}", "$quiet") for name, count in parts]
    cost = "not known" if outlook.cost is None else f"at most ${outlook.cost:.4f} by list price"
    lines.append((f"  {'price':<20}{cost:>9}", "$quiet"))
    for question in outlook.questions:
        names = ", ".join(
            terminal_text.shortened(item.path.text or "the selection", 80)
            for item in question.items[:6]
        )
        more = f" and {len(question.items) - 6} more" if len(question.items) > 6 else ""
        lines.append((f"▲ You would be asked about {names}{more}", "$warning"))
    lines += [
        (f"▲ {terminal_text.block(problem.message)}", "$warning") for problem in outlook.notices
    ]
    lines += [("", ""), ("Exactly this would be sent now:", "bold"), ("", "")]
    return lines + [(line, "$foreground") for line in terminal_text.block(outlook.text).split("\n")]


def usage_lines(here: Sequence[TokensUsed], everywhere: Sequence[TokensUsed]) -> list[Line]:
    """Tokens, money and times, of this conversation and of all that are in memory."""
    lines: list[Line] = []
    for title, turns in (("This conversation", here), ("All conversations in memory", everywhere)):
        lines += [(title, "bold"), *_usage(turns), ("", "")]
    return lines[:-1]


def _usage(turns: Sequence[TokensUsed]) -> list[Line]:
    from obsidian_agent.agent.usage import total

    if not turns:
        return [("  no model was asked", "$quiet")]
    lines: list[Line] = []
    for model in dict.fromkeys(turn.model for turn in turns):
        of_model = [turn for turn in turns if turn.model == model]
        found = total(of_model)
        first = sorted(turn.first for turn in of_model if turn.first is not None)
        cached = (
            f", {found.cached / found.prompt:.0%} of them remembered by the service"
            if found.cached and found.prompt
            else ""
        )
        unpriced = sum(turn.cost is None for turn in of_model)
        price = "price not known" if found.cost is None else f"${found.cost:.4f}"
        price += (
            f" and {unpriced} turns without a known price"
            if unpriced and found.cost is not None
            else ""
        )
        lines += [
            (f"  {terminal_text.shortened(model, 80)}", "$primary"),
            (
                f"    {terminal_text.counted(len(of_model), 'turn')}, {terminal_text.counted(found.requests, 'request')}",
                "$foreground",
            ),
            (f"    {found.prompt:,} tokens in{cached}, {found.completion:,} out", "$foreground"),
            (f"    {price}", "$foreground"),
            (
                f"    {found.seconds:.1f} s, of these {found.tools:.1f} s looking around",
                "$foreground",
            ),
        ]
        if first:
            lines.append(
                (
                    f"    first words after {first[len(first) // 2]:.2f} s at the median, {first[-1]:.2f} s at worst",
                    "$foreground",
                )
            )
    return lines


def usage_summary(turns: Sequence[TokensUsed]) -> str:
    """The last turn and the whole conversation: `5,200 in · 240 out · $0.0123 · conversation $0.0340`."""
    from obsidian_agent.agent.usage import total

    last, whole = turns[-1], total(turns)
    price = f" · ${last.cost:.4f}" if last.cost is not None else ""
    so_far = (
        f" · conversation ${whole.cost:.4f}"
        if whole.cost
        else f" · conversation {whole.prompt + whole.completion:,} tokens"
    )
    return f"{last.prompt:,} in · {last.completion:,} out{price}{so_far if len(turns) > 1 else ''}"


def cache_lines(kept: Sequence[CacheInfo]) -> list[Line]:
    """What is kept ready, and where."""
    return [
        line
        for each in kept
        for line in (
            (f"{terminal_text.line(each.what)}: {terminal_text.line(each.amount)}", "$foreground"),
            *(((f"  {terminal_text.shortened(each.where, 300)}", "$quiet"),) if each.where else ()),
        )
    ]


def plugin_lines(found: PluginMatches) -> list[Line]:
    """Community plugins that fit, and what the vault has of them."""
    lines: list[Line] = []
    for each in found.items:
        plugin = each.plugin
        state = "  ✓ on" if each.enabled else "  installed, off" if each.installed else ""
        lines += [
            (f"{terminal_text.shortened(plugin.name, 100)}{state}", "bold"),
            (f"  {terminal_text.shortened(plugin.description, 300)}", "$foreground"),
            (
                f"  by {terminal_text.shortened(plugin.author, 80)} · {terminal_text.shortened(plugin.url, 200)}",
                "$quiet",
            ),
            ("", ""),
        ]
    if not lines:
        lines = [("No plugin fits these words.", "$quiet"), ("", "")]
    age = f"The list is of {found.fetched_at:%Y-%m-%d %H:%M}" + (
        ", and could not be renewed" if found.stale else ""
    )
    return [*lines, (f"{age}. Installing is done in Obsidian.", "$quiet")]


def describe_result(result: ExecutionResult) -> str:
    """What happened, in words: `Created 10 files, modified 1 file.`"""
    effects = result.effects
    parts = [
        f"{verb} {len(items):,} {noun}{'s' if len(items) != 1 else ''}"
        for verb, items, noun in (
            ("created", effects.created, "file"),
            ("modified", effects.modified, "file"),
            ("renamed", effects.renamed, "file"),
            ("deleted", effects.deleted, "file"),
            ("made", effects.folders, "folder"),
            ("ran", effects.commands, "command"),
        )
        if items
    ]
    done = ", ".join(parts).capitalize() if parts else "No file was changed"
    sentences = [f"{done}."]
    if result.status not in ("done", "recovered"):
        sentences.append(f"{result.completed_steps:,} of {result.total_steps:,} steps are applied.")
    if left := result.remaining.files:
        sentences.append(f"Left: {terminal_text.counted(left, 'file')}.")
    return " ".join(sentences)


def describe_step(step: StepOutcome) -> str:
    """Return a step with its outcome: `◐ Tag the notes: partly applied, 120 of 390 changes`."""
    words = f"{STEP_SIGNS[step.state][0]} {step.text}: {step.state}"
    if step.state != "partly applied":
        return words
    return f"{words}, {step.in_effect:,} of {terminal_text.counted(step.changes, 'change')}"
