"""Exit codes of what did not come to a run."""

from __future__ import annotations

import signal

import pytest

from obsidian_agent.cli.exits import Exit, interruptible, of_problems
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
def test_only_a_plan_that_lacks_nothing_but_permissions_is_not_approved(
    codes: tuple[str, ...], exit_code: Exit
) -> None:
    assert of_problems([Problem(code, "No.") for code in codes]) is exit_code


def test_the_first_ctrl_c_of_a_run_stops_after_the_file_and_the_second_at_once() -> None:
    with interruptible() as cancel:
        signal.raise_signal(signal.SIGINT)
        assert cancel.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
