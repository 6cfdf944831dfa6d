"""The plan as JSON, to edit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from obsidian_agent.tui.screens.json_editor import JsonEditor


class PlanEditor(JsonEditor):
    """An edited plan is checked by its preview."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        head = "Edit the plan. It is checked and previewed again before anything can be approved."
        super().__init__(head, document, kept="The plan is as it was.")
