from __future__ import annotations

import os
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from obsidian_agent.errors import ObsidianError
from obsidian_agent.obsidian.live import Obsidian, open_address
from obsidian_agent.obsidian.transport import ProgramTransport, Unreachable, find_program
from obsidian_stand_in import StandIn

ODD_PATHS = ["A & B.md", "C# notes.md", "100%.md", 'it\'s "odd".md', "a=b.md", "日本 🎉.md"]
NOT_FOR_THE_COMMAND_LINE = ["back\\slash.md", "two\nlines.md"]
"""Its values cannot hold these."""


def lines_of(log: Path) -> list[str]:
    end = time.monotonic() + 10
    while not (log.exists() and log.read_text().endswith("\n")) and time.monotonic() < end:
        time.sleep(0.02)
    return log.read_text().splitlines()


# --- what works ---


def test_the_companion_tells_selection_and_open_notes(
    running: StandIn, obsidian: Obsidian, folder: Path
) -> None:
    (folder / "Daily.md").write_text("one\ntwo 𝒳\n")
    running.open_note("Daily.md").text += "unsaved"
    running.select("Daily.md", (0, 0), (1, 6), "one\ntwo 𝒳")
    found = obsidian.context()
    assert found is not None
    assert (found.active, found.mode, found.selected, found.open) == (
        "Daily.md",
        "source",
        "one\ntwo 𝒳",
        ("Daily.md",),
    )
    assert found.selections[0].head.ch == 6
    assert found.hash is not None


def test_settling_saves_what_is_typed(running: StandIn, obsidian: Obsidian, folder: Path) -> None:
    (folder / "Daily.md").write_text("one\n")
    running.open_note("Daily.md").text = "one\nunsaved\n"
    settled, other = obsidian.companion().save(["Daily.md", "Other.md"])
    assert (settled.open, settled.saved, other.open) == (True, True, False)
    assert (folder / "Daily.md").read_text() == "one\nunsaved\n"


def test_watching_answers_when_something_happens_and_when_the_time_is_up(
    running: StandIn, obsidian: Obsidian
) -> None:
    companion = obsidian.companion()
    before = companion.context().version
    assert companion.watch(before, 0.05).version == before
    threading.Timer(0.1, running.bump).start()
    assert companion.watch(before, 10).version == before + 1


@pytest.mark.parametrize("path", [*ODD_PATHS, *NOT_FOR_THE_COMMAND_LINE])
@pytest.mark.parametrize("way", ["companion", "cli", "program", "uri"])
def test_a_file_with_an_odd_name_opens_and_nothing_else_by_every_way(
    running: StandIn,
    obsidian: Obsidian,
    desktop: Path,
    folder: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    way: str,
) -> None:
    running.companion = way == "companion"
    heard = home / "heard"
    if way in ("program", "uri"):
        running.place.unlink()
    if way == "program":
        program = home / "obsidian-cli"
        program.write_text(f"""#!/bin/sh
[ "$2" = vault ] && echo {folder} || printf '%s\\n' "$@" >> {heard}
""")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    by_address = way == "uri" or (way != "companion" and path in NOT_FOR_THE_COMMAND_LINE)
    by_program = "companion" if way == "companion" else "cli"
    assert obsidian.open(path, 3, new_pane=True) == ("uri" if by_address else by_program)
    if by_address:
        (address,) = lines_of(desktop)
        assert parse_qs(urlsplit(address).query)["path"] == [str(folder / path)]
        assert (running.opened, heard.exists() and "open" in heard.read_text().split()) == (
            [],
            False,
        )
    elif way == "program":
        assert heard.read_text().splitlines()[-3:] == ["open", f"path={path}", "newtab"]
    else:
        assert running.opened == [(path, 3 if way == "companion" else None, True)]


def test_an_address_can_ask_for_a_pane() -> None:
    assert (
        open_address("/v/a b.md", new_pane=True)
        == "obsidian://open?path=%2Fv%2Fa%20b.md&paneType=split"
    )


