"""Exit codes of what did not come to a run."""

from __future__ import annotations

import pytest

from obsidian_agent.cli.exits import Exit, of_problems
from obsidian_agent.errors import Problem


@pytest.mark.parametrize(
    ("codes", "exit_code"),
    [
        ((), Exit.INVALID),
        (("DELETE_DISABLED",), Exit.NOT_APPROVED),
        (("DELETE_DISABLED", "COMMANDS_DISABLED"), Exit.NOT_APPROVED),
        (("DELETE_DISABLED", "FILE_NOT_FOUND"), Exit.INVALID),
    ],
)
def test_only_a_plan_that_lacks_nothing_but_permissions_is_not_approved(codes: tuple[str, ...], exit_code: Exit) -> None:
    assert of_problems([Problem(code, "No.") for code in codes]) is exit_code
