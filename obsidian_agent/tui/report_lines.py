"""Lines of styled text for reports on sharing, usage, caches, plugins and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from obsidian_agent.terminal_text import block, counted, line, shortened

if TYPE_CHECKING:
    from obsidian_agent.agent.events import TokensUsed
    from obsidian_agent.agent.token_budget import WindowUse
    from obsidian_agent.app_services import CacheInfo
    from obsidian_agent.integrations.community_plugins import PluginMatch, PluginMatches
    from obsidian_agent.journal.records import StepOutcome
    from obsidian_agent.services.model_turns import RequestPreview
    from obsidian_agent.threads.tasks import PlanStepState

Line = tuple[str, str]
"""A text and its style."""

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
"""The sign and style of each outcome of a step."""

Speaker = Literal["you", "agent", "note", "good", "bad"]
"""The author of an entry of the conversation, or the kind of a remark."""

ALLOWED = {
    "once": "you, once",
    "thread": "you, for the conversation",
    "folder": "you, for its folder",
    "granted": "you, earlier",
    "rule": "a rule",
    "local": "a model on this machine",
    "context": "default, as the open note",
}
LEVELS = {"name": "its name", "preview": "some lines", "text": "its text"}
MAX_ENTRIES = 400
"""Entries of a report; the number of the others is added."""


def sent_lines(entries: Sequence[Mapping[str, Any]], thread_id: str | None) -> list[Line]:
    """Return the sharing ledger, newest entry first, with those of `thread_id` marked."""
    if not entries:
        return [("Nothing of this vault was ever sent to a model.", "$quiet")]
    lines: list[Line] = []
    for entry in list(reversed(entries))[:MAX_ENTRIES]:
        is_here = thread_id is not None and entry.get("conversation") == thread_id
        mark = "▸ " if is_here else "  "
        recipient = f"{entry.get('provider', '')} {entry.get('address', '')}".strip()
        occasion = str(entry.get("tool") or "")
        if occasion == "context":
            occasion = "with your message"
        lines.append(
            (
                f"{mark}{line(_timestamp(entry))}  {shortened(recipient, 100)}  "
                f"{shortened(occasion, 60)}",
                "$foreground",
            )
        )
        files = entry.get("files")
        for file in files if isinstance(files, list) else ():
            lines.append((f"      {_shared_file(file)}", "$quiet"))
    if len(entries) > MAX_ENTRIES:
        lines.append((f"and {len(entries) - MAX_ENTRIES:,} earlier", "$quiet"))
    return lines


def _timestamp(entry: Mapping[str, Any]) -> str:
    return str(entry.get("time", ""))[:19].replace("T", " ")


def _shared_file(file: Mapping[str, Any]) -> str:
    path = shortened(str(file.get("path") or "the selection"), 160)
    level = LEVELS.get(str(file.get("shared")), str(file.get("shared")))
    allowed_by = ALLOWED.get(str(file.get("allowedBy")), str(file.get("allowedBy")))
    return f"{path}: {level}, {file.get('characters', 0):,} characters; allowed by {allowed_by}"


def audit_rows(entries: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the audit record, newest entry first, as pairs of heading and text."""
    from obsidian_agent.agent.privacy.record import entry_text

    return [
        (f"{entry.get('n')}  {_timestamp(entry)}  {entry.get('kind')}", entry_text(entry))
        for entry in reversed(entries)
    ]


def gauge(use: WindowUse, width: int = 20) -> str:
    """Return the used share of the model's window as a bar: `█████░░░░░ 48 %`."""
    filled = min(width, round(use.share * width))
    return f"{'█' * filled}{'░' * (width - filled)} {use.share:.0%}"


def request_lines(request: RequestPreview | None) -> list[Line]:
    """Return the size and price of the request for a message, then its full text."""
    if request is None:
        return [("No model is chosen: nothing is sent anywhere. /model chooses one.", "$quiet")]
    use = request.use
    window = f"{use.window:,}" + ("" if use.known else " (a guess)")
    recipient = f"To {request.provider}" + (f" at {request.address}" if request.address else "")
    lines: list[Line] = [
        (shortened(recipient, 200), "bold"),
        (f"{gauge(use)} of {window} tokens", "$warning" if use.full else "$primary"),
    ]
    parts = (
        ("system and tools", use.system),
        ("instructions", use.instructions),
        ("notes", use.context),
        ("conversation", use.history),
        ("reserved for reply", use.reply),
    )
    lines += [(f"  {name:<20}{count:>9,}", "$quiet") for name, count in parts]
    cost = "unknown" if request.cost is None else f"at most ${request.cost:.4f} by list price"
    lines.append((f"  {'price':<20}{cost:>9}", "$quiet"))
    for question in request.questions:
        names = ", ".join(
            shortened(item.path.text or "the selection", 80) for item in question.items[:6]
        )
        more = f" and {len(question.items) - 6} more" if len(question.items) > 6 else ""
        lines.append((f"▲ You would be asked about {names}{more}", "$warning"))
    lines += [(f"▲ {block(problem.message)}", "$warning") for problem in request.notices]
    lines += [("", ""), ("Exactly this would be sent now:", "bold"), ("", "")]
    return lines + [(text, "$foreground") for text in block(request.text).split("\n")]


