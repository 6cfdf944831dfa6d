"""The choice among the readings of a message. Missing values are filled in place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.bindings import BY_ID, bindings, key_label
from obsidian_agent.tui.plan_rows import change_counts
from obsidian_agent.tui.screens.dialogs import Modal
from obsidian_agent.tui.widgets.prompt import LineEntry, Suggestion, Suggestions

if TYPE_CHECKING:
    from obsidian_agent.agent.events import Candidate, UnknownName
    from obsidian_agent.services.form import Form
    from obsidian_agent.services.session import Session

MAX_CANDIDATES: Final = 3
"""Number of candidates to choose from."""
TYPING_PAUSE: Final = 0.15
"""Seconds without a key after which a value is checked."""
NARROW: Final = 76
"""Columns of a row below which its remark is on a line of its own."""
_GAP: Final = 8
"""Columns of an empty gap."""


class PickedCandidate(Struct, frozen=True):
    """The candidate that the user picked, `None` for the list of all actions."""

    candidate: Candidate | None
    values: Mapping[str, str] = {}
    """The values that were filled in."""
    change: bool = False
    """Show the form even if no value is missing."""


class Gap(LineEntry):
    """A value of a sentence that is missing, or a name to check."""

    BINDINGS = [
        replace(BY_ID[f"candidates.{name}"], action=f"screen.{action}").binding()
        for name, action in (("choose", "choose"), ("form", "change(True)"))
    ]

    def __init__(self, name: str, value: str) -> None:
        super().__init__(value, placeholder="▁" * _GAP, select_on_focus=False)
        self.input = name
        self.cursor_blink = False

    class Names(Message):
        """A request for the names that begin like the value."""

    def on_key(self, event: events.Key) -> None:
        if self.screen.query_one(Suggestions).press_key(event.key, self.value):
            event.stop()
            event.prevent_default()
        elif event.key == "down" and self.value:
            event.stop()
            self.post_message(self.Names())
        elif event.key == "enter":
            # Its binding is off while the gap is empty.
            event.stop()
            self.post_message(self.Submitted(self, self.value))


class CandidateRow(Horizontal):
    """One reading as a sentence; `None` is the row that leads to all actions."""

    def __init__(self, number: int, candidate: Candidate | None, width: int) -> None:
        super().__init__()
        self._number = number
        self.candidate = candidate
        self._width = width
        self.unknown: Mapping[str, UnknownName] = (
            {} if candidate is None else {name.input: name for name in candidate.unknown}
        )
        self._remark = Content("")
        if candidate is not None and candidate.news:
            self._remark = Content.styled(_line(", ".join(candidate.news)), "$warning")

    @property
    def gaps(self) -> list[Gap]:
        """The gaps of the sentence, in order."""
        return list(self.query(Gap))

    @property
    def texts(self) -> dict[str, str]:
        """The texts in the gaps."""
        return {gap.input: gap.value for gap in self.gaps}

    def compose(self) -> ComposeResult:
        if self.candidate is None:
            actions = key_label(self, "main.saved")
            yield Static(" ─", classes="number")
            yield Static(f"none of these: all actions ({actions})", classes="none")
            return
        yield Static(f" {self._number}", classes="number")
        pieces = list(self._pieces(self.candidate))
        if len(pieces) == 1:
            yield Static("", classes="sentence", markup=False)
            yield Static("", classes="remark", markup=False)
        else:
            for piece in _fitting(pieces, self._width - 4):
                yield piece if isinstance(piece, Gap) else Static(piece, markup=False)
            yield Static("", classes="remark -rest", markup=False)

    def on_mount(self) -> None:
        self.show_remark(self._remark)

    def show_remark(self, remark: Content) -> None:
        """Show what matters about the reading, at the right or below it."""
        self._remark = remark
        if self.candidate is None:
            return
        is_beside = self._width >= NARROW
        if self.query(".sentence"):
            (sentence,) = self._pieces(self.candidate)
            assert isinstance(sentence, Content)
            below = Content("\n").join([sentence, remark]) if remark and not is_beside else sentence
            self.query_one(".sentence", Static).update(below)
        # A row that is being removed has lost its parts one by one.
        for part in self.query(".remark").results(Static):
            part.update(remark if is_beside else "")

    def _pieces(self, candidate: Candidate) -> Iterator[Content | Gap]:
        """Yield the runs of text of the sentence, and its gaps."""
        run: list[tuple[str, str]] = []
        for phrase in candidate.sentence or (_Text(candidate.title),):
            unknown = self.unknown.get(phrase.input) if phrase.input else None
            if phrase.input and (unknown is not None or not phrase.text):
                if run:
                    yield Content.assemble(*run)
                run = []
                yield Gap(phrase.input, unknown.text if unknown is not None else "")
                continue
            style = "bold $foreground" if phrase.input else "$foreground"
            if phrase.input and candidate.deletes:
                style = "bold $error"
            run.append((_line(phrase.text), style))
        if run:
            yield Content.assemble(*run)


class _Text(Struct, frozen=True):
    """A sentence that is not known in parts."""

    text: str
    input: str = ""


class CandidateList(VerticalScroll, can_focus=True):
    """The rows; it has the focus while no gap has it."""


class Candidates(Modal[PickedCandidate]):
    """The choice among candidates. Picking one runs nothing: a preview follows.

    `thinking` names a model that is still choosing. With `session`, values are checked, names are
    completed, and each candidate is tried without writing, to show what it would change.
    """

    BINDINGS = bindings("candidates")
    AUTO_FOCUS = None
    ONLY_PREVIEWS = True

    def __init__(
        self,
        message: str,
        candidates: Sequence[Candidate],
        session: Session | None = None,
        *,
        remark: str = "",
        thinking: str = "",
    ) -> None:
        super().__init__(terminal_text.folded(message, 3) or "What did you mean?")
        self._session = session
        self._candidates = tuple(candidates[:MAX_CANDIDATES])
        self._remark = remark
        self.thinking = thinking
        """The model that still chooses; "" if none does."""
        self._forms: dict[str, Form] = {}
        self._current = 0
        self._has_moved = False

    def body(self) -> ComposeResult:
        yield Static("", id="candidates-remark", markup=False)
        yield CandidateList(id="candidates")
        yield Static("", id="candidates-detail", markup=False)
        yield Suggestions()

    async def on_mount(self) -> None:
        await self._draw()

    # --- rows -------------------------------------------------------------------------------------

    @property
    def rows(self) -> list[CandidateRow]:
        """The rows of the candidates, and the one that leads to all actions."""
        return list(self.query(CandidateRow))

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The candidates to choose from."""
        return self._candidates

    @property
    def titles(self) -> list[str]:
        """The titles of the candidates."""
        return [candidate.title for candidate in self._candidates]

    @property
    def row(self) -> CandidateRow:
        """The row under the cursor."""
        return self.rows[self._current]

    def replace(self, candidates: Sequence[Candidate], remark: str = "") -> None:
        """Replace the candidates, as the model has chosen. A row that the user moved to stays."""
        self.thinking, self._remark = "", remark
        old, self._candidates = self._candidates, tuple(candidates[:MAX_CANDIDATES])
        rows = self.rows
        texts = rows[self._current].texts if self._current < len(rows) else {}
        current = old[self._current] if self._current < len(old) else None
        if not self._has_moved or current is None:
            self._current = 0
        elif current in self._candidates:
            self._current = self._candidates.index(current)
        else:
            self._current, texts = 0, {}
        if self.is_running:
            # In turn with keys and with the first drawing, which may still be under way.
            self.call_later(self._draw, texts)

    async def _draw(self, texts: Mapping[str, str] = {}) -> None:
        """Show the current candidates; `texts` are those typed into the gaps of the current row."""
        remark = self._remark
        if self.thinking:
            remark = (
                f"{terminal_text.shortened(self.thinking, 40)} is choosing, too. "
                "Its choice will appear at the top."
            )
        label = self.query_one("#candidates-remark", Static)
        label.update(Content(terminal_text.folded(remark, 4)))
        label.display = bool(remark)
        listing = self.query_one(CandidateList)
        await listing.remove_children()
        width = min(116, self.app.size.width * 94 // 100) - 7
        rows = [
            CandidateRow(number, candidate, width)
            for number, candidate in enumerate((*self._candidates, None), 1)
        ]
        await listing.mount_all(rows)
        for gap in self.row.gaps:
            gap.value = texts.get(gap.input, gap.value)
        self._go(self._current)
        if self._session is not None:
            self.run_flow("effects", self._try_all, exclusive=True)

    def _go(self, index: int) -> None:
        """Move to a row, into its first gap that needs a value."""
        self._current = index
        for number, row in enumerate(self.rows):
            row.set_class(number == index, "-current")
        row = self.row
        gaps = [gap for gap in row.gaps if not gap.value or gap.input in row.unknown]
        (gaps[0] if gaps else self.query_one(CandidateList)).focus()
        row.scroll_visible(animate=False)
        self._show_detail()
        self.refresh_bindings()

    def _show_detail(self) -> None:
        self._draw_detail()
        self._offer_names()

    def _draw_detail(self) -> None:
        """Show what the reading under the cursor lacks, and what speaks against it."""
        candidate = self.row.candidate
        parts: list[tuple[str, str]] = []
        if candidate is not None:
            if (gap := self._empty_gap) is not None:
                form = self._forms.get(candidate.recipe)
                name = gap.input if form is None else form.recipe.inputs[gap.input].description
                parts.append((f"missing: {_line(name)}. Type it into the gap.\n", "$quiet"))
            if candidate.unused:
                texts = " and ".join(f"“{_line(text)}”" for text in candidate.unused)
                parts.append((f"not used: {texts}\n", "$error"))
            parts += (
                (f"no {name.kind} is called “{_line(name.text)}”\n", "$error")
                for name in candidate.unknown
            )
            parts += ((f"{_line(doubt)}\n", "$warning") for doubt in candidate.doubts)
        detail = self.query_one("#candidates-detail", Static)
        detail.update(Content.assemble(*parts).rstrip())
        detail.display = bool(parts)

    # --- what each would do -----------------------------------------------------------------------

    async def _try_all(self) -> None:
        """Try each complete candidate without writing, and show what it would change."""
        for row in self.rows:
            candidate = row.candidate
            if candidate is None or candidate.plan is None or self._session is None:
                continue
            plan = candidate.plan.to_json()
            try:
                preview = await asyncio.to_thread(self._session.plans.dry_run, plan)
            except ObsidianAgentError:
                continue
            if not (self.is_attached and row.is_attached):
                return
            if preview.errors:
                row.show_remark(Content.styled(_line(preview.errors[0].message), "$error"))
            elif not preview.change_set.changes:
                row.show_remark(Content.styled("changes nothing", "$warning"))
            elif not candidate.news:
                counts = " · ".join(text for _, text in change_counts(preview.change_set))
                row.show_remark(Content.styled(counts, "$quiet"))

    # --- values -----------------------------------------------------------------------------------

    def on_descendant_focus(self) -> None:
        focused = self.focused
        if isinstance(focused, Gap):
            row = next(row for row in self.rows if focused in row.gaps)
            if row is not self.row:
                self._go(self.rows.index(row))
            if not focused.value:
                self.run_flow("check", partial(self._check, focused, 0.0), exclusive=True)
        self.set_class(isinstance(focused, Gap), "-typing")
        self.show_problem("")
        self._offer_names()
        self.refresh_bindings()

    def on_input_changed(self, event: Input.Changed) -> None:
        if isinstance(event.input, Gap) and event.input.has_focus:
            self._has_moved = True
            self.show_problem("")
            self._draw_detail()
            self.refresh_bindings()
            self.run_flow("check", partial(self._check, event.input), exclusive=True)

    def _offer_names(self, names: Sequence[Suggestion] = (), *, select: bool = False) -> None:
        """Offer names for the gap with the focus: at first those similar to an unknown one."""
        gap = self.focused
        unknown = self.row.unknown.get(gap.input) if isinstance(gap, Gap) else None
        if isinstance(gap, Gap) and unknown is not None and gap.value == unknown.text and not names:
            length = len(gap.value)
            names = [Suggestion(name, length, unknown.kind) for name in unknown.nearest]
        listing = self.query_one(Suggestions)
        listing.offer(names, gap.value if isinstance(gap, Gap) else "", preselect=select)

    def on_gap_names(self) -> None:
        if isinstance(self.focused, Gap):
            check = partial(self._check, self.focused, 0.0, select=True)
            self.run_flow("check", check, exclusive=True)

    async def _check(self, gap: Gap, pause: float = TYPING_PAUSE, *, select: bool = False) -> None:
        """Show the meaning of a value, or its problem, and matching names.

        With `select` the first name is selected; without names the cursor moves on.
        """
        await asyncio.sleep(pause)
        row = self.row
        form = await self._form(row)
        if form is None or row.candidate is None:
            return
        texts = {**row.candidate.values, **row.texts}
        value = gap.value
        messages = await asyncio.to_thread(form.judge, texts)
        names = await asyncio.to_thread(form.complete, gap.input, value, texts) if value else ()
        if not (gap.is_attached and gap.value == value):
            return
        message = messages.get(gap.input)
        is_wrong = message is not None and message.wrong and bool(value)
        remark = message.text if message is not None and value else ""
        self._draw_detail()
        row.show_remark(Content.styled(_line(remark), "$error" if is_wrong else "$quiet"))
        if select and not names:
            self.action_move(1)
            return
        self._offer_names(
            [Suggestion(name.text, len(value), name.what) for name in names], select=select
        )

    async def _form(self, row: CandidateRow) -> Form | None:
        name = row.candidate.recipe if row.candidate is not None else ""
        if not name or self._session is None:
            return None
        if name not in self._forms:
            self._forms[name] = await asyncio.to_thread(self._session.form, name)
        return self._forms[name]

    def on_suggestions_accepted(self, event: Suggestions.Accepted) -> None:
        event.stop()
        gap = self.focused
        if isinstance(gap, Gap):
            gap.value = event.suggestion.insert
            gap.cursor_position = len(gap.value)
            gap.focus()

    # --- choosing ---------------------------------------------------------------------------------

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_choose()

    def on_click(self, event: events.Click) -> None:
        row = next((row for row in self.rows if event.widget in row.walk_children()), None)
        if row is None or isinstance(event.widget, Gap):
            return
        if row is self.row:
            self.action_choose()
        else:
            self._go(self.rows.index(row))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        is_typing = isinstance(self.focused, Gap)
        if action == "choose" and self.rows:
            return self._empty_gap is None or self._empty_gap is not self.focused
        if action == "change":
            return is_typing == bool(parameters[0]) and self._has_form
        return not (is_typing and action == "pick")

    @property
    def _has_form(self) -> bool:
        """False for a plan of several actions, or of a model."""
        candidate = self.row.candidate if self.rows else None
        return candidate is None or bool(candidate.recipe or candidate.missing)

    @property
    def _empty_gap(self) -> Gap | None:
        """The first gap under the cursor without a value."""
        return next((gap for gap in self.row.gaps if not gap.value.strip()), None)

    def action_move(self, step: int) -> None:
        """Move to the next or the previous row."""
        self._has_moved = True
        self._go((self._current + step) % len(self.rows))

    def action_stop(self, step: int) -> None:
        """Move to the next or the previous gap, or row without one."""
        gaps = self.row.gaps
        position = gaps.index(self.focused) + step if self.focused in gaps else len(gaps)
        if 0 <= position < len(gaps):
            gaps[position].focus()
        else:
            self.action_move(step)

    def action_pick(self, index: int) -> None:
        if index < len(self._candidates):
            self._go(index)
            self.action_choose()

    def action_choose(self) -> None:
        """Preview the reading under the cursor, or go to its next missing value."""
        if self.row.candidate is None:
            self.action_actions()
            return
        self.run_flow("check", partial(self._choose, self.row), exclusive=True)

    def action_change(self, typing: bool = False) -> None:
        """Show all values of the reading under the cursor in a form.

        `typing`: with the key that is not a letter, which a gap would take.
        """
        candidate = self.row.candidate
        if candidate is not None:
            self.dismiss(PickedCandidate(candidate, self._filled(self.row), change=True))

    def action_actions(self) -> None:
        """Show all actions instead."""
        self.dismiss(PickedCandidate(None))

    @staticmethod
    def _filled(row: CandidateRow) -> dict[str, str]:
        return {name: text for name, text in row.texts.items() if text.strip()}

    async def _choose(self, row: CandidateRow) -> None:
        candidate = row.candidate
        assert candidate is not None
        empty = [gap for gap in row.gaps if not gap.value.strip()]
        if empty:
            empty[0].focus()
            self.show_problem("Type the missing value into the gap first.")
            return
        texts = row.texts
        form = await self._form(row) if texts else None
        if form is not None:
            messages = await asyncio.to_thread(form.judge, {**candidate.values, **texts})
            for gap in row.gaps:
                message = messages.get(gap.input)
                if message is not None and message.wrong:
                    row.show_remark(Content.styled(_line(message.text), "$error"))
                    gap.focus()
                    return
        if self.is_attached and row.texts == texts:
            self.dismiss(PickedCandidate(candidate, texts))


def _line(text: str) -> str:
    return terminal_text.shortened(text, 300)


def _fitting(pieces: Sequence[Content | Gap], width: int) -> list[Content | Gap]:
    """Return the pieces of a sentence with gaps, the longest text shortened to fit on a line."""
    texts = [piece for piece in pieces if isinstance(piece, Content)]
    room = width - _GAP * (len(pieces) - len(texts)) - 2
    excess = sum(text.cell_length for text in texts) - room
    if excess <= 0 or not texts:
        return list(pieces)
    longest = max(texts, key=lambda text: text.cell_length)
    short = longest.truncate(max(_GAP, longest.cell_length - excess), ellipsis=True)
    return [short if piece is longest else piece for piece in pieces]
