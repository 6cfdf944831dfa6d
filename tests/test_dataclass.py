"""Our `dataclass` gives what the one of the standard library gives."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import pytest

from obsidian_agent import dataclass as ours


def both(body: type, **flags: bool) -> tuple[Any, Any]:
    """The same class by either decorator."""
    made: list[Any] = []
    for decorator in (ours.dataclass, dataclasses.dataclass):
        cls = type(
            body.__name__,
            body.__bases__,
            {
                name: value
                for name, value in vars(body).items()
                if name not in ("__dict__", "__weakref__")
            },
        )
        made.append(decorator(cls, **flags))  # type: ignore[call-overload]
    return made[0], made[1]


class Plain:
    """With every kind of field."""

    first: int
    second: str = "two"
    third: list[int] = ours.field(default_factory=list)
    unseen: int = ours.field(default=3, repr=False)
    beside: int = ours.field(default=4, compare=False)
    later: int = ours.field(init=False, default=5)
    made: list[int] = ours.field(init=False, default_factory=list)


class Empty:
    """Nothing."""


class Own:
    """Methods of its own stay."""

    name: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name.upper())

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Named:
    """One compared field and its own hash."""

    name: str

    def __hash__(self) -> int:
        return 7


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("slots", [True, False])
@pytest.mark.parametrize(
    ("body", "arguments", "others"),
    [
        (Plain, (1,), [(2,), (1, "x"), (1, "two", [1]), (1, "two", [], 9), (1, "two", [], 3, 9)]),
        (Empty, (), []),
        (Own, ("a",), [("b",)]),
        (Named, ("a",), [("b",)]),
    ],
)
def test_a_class_is_as_the_standard_library_makes_it(
    body: type, arguments: tuple[Any, ...], others: list[tuple[Any, ...]], frozen: bool, slots: bool
) -> None:
    mine, its = both(body, frozen=frozen, slots=slots)
    one, other = mine(*arguments), its(*arguments)
    assert repr(one) == repr(other)
    assert dataclasses.asdict(one) == dataclasses.asdict(other)
    assert mine.__match_args__ == its.__match_args__
    assert hasattr(one, "__dict__") == hasattr(other, "__dict__")
    assert list(inspect.signature(mine).parameters) == list(inspect.signature(its).parameters)
    assert [one == mine(*each) for each in others] == [other == its(*each) for each in others]
    assert one == dataclasses.replace(one) == copy.copy(one) == copy.deepcopy(one)
    assert one != other or body is Own
    assert (mine.__hash__ is None) == (its.__hash__ is None)
    if body in (Empty, Named) and mine.__hash__ is not None:
        assert hash(one) == hash(mine(*arguments))
    for name in (*mine.__match_args__, "no_field"):
        assert (
            refuses(one, name) == refuses(other, name) == (frozen or (slots and name == "no_field"))
        )
    with pytest.raises(TypeError, match=r"__init__\(\) (missing|takes)"):
        mine(*range(20)) if not arguments else mine()


def refuses(value: object, name: str) -> bool:
    """Whether it can not be set. (The standard library's own error for a name that is no field of a class with slots is a mistake of its.)"""
    try:
        setattr(value, name, None)
    except (AttributeError, TypeError):
        return True
    return False


def test_defaults_are_made_for_each_and_fields_of_a_base_come_first() -> None:
    @ours.dataclass(frozen=True, slots=True)
    class Base:
        found: list[int] = ours.field(default_factory=list)

    @ours.dataclass(frozen=True, slots=True)
    class Derived(Base):
        name: str = "x"

    assert Derived().found is not Derived().found
    assert Derived([1], "y") == Derived(name="y", found=[1])
    assert Derived([1]) != Base([1])
    same: Any = ours.dataclass(frozen=True, eq=False)(type("Same", (), {}))
    assert same() != same()
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'found'"):
        Derived().found = []  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
        del Derived().name


def test_frozen_values_can_be_hashed_and_go_to_other_processes() -> None:
    from obsidian_agent.errors import Problem

    problem = Problem("CODE", "message")
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert {problem: 1}[Problem("CODE", "message")] == 1


@pytest.mark.parametrize("frozen", [True, False])
def test_keyword_only_fields_come_after_the_others(frozen: bool) -> None:
    for cls in both(Plain, frozen=frozen, kw_only=True):
        value = cls(second="b", first=1)
        assert (value.first, value.second, value.third) == (1, "b", [])
        with pytest.raises(TypeError):
            cls(1)