@pytest.mark.parametrize(
    "id",
    ["editor:toggle-bold", 'quickadd:choice:it\'s "odd" $(x) ; & #', "a:b=c d", "日本:100% `x`"],
)
@pytest.mark.parametrize("companion", [True, False])
def test_only_the_command_that_was_named_runs(
    running: StandIn, obsidian: Obsidian, id: str, *, companion: bool
) -> None:
    running.companion = companion
    running.commands = [(id, "Odd one")]
    shown = next(command for command in obsidian.commands() if command.id == id)
    obsidian.run(shown.id, shown.name)
    assert running.ran == [id]


def test_a_command_with_another_name_than_was_shown_does_not_run(
    running: StandIn, obsidian: Obsidian
) -> None:
    with pytest.raises(ObsidianError) as refused:
        obsidian.run("editor:toggle-bold", "Toggle italics")
    assert (refused.value.code, running.ran) == ("STALE", [])


def test_a_command_that_obsidian_does_not_execute_is_an_error(
    running: StandIn, obsidian: Obsidian
) -> None:
    running.commands.append(("unready:x", "Not now"))
    with pytest.raises(ObsidianError, match="did not execute"):
        obsidian.run("unready:x", "Not now")


@pytest.mark.parametrize("companion", [True, False])
def test_an_unknown_command_is_an_error(
    running: StandIn, obsidian: Obsidian, *, companion: bool
) -> None:
    running.companion = companion
    with pytest.raises(ObsidianError) as refused:
        obsidian.run("no:such", "No such")
    assert (refused.value.code, running.ran) == ("COMMAND_NOT_FOUND", [])


def test_the_active_file_comes_by_the_best_way_that_answers(
    home: Path, running: StandIn, folder: Path
) -> None:
    document = {
        "active": "a",
        "main": {"type": "leaf", "id": "a", "state": {"state": {"file": "Old.md"}}},
    }
    obsidian = Obsidian(str(folder), lambda: document)
    running.active = "Now.md"
    channels = []
    for prepare in (
        lambda: None,
        lambda: setattr(running, "companion", False),
        lambda: running.place.unlink(),
    ):
        prepare()
        found = obsidian.active_file()
        assert found is not None
        channels.append((found.path, found.via, found.may_be_old))
    assert channels == [
        ("Now.md", "companion", False),
        ("Now.md", "cli", False),
        ("Old.md", "workspace", True),
    ]


# --- what fails: one sentence each, then the next way ---


PATIENCE = 60.0
"""Seconds that no answer of the stand-in takes, however busy the machine is."""


def _says(text: str) -> Callable[[StandIn], None]:
    return lambda running: setattr(running, "raw", lambda argv: text.encode())


def _hang(running: StandIn) -> None:
    def hang(argv: list[str]) -> None:
        time.sleep(PATIENCE)

    running.raw = hang


def _drip(running: StandIn) -> None:
    """Bytes that never end, each in time: the whole answer has a time limit."""
    running.place.unlink()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(running.place))
    listener.listen(8)

    def drip() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with suppress(OSError):
                    while True:
                        connection.sendall(b"x")
                        time.sleep(0.05)

    threading.Thread(target=drip, daemon=True).start()


def _stale_socket(running: StandIn) -> None:
    """Leave a socket without a listener, as a killed app does."""
    running.place.unlink()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(running.place))


FAILURES: list[tuple[str, Callable[[StandIn], object], str]] = [
    (
        "off",
        _says(
            "Command line interface is not enabled. Please turn it on in Settings > General > Advanced."
        ),
        "command line is off",
    ),
    ("closed", lambda running: running.place.unlink(), "Obsidian is not running"),
    ("killed", _stale_socket, "Obsidian is not running"),
    ("hung", _hang, "did not answer within 0.5 seconds"),
    ("dripping", _drip, "did not answer within 0.5 seconds"),
    ("no vault", _says("Vault not found."), "does not have this vault open"),
    ("cut", _says('OA1 {"protocol": 1, "vault": "/x", "ok"'), "reply was truncated"),
    (
        "nothing",
        lambda running: setattr(running, "raw", lambda argv: None),
        "not installed in this vault, or not enabled",
    ),
    ("60 MB", _says("OA1 " + "x" * (60 << 20)), "longer than 8 MB"),
    ("not JSON of ours", _says('OA1 {"protocol": 1, "ok": "perhaps"}'), "not in the expected form"),
    ("deep", _says("OA1 " + "[" * 100_000), "reply was truncated"),
    (
        "stolen",
        lambda running: setattr(running, "vault", "/somewhere/else"),
        "has another vault open",
    ),
    (
        "disabled",
        lambda running: setattr(running, "companion", False),
        "not installed in this vault, or not enabled",
    ),
    ("old", lambda running: setattr(running, "protocol", 0), "has another version"),
]


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [(prepare, says) for _, prepare, says in FAILURES],
    ids=[name for name, _, _ in FAILURES],
)
def test_each_failure_has_its_sentence_and_then_the_next_way_is_taken(
    running: StandIn,
    folder: Path,
    desktop: Path,
    prepare: Callable[[StandIn], object],
    sentence: str,
) -> None:
    # Only an answer that never comes may meet the limit: 60 MB take their time on a busy machine.
    timeout = 0.5 if "within 0.5 seconds" in sentence else PATIENCE
    obsidian = Obsidian(str(folder), lambda: None, timeout=timeout)
    prepare(running)
    started = time.monotonic()
    companion = obsidian.status().channels[0]
    assert not companion.works
    assert sentence in companion.why
    assert companion.why.count("\n") == 0
    assert obsidian.context() is None
    assert obsidian.open("A.md") in ("cli", "uri")
    assert time.monotonic() - started < PATIENCE
    assert running.ran == []


