"""Text from notes, names and selections as models get it: fenced, labelled as data, neutralized.

The fence is a line with a random mark, so that no text can close it. Inside, the tokens with which
services mark roles are broken up, and invisible characters are spelled out. This makes confusion
rare; safety does not depend on it, since every plan is previewed and approved.
"""

from __future__ import annotations

import re
import secrets

_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_HIDDEN_RUN = re.compile(f"[{_HIDDEN}]+")
_JOINERS = frozenset("\u200c\u200d\ufe0e\ufe0f")
_LONGEST_SPELLED = 3
_ROLE_TOKENS = re.compile(
    r"<\|([^|<>\n]{1,40})\|>|\[(/?INST)\]|<<(/?SYS)>>|<(/?(?:s|start_of_turn|end_of_turn))>",
    re.IGNORECASE,
)


def new_mark() -> str:
    """Return a random mark for the fences of one request."""
    return secrets.token_hex(8)


def fence(label: str, text: str, mark: str) -> str:
    """Return the text between lines that label it as data."""
    return f"<<<DATA {mark} {label}\n{neutral(text)}\nDATA {mark}>>>"


def neutral(text: str) -> str:
    """Return the text with role tokens broken up and invisible characters spelled out."""
    return _ROLE_TOKENS.sub(_broken_up, visible(text))


def visible(text: str) -> str:
    """Return the text with invisible characters spelled out.

    Joiners inside emoji and words stay; CRLF becomes a newline.
    """
    text = text.replace("\r\n", "\n")
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN_RUN.sub(_spelled_out, text)


def _spelled_out(match: re.Match[str]) -> str:
    run = match.group()
    before = match.string[match.start() - 1] if match.start() else ""
    if len(run) <= 2 and set(run) <= _JOINERS and before and not before.isascii():
        return run
    if len(run) > _LONGEST_SPELLED:
        return f"⟦{len(run)} invisible characters⟧"
    return "".join(f"⟦U+{ord(character):04X}⟧" for character in run)


def _broken_up(match: re.Match[str]) -> str:
    return f"⟦{next(group for group in match.groups() if group)}⟧"
