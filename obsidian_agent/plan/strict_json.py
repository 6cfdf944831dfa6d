"""JSON files that people and programs write: taken as they are, or refused; nothing is mended."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from obsidian_agent.errors import PlanError

MAX_FILE_BYTES = 64 * 1024 * 1024


def read_json(data: bytes, name: str) -> Any:
    """The JSON value of a file. PlanError SCHEMA_INVALID names the file, the line and what is wrong: also a doubled key, NaN, bad UTF-8."""
    if len(data) > MAX_FILE_BYTES:
        raise PlanError(f"{name} is larger than {MAX_FILE_BYTES // 2**20} MB.", code="SCHEMA_INVALID")
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise PlanError(f"{name} is not JSON: {error.msg} in line {error.lineno}.", code="SCHEMA_INVALID") from error
    except UnicodeDecodeError as error:
        raise PlanError(f"{name} is not UTF-8 text (byte {error.start}).", code="SCHEMA_INVALID") from error
    except RecursionError as error:
        raise PlanError(f"{name} is nested too deeply.", code="SCHEMA_INVALID") from error
    except ValueError as error:
        raise PlanError(f"{name}: {error}", code="SCHEMA_INVALID") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        doubled = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {doubled!r} occurs twice in one object.")
    return found


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number.")