def usage_lines(here: Sequence[TokensUsed], everywhere: Sequence[TokensUsed]) -> list[Line]:
    """Return tokens, money and times of this conversation and of all loaded ones."""
    lines: list[Line] = []
    for title, turns in (("This conversation", here), ("All conversations in memory", everywhere)):
        lines += [(title, "bold"), *_usage_by_model(turns), ("", "")]
    return lines[:-1]


def _usage_by_model(turns: Sequence[TokensUsed]) -> list[Line]:
    if not turns:
        return [("  no model was used", "$quiet")]
    lines: list[Line] = []
    for model in dict.fromkeys(turn.model for turn in turns):
        lines.append((f"  {shortened(model, 80)}", "$primary"))
        usage = _usage_of_model([turn for turn in turns if turn.model == model])
        lines += [(f"    {text}", "$foreground") for text in usage]
    return lines


def _usage_of_model(turns: Sequence[TokensUsed]) -> list[str]:
    from obsidian_agent.agent.usage import total

    sums = total(turns)
    cached = ""
    if sums.cached and sums.prompt:
        cached = f", {sums.cached / sums.prompt:.0%} of them cached by the service"
    unpriced = sum(turn.cost is None for turn in turns)
    price = "price unknown" if sums.cost is None else f"${sums.cost:.4f}"
    if unpriced and sums.cost is not None:
        price += f" and {counted(unpriced, 'message')} without a known price"
    texts = [
        f"{counted(len(turns), 'message')}, {counted(sums.requests, 'request')}",
        f"{sums.prompt:,} tokens in{cached}, {sums.completion:,} out",
        price,
        f"{sums.seconds:.1f} s, of which {sums.tools:.1f} s in tools",
    ]
    delays = sorted(turn.first for turn in turns if turn.first is not None)
    if delays:
        median = delays[len(delays) // 2]
        texts.append(f"first words after {median:.2f} s (median), {delays[-1]:.2f} s at most")
    return texts


def usage_summary(turns: Sequence[TokensUsed]) -> str:
    """Return the usage of the last turn and of the whole conversation in one line.

    An example is `5,200 in · 240 out · $0.0123 · conversation $0.0340`.
    """
    from obsidian_agent.agent.usage import total

    last, whole = turns[-1], total(turns)
    summary = f"{last.prompt:,} in · {last.completion:,} out"
    if last.cost is not None:
        summary += f" · ${last.cost:.4f}"
    if len(turns) == 1:
        return summary
    if whole.cost:
        return f"{summary} · conversation ${whole.cost:.4f}"
    return f"{summary} · conversation {whole.prompt + whole.completion:,} tokens"


def cache_lines(caches: Sequence[CacheInfo]) -> list[Line]:
    """Return the size and location of each cache."""
    lines: list[Line] = []
    for cache in caches:
        lines.append((f"{line(cache.what)}: {line(cache.amount)}", "$foreground"))
        if cache.where:
            lines.append((f"  {shortened(cache.where, 300)}", "$quiet"))
    return lines


def plugin_lines(matches: PluginMatches) -> list[Line]:
    """Return the matching community plugins with their state in the vault."""
    lines: list[Line] = []
    for match in matches.items:
        plugin = match.plugin
        lines += [
            (f"{shortened(plugin.name, 100)}{_plugin_state(match)}", "bold"),
            (f"  {shortened(plugin.description, 300)}", "$foreground"),
            (f"  by {shortened(plugin.author, 80)} · {shortened(plugin.url, 200)}", "$quiet"),
            ("", ""),
        ]
    if not lines:
        lines = [("No plugin matches these words.", "$quiet"), ("", "")]
    age = f"The list was downloaded on {matches.fetched_at:%Y-%m-%d at %H:%M}"
    if matches.stale:
        age += " and could not be updated"
    return [*lines, (f"{age}. Install plugins in Obsidian.", "$quiet")]


def _plugin_state(match: PluginMatch) -> str:
    if match.enabled:
        return "  ✓ on"
    return "  installed, off" if match.installed else ""


def describe_step(step: StepOutcome) -> str:
    """Describe the outcome of a step: `◐ Tag the notes: partly applied, 120 of 390 changes`."""
    text = f"{STEP_SIGNS[step.state][0]} {step.text}: {step.state}"
    if step.state != "partly applied":
        return text
    return f"{text}, {step.in_effect:,} of {counted(step.changes, 'change')}"