def test_another_vaults_window_is_never_told_to_run_a_command(
    running: StandIn, obsidian: Obsidian
) -> None:
    running.vault = "/somewhere/else"
    for companion in (True, False):
        running.companion = companion
        with pytest.raises(ObsidianError, match="another vault"):
            obsidian.run("editor:toggle-bold", "Toggle bold")
    assert running.ran == []


def test_a_file_in_the_place_of_the_socket_is_not_asked(home: Path, obsidian: Obsidian) -> None:
    (home / ".obsidian-cli.sock").write_text("no socket")
    with pytest.raises(Unreachable, match="not running"):
        obsidian.companion()


def test_a_folder_that_obsidian_does_not_know_is_not_asked_about(
    running: StandIn, tmp_path: Path
) -> None:
    with pytest.raises(Unreachable, match="does not know this folder"):
        Obsidian(str(tmp_path), lambda: None).companion()


def test_without_an_obsidian_the_status_says_so_of_every_way(obsidian: Obsidian) -> None:
    status = obsidian.status()
    assert [(channel.name, channel.works) for channel in status.channels] == [
        (name, False) for name in ("companion", "cli", "uri", "workspace")
    ]
    assert status.best is None


# --- the program in the place of the socket ---


def test_the_program_is_asked_where_no_socket_is_found_and_its_exit_code_means_nothing(
    home: Path, folder: Path, obsidian: Obsidian, monkeypatch: pytest.MonkeyPatch, running: StandIn
) -> None:
    running.place.unlink()
    program = home / "obsidian-cli"
    program.write_text(
        f'#!/bin/sh\n[ "$2" = vault ] && echo {folder} || printf "path\\tNow.md\\n"\nexit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    found = obsidian.active_file()
    assert found is not None
    assert (found.path, found.via) == ("Now.md", "cli")


def test_a_program_that_hangs_is_ended(home: Path) -> None:
    program = home / "obsidian-cli"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    with pytest.raises(Unreachable, match="did not answer"):
        ProgramTransport(str(program), 0.3).request(["version"])


def test_an_obsidian_that_hangs_costs_one_timeout(home: Path) -> None:
    calls = home / "calls"
    program = home / "obsidian-cli"
    program.write_text(f"#!/bin/sh\necho x >> {calls}\nexec sleep 600\n")
    program.chmod(0o755)
    transport = ProgramTransport(str(program), 0.3)
    for _ in range(3):
        with pytest.raises(Unreachable, match="did not answer"):
            transport.request(["version"])
    assert calls.read_text() == "x\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the location on Linux")
def test_the_program_that_obsidian_registers_is_found_but_not_obsidian_itself(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home / "nothing"))
    registered = home / ".local" / "bin" / "obsidian"
    registered.parent.mkdir(parents=True)
    shutil.copy("/bin/true", registered)
    assert find_program() == str(registered)
    registered.write_text("#!/bin/sh\nexec /opt/Obsidian.AppImage\n")
    assert find_program() is None
    registered.unlink()
    registered.symlink_to("/bin/true")
    assert find_program() is None
