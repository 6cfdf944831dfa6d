"""Work of widgets and screens that must not hold up the screen.

It belongs to the app, so that the app's one handler sees what goes wrong unexpectedly.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.widget import Widget
    from textual.worker import Worker


def in_background(widget: Widget, group: str, work: Callable[[], Coroutine[Any, Any, None]], *, exclusive: bool = False) -> Worker[None]:
    """Run `work` in a worker of the app. With `exclusive` an earlier one of the same group is cancelled.

    A callable, not a coroutine: one that is superseded before it starts is then never created.
    """
    worker: Worker[None] = widget.app.run_worker(work, group=group, exclusive=exclusive, exit_on_error=False)
    return worker
