"""The health of the vault: its findings by kind, and their repairs as one plan."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace
from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.errors import ConfigError
from obsidian_agent.services.fields import Field
from obsidian_agent.tui.bindings import binding, bindings, key_label
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.dialogs import ChoiceScreen, Modal, numbered
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.widgets.note import OutsideRequested
from obsidian_agent.tui.widgets.row_list import Choice, VirtualList

if TYPE_CHECKING:
    from obsidian_agent.health.finding import FindingKind, HealthFinding, Repair, RepairChoice
    from obsidian_agent.services.health import Checkup, VaultHealth
    from obsidian_agent.services.session import Session

KIND_TITLES: Final[Mapping[str, str]] = {
    "unresolved-link": "broken links",
    "ambiguous-link": "ambiguous links",
    "unlinked-note": "notes without links",
    "empty-note": "empty notes",
    "duplicate-note": "duplicate notes",
    "similar-note": "similar notes",
    "tag-spelling": "tag spellings",
    "property-type": "property types",
    "property-value": "property values",
    "unused-attachment": "unused attachments",
    "missing-attachment": "missing attachments",
    "invalid-properties": "invalid properties",
    "conflict-copy": "sync conflicts",
    "stale-note": "untouched notes",
    "overdue-task": "overdue tasks",
}

_IGNORED: Final = "ignored"
_GROUP_TITLES: Final[Mapping[str, str]] = {**KIND_TITLES, _IGNORED: "ignored"}
_OPEN_NOTE: Final = "Open the note"
_DELETES: Final = "vault.delete"
_FIRST_IS_LIKELY: Final = frozenset(("unlinked-note", "duplicate-note", "overdue-task"))
"""Kinds whose first choice will do for most findings. Of other choices the user picks one."""
_MAX_PATH: Final = 44
_TICKS: Final = {True: ("☑", "$success"), False: ("☐", "$foreground")}


class HealthRequest(Struct, frozen=True, kw_only=True):
    """A plan of repairs to preview, or a note to open at a line (from 1)."""

    plan: Mapping[str, Any] | None = None
    path: str = ""
    line: int | None = None


class KindRow(Struct, frozen=True, kw_only=True):
    """The heading of a kind of findings, or of the ignored ones, which folds them."""

    kind: str
    count: int
    repairs: int
    ticked: int
    is_open: bool


class FindingRow(Struct, frozen=True, kw_only=True):
    """Equal findings in several places, or one finding, with the repair that is ticked, if any.

    `path_width` aligns the rows of a kind. `text` is empty if it is the same for all of them.
    `ticked` counts the findings with a ticked repair, which is in `repair` if all have the same.
    `is_part` places the row below that of its equals. `reason` is why the finding is ignored, None
    if it is not.
    """

    findings: tuple[HealthFinding, ...]
    repair: RepairChoice | None
    ticked: int
    path_width: int
    text: str
    is_open: bool = False
    is_part: bool = False
    reason: str | None = None

    @property
    def finding(self) -> HealthFinding:
        """The first finding, whose text and repairs are those of all."""
        return self.findings[0]

    @property
    def location(self) -> str:
        """The place of the finding, or the number of places."""
        if len(self.findings) == 1:
            return _location(self.finding)
        return f"{len(self.findings):,} places {'▾' if self.is_open else '▸'}"


class HealthList(VirtualList["KindRow | FindingRow"], inherit_bindings=False):
    """The kinds of findings, and below an open one its findings."""

    BINDINGS = [
        *bindings("list", without=("list.choose", "list.previous")),
        binding("list.choose", "Choose"),
    ]

    def draw_row(self, row: KindRow | FindingRow, width: int) -> Content:
        if isinstance(row, KindRow):
            return _kind_content(row)
        return _finding_content(row, width)

    def action_section(self, direction: int) -> None:
        """Move to the next or previous kind."""
        index = self.cursor + direction
        while 0 <= index < len(self.rows):
            if isinstance(self.rows[index], KindRow):
                self.cursor = index
                return
            index += direction


def _kind_content(row: KindRow) -> Content:
    parts = []
    if row.repairs:
        parts.append(f"{row.repairs:,} with a repair")
    if row.ticked:
        parts.append(f"{row.ticked:,} ticked")
    return Content.assemble(
        (" ▾ " if row.is_open else " ▸ ", "$primary"),
        (f"{_GROUP_TITLES[row.kind]:<22}", "bold"),
        (f"{row.count:>6,}", "$foreground"),
        (f"   {' · '.join(parts)}", "$quiet"),
    )


def _finding_content(row: FindingRow, width: int) -> Content:
    finding, repair = row.finding, row.finding.repair
    if row.reason is not None:
        repair = None
    tick, style = ("·", "$quiet") if repair is None else _TICKS[row.repair is not None]
    indent = "     " if row.is_part else "   "
    path_width = min(row.path_width, _MAX_PATH if row.text else _MAX_PATH * 2, width // 2)
    path = _shortened_path(terminal_text.line(row.location), path_width)
    text, evidence = row.text, finding.evidence if row.reason is None else row.reason
    if row.repair is not None and finding.subject in row.repair.title:
        text = row.repair.title
    elif row.repair is not None:
        evidence = row.repair.title
    if repair is not None and row.repair is None:
        count = len(repair.choices)
        evidence = repair.choices[0].title if count == 1 else f"{count} choices"
        if row.ticked:
            evidence = f"{row.ticked:,} ticked"
    return Content.assemble(
        (f"{indent}{tick} ", style),
        (f"{path:<{path_width}}  ", "$quiet"),
        (f"{terminal_text.shortened(text, 200)}  " if text else "", "$foreground"),
        (terminal_text.shortened(evidence, 200), "$quiet"),
    )


def _shortened_path(path: str, width: int) -> str:
    """Return a path that keeps its end, where the name and the line are."""
    return path if len(path) <= width else f"…{path[len(path) - width + 1 :]}"


def _location(finding: HealthFinding) -> str:
    return finding.path if finding.line is None else f"{finding.path}:{finding.line}"


class Health(Modal[HealthRequest]):
    """The findings of an examination. Dismisses with the user's request.

    With `only` it examines these kinds.
    """

    BINDINGS = bindings("health")

    class Progressed(Message):
        """Posted when a check has finished."""

        def __init__(self, done: int, total: int) -> None:
            super().__init__()
            self.done = done
            self.total = total

    def __init__(
        self, session: Session, health: VaultHealth, only: Sequence[FindingKind] = ()
    ) -> None:
        subject = ", ".join(KIND_TITLES[kind] for kind in only)
        title = f"Health of {session.vault.name}"
        super().__init__(f"{title}: {subject}" if subject else title)
        self._session = session
        self._health = health
        self._only = only
        self._checkup: Checkup | None = None
        self._all: list[HealthFinding] = []
        self._reasons: dict[str, str] = {}
        """The reasons of ignored findings by their ids."""
        self._ticks: dict[str, int] = {}
        """The numbers of the ticked repairs by the ids of findings."""
        self._open_kinds: set[str] = set(only)
        self._open_equals: set[str] = set()
        """The first ids of equal findings that are listed one by one."""
        self._may_delete = False
        self._is_cancelled = threading.Event()

    def body(self) -> ComposeResult:
        yield HealthList(empty=" Reading the vault…")
        yield Static("", id="health-detail", markup=False)

    def on_mount(self) -> None:
        self.query_one(HealthList).focus()
        self.run_flow("health", self._examine)

    def on_unmount(self) -> None:
        self._is_cancelled.set()

    # --- examination ------------------------------------------------------------------------------

    async def _examine(self) -> None:
        from obsidian_agent.health.finding import in_order

        self._checkup = await asyncio.to_thread(self._examined)
        self._reasons = await asyncio.to_thread(self._health.record.ignored)
        self._may_delete = await asyncio.to_thread(self._deletes_allowed)
        report = self._checkup.report
        self._all = sorted(in_order([*report.findings, *report.ignored]), key=_by_repair)
        self._ticks = {
            finding.id: 0
            for finding in self._findings
            if finding.repair is not None
            and finding.repair.preselected
            and self._is_allowed(finding.repair.choices[0])
        }
        kinds = {finding.kind for finding in self._findings}
        if len(kinds) == 1:
            self._open_kinds |= kinds
        if not self.is_attached:
            return
        self.query_one(HealthList).empty = " No findings."
        self._show()

    def _examined(self) -> Checkup:
        from obsidian_agent.health.finding import KINDS

        def progress(done: int, total: int) -> None:
            if self._is_cancelled.is_set():
                raise ConfigError("The examination was cancelled.")
            self.post_message(self.Progressed(done, total))

        vault = self._session.vault
        return self._health.examine(
            vault.view(), vault.clock(), only=self._only or KINDS, progress=progress
        )

    def _deletes_allowed(self) -> bool:
        plans = self._session.plans
        return not any(plans.policy().step_problems(plans.tools[_DELETES]))

    def on_health_progressed(self, event: Progressed) -> None:
        if self._checkup is None:
            listing = self.query_one(HealthList)
            listing.empty = f" Examining… {event.done} of {event.total} checks."
            listing.refresh()

    @property
    def _findings(self) -> list[HealthFinding]:
        """The findings that are not ignored."""
        return [finding for finding in self._all if finding.id not in self._reasons]

    @property
    def _ignored(self) -> list[HealthFinding]:
        """The ignored findings."""
        return [finding for finding in self._all if finding.id in self._reasons]

    # --- content ----------------------------------------------------------------------------------

    def _show(self) -> None:
        """Show the findings. The cursor stays on its finding, or on its kind."""
        listing = self.query_one(HealthList)
        before = _identity(listing.current)
        rows = list(self._rows())
        identities = [_identity(row) for row in rows]
        cursor = identities.index(before) if before in identities else None
        listing.set_rows(rows, cursor)
        title = self.query_one("#modal-title", Static)
        title.update(
            Content.assemble(
                (terminal_text.line(self.heading), "bold"), (f"   {self._summary()}", "$quiet")
            )
        )

    def _rows(self) -> Iterable[KindRow | FindingRow]:
        groups: dict[str, list[HealthFinding]] = {kind: [] for kind in KIND_TITLES}
        for finding in self._findings:
            groups[finding.kind].append(finding)
        for kind, findings in groups.items():
            yield from self._group(kind, findings)
        yield from self._group(_IGNORED, self._ignored)

    def _group(
        self, kind: str, findings: Sequence[HealthFinding]
    ) -> Iterable[KindRow | FindingRow]:
        if not findings:
            return
        is_ignored, is_open = kind == _IGNORED, kind in self._open_kinds
        yield KindRow(
            kind=kind,
            count=len(findings),
            repairs=0 if is_ignored else sum(one.repair is not None for one in findings),
            ticked=sum(finding.id in self._ticks for finding in findings),
            is_open=is_open,
        )
        if not is_open:
            return
        equals = [[finding] for finding in findings] if is_ignored else _equals(findings)
        rows = [self._row(group, group[0].id in self._open_equals) for group in equals]
        width = max(len(_location(finding)) for finding in findings)
        is_same = len({row.text for row in rows}) == 1 < len(rows)
        for row in rows:
            text = "" if is_same else row.text
            reason = self._reasons.get(row.finding.id, "") if is_ignored else None
            yield replace(row, path_width=width, text=text, reason=reason)
            if row.is_open:
                for finding in row.findings:
                    yield replace(self._row([finding]), path_width=width, text="", is_part=True)

    def _row(self, findings: Sequence[HealthFinding], is_open: bool = False) -> FindingRow:
        ticked = [repair for one in findings if (repair := self._ticked_repair(one)) is not None]
        is_one = len(ticked) == len(findings) and len({repair.title for repair in ticked}) == 1
        return FindingRow(
            findings=tuple(findings),
            repair=ticked[0] if is_one else None,
            ticked=len(ticked),
            path_width=0,
            text=findings[0].text,
            is_open=is_open,
        )

    def _ticked_repair(self, finding: HealthFinding) -> RepairChoice | None:
        number = self._ticks.get(finding.id)
        if number is None or finding.repair is None:
            return None
        return finding.repair.choices[number]

    def _summary(self) -> str:
        findings, ignored = self._findings, self._ignored
        total = len(findings)
        repairs = sum(finding.repair is not None for finding in findings)
        parts = [terminal_text.counted(total, "finding") if total else "no findings"]
        if repairs:
            parts.append(f"{repairs:,} with a repair")
            parts.append(f"{len(self._ticks):,} ticked")
        if self._checkup is not None and self._checkup.earlier is not None and not self._only:
            day, count = self._checkup.earlier
            change = total - count
            if change:
                comparison = "more" if change > 0 else "fewer"
                parts.append(f"{abs(change):,} {comparison} than on {day}")
        if ignored:
            parts.append(f"{len(ignored):,} ignored")
        return " · ".join(parts)

    def on_virtual_list_highlighted(self) -> None:
        row = self.query_one(HealthList).current
        detail = self.query_one("#health-detail", Static)
        detail.update(_detail(row) if isinstance(row, FindingRow) else "")

    # --- keys -------------------------------------------------------------------------------------

    def on_virtual_list_chosen(self, event: HealthList.Chosen) -> None:
        row = event.row
        self.show_problem("")
        if isinstance(row, KindRow):
            self._open_kinds ^= {row.kind}
            self._show()
        elif len(row.findings) > 1:
            self._open_equals ^= {row.finding.id}
            self._show()
        elif _has_choices(row):
            self.run_flow("choice", partial(self._choose, row.findings))
        else:
            self._open_note(row.finding)

    async def _choose(self, findings: Sequence[HealthFinding]) -> None:
        """Let the user choose a repair of equal findings, or open the note of one."""
        finding = findings[0]
        choices = finding.repair.choices if finding.repair is not None else ()
        rows = [Choice(str(number), choice.title) for number, choice in enumerate(choices)]
        if len(findings) == 1:
            rows.append(Choice(_OPEN_NOTE, _OPEN_NOTE, _location(finding)))
        title, hint = finding.text, finding.evidence
        if len(findings) > 1:
            title = f"{finding.text} The repair is for all {len(findings):,} places."
        key = await self.app.push_screen_wait(ChoiceScreen(title, numbered(rows), hint=hint))
        if key == _OPEN_NOTE:
            self._open_note(finding)
        elif key is not None:
            self._tick(findings, int(key))

    def on_key(self, event: events.Key) -> None:
        """Choose the repair with the number that was pressed, and go on to the next finding."""
        row = self.query_one(HealthList).current
        if not event.key.isdecimal() or not isinstance(row, FindingRow):
            return
        event.stop()
        self.show_problem("")
        choices = row.finding.repair.choices if row.finding.repair is not None else ()
        if row.reason is not None:
            self.show_problem(self._hint_of_ignored())
        elif 0 < int(event.key) <= len(choices):
            self._tick(row.findings, int(event.key) - 1)
            self.query_one(HealthList).action_cursor(1)
        else:
            self.show_problem(f"This finding has no repair {event.key}.")

    def _open_note(self, finding: HealthFinding) -> None:
        if finding.path.endswith(".md"):
            self.dismiss(HealthRequest(path=finding.path, line=finding.line))
        else:
            key = key_label(self, "health.outside")
            self.show_problem(f"This file is not a note. {key} opens it in Obsidian.")

    def action_outside(self) -> None:
        row = self.query_one(HealthList).current
        if isinstance(row, FindingRow):
            self.post_message(OutsideRequested(row.finding.path, row.finding.line))

    def action_tick(self) -> None:
        row = self.query_one(HealthList).current
        self.show_problem("")
        if isinstance(row, KindRow):
            self._tick_kind(row.kind)
        elif isinstance(row, FindingRow):
            if row.reason is not None:
                self.show_problem(self._hint_of_ignored())
            elif row.repair is not None:
                self._untick(row.findings)
            elif row.finding.repair is None:
                self.show_problem("This finding has no repair. Enter opens the note.")
            elif _is_clear(row.finding):
                self._tick(row.findings, 0)
            else:
                self.run_flow("choice", partial(self._choose, row.findings))

    def _hint_of_ignored(self) -> str:
        key = key_label(self, "health.ignore")
        return f"Ignored findings are not repaired. {key} reports one again."

    def _tick_kind(self, kind: str) -> None:
        if kind == _IGNORED:
            self.show_problem(self._hint_of_ignored())
            return
        likely = [
            finding for finding in self._findings if finding.kind == kind and _is_likely(finding)
        ]
        if not likely:
            self.show_problem("These findings have no likely repair. Enter lists them.")
        elif all(finding.id in self._ticks for finding in likely):
            self._untick(likely)
        else:
            self._tick([finding for finding in likely if finding.id not in self._ticks], 0)

    def _untick(self, findings: Sequence[HealthFinding]) -> None:
        for finding in findings:
            del self._ticks[finding.id]
        self._show()

    def _tick(self, findings: Sequence[HealthFinding], number: int) -> None:
        """Tick the repair with this number of findings, unless the settings do not allow it."""
        refused = 0
        for finding in findings:
            assert finding.repair is not None
            if self._is_allowed(finding.repair.choices[number]):
                self._ticks[finding.id] = number
            else:
                refused += 1
        if refused:
            repairs = terminal_text.counted(refused, "repair")
            self.show_problem(
                f"{repairs} not ticked: files would be deleted, which your settings do not allow. "
                f"“Allow deletes” in the settings ({key_label(self, 'main.settings')}) changes it."
            )
        self._show()

    def _is_allowed(self, choice: RepairChoice) -> bool:
        return self._may_delete or all(step.tool != _DELETES for step in choice.steps)

    def action_ignore(self) -> None:
        row = self.query_one(HealthList).current
        self.show_problem("")
        if isinstance(row, FindingRow):
            change = self._ignore if row.reason is None else self._unignore
            self.run_flow("ignore", partial(change, row.findings))

    async def _ignore(self, findings: Sequence[HealthFinding]) -> None:
        field = Field("reason", description="Why it may stay; can be left blank", optional=True)
        values = await self.app.push_screen_wait(ValuesForm("Ignore this finding", [field]))
        if values is None:
            return
        reason = values.get("reason", "").strip()
        for finding in findings:
            try:
                await asyncio.to_thread(self._health.record.ignore, finding.id, reason)
            except OSError as error:
                self.show_problem(f"The finding cannot be ignored: {error.strerror}.")
                break
            self._ticks.pop(finding.id, None)
            self._reasons[finding.id] = reason
        self._show()

    async def _unignore(self, findings: Sequence[HealthFinding]) -> None:
        for finding in findings:
            try:
                await asyncio.to_thread(self._health.record.unignore, finding.id)
            except OSError as error:
                self.show_problem(f"The finding is still ignored: {error.strerror}.")
                break
            self._reasons.pop(finding.id, None)
        self._show()

    def action_preview(self) -> None:
        from obsidian_agent.health.repair_plan import repair_plan

        choices = [self._ticked_repair(finding) for finding in self._findings]
        plan = repair_plan(choice for choice in choices if choice is not None)
        if plan is None:
            key = key_label(self, "health.tick")
            self.show_problem(f"No repair is ticked. {key} ticks one.")
        else:
            self.dismiss(HealthRequest(plan=plan))


def _equals(findings: Iterable[HealthFinding]) -> list[list[HealthFinding]]:
    """Group findings about one subject, with the same text and the same repairs."""
    groups: dict[object, list[HealthFinding]] = {}
    for finding in findings:
        key: object = finding.id
        if finding.subject:
            repair = finding.repair
            titles = () if repair is None else tuple(choice.title for choice in repair.choices)
            is_clear = repair is not None and repair.preselected
            key = (finding.text, finding.evidence, titles, is_clear)
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def _by_repair(finding: HealthFinding) -> int:
    """Sort findings with evidence for one repair first, and those without a repair last."""
    if finding.repair is None:
        return 2
    return 0 if finding.repair.preselected else 1


def _is_clear(finding: HealthFinding) -> bool:
    """Return True if a finding has one repair, or evidence for its first one."""
    repair = finding.repair
    return repair is not None and (repair.preselected or len(repair.choices) == 1)


def _is_likely(finding: HealthFinding) -> bool:
    """Return True if the first repair of a finding is ticked with its whole kind."""
    if finding.repair is None:
        return False
    return _is_clear(finding) or (finding.kind in _FIRST_IS_LIKELY and bool(finding.evidence))


def _has_choices(row: FindingRow) -> bool:
    """Return True if the user can choose between repairs of a finding."""
    repair = row.finding.repair
    return row.reason is None and repair is not None and len(repair.choices) > 1


def _identity(row: KindRow | FindingRow | None) -> str:
    if isinstance(row, FindingRow):
        return f"{row.finding.id} part" if row.is_part else row.finding.id
    return row.kind if row is not None else ""


def _detail(row: FindingRow) -> Content:
    """Return everything about a finding, on at most five lines."""
    finding, repair = row.finding, row.finding.repair
    lines = [
        Content.styled(
            terminal_text.shortened(", ".join(map(_location, row.findings)), 300), "$foreground"
        ),
        Content(terminal_text.shortened(finding.text, 300)),
    ]
    if finding.evidence:
        lines.append(Content(f"Evidence: {terminal_text.shortened(finding.evidence, 300)}"))
    if row.reason is not None:
        reason = f": {terminal_text.shortened(row.reason, 300)}" if row.reason else ""
        lines.append(Content(f"Ignored{reason}"))
    elif repair is not None:
        lines.append(Content("  ").join(_choice_contents(repair, row.repair)))
    return Content("\n").join(lines)


def _choice_contents(repair: Repair, ticked: RepairChoice | None) -> Iterable[Content]:
    """Yield the numbered choices of a repair."""
    for number, choice in enumerate(repair.choices, 1):
        mark, style = _TICKS[choice == ticked]
        title = terminal_text.shortened(choice.title, 300)
        yield Content.assemble((f"{number} ", "$primary"), (f"{mark} {title}", style))


class HealthActions(Workspace):
    """The action that shows the health of the vault."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command(
            "health",
            "Health of the vault",
            "Broken links, notes without links, duplicates and more, with repairs",
            "health",
            "[KIND]",
        ),
    )

    def action_health(self, kind: str = "") -> None:
        """Examine the vault; with `kind` only for these findings."""
        from obsidian_agent.health.finding import KINDS

        only = [known for known in KINDS if kind in (known, KIND_TITLES[known])]
        if kind and not only:
            self.show_hint(f"No kind of finding is called that. Kinds: {', '.join(KINDS)}.")
        else:
            self.show_health(only)

    def show_health(self, kinds: Sequence[str] = ()) -> None:
        from obsidian_agent.health.finding import KINDS

        only = [kind for kind in KINDS if kind in kinds]
        self.app.push_screen(
            Health(self.session, self.services.health, only), self._carry_out_health
        )

    def _carry_out_health(self, request: HealthRequest | None) -> None:
        if request is None:
            return
        if request.plan is None:
            self.show_note(request.path, request.line)
        elif self.ensure_idle():
            self.preview_plan(request.plan)
