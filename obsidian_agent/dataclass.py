"""The standard library's `dataclass`, at a sixth of the cost of item definition.

The standard library writes six methods per class as text and compiles item: 0.6 ms per class, a
third of a short command for the 250 classes that it needs. Here only `__init__` is compiled; the
other methods are functions over the names of the fields. Only the features that this program uses
are supported: the flags `frozen`, `slots`, `eq` and `kw_only`, and fields with `default`,
`default_factory`, `init`, `repr` and `compare`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import asdict, field, fields, replace
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        slots: bool = False,
        eq: bool = True,
        kw_only: bool = False,
    ) -> Any:
        """Add the methods of a dataclass to a class, except those that it defines itself."""
        if cls is None:
            return lambda cls: _with_methods(cls, frozen, slots, eq, kw_only)
        return _with_methods(cls, frozen, slots, eq, kw_only)


__all__ = ["asdict", "dataclass", "field", "fields", "replace"]


def _with_methods(cls: type, frozen: bool, slots: bool, eq: bool, kw_only: bool) -> type:
    cls.__doc__ = cls.__doc__ or cls.__name__
    own = set(cls.__dict__)
    if "__eq__" in own and cls.__dict__.get("__hash__") is None:
        own.discard("__hash__")  # Python adds it to a class with __eq__
    if not eq:
        own |= {"__eq__", "__hash__"}
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
    compared = [item.name for item in fields(cls) if item.compare]
    values: Callable[[object], object] = attrgetter(*compared) if compared else lambda _: ()

    def __eq__(self: object, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    def __hash__(self: object) -> int:
        return hash(values(self))

    methods: dict[str, Any] = {
        "__init__": _init(cls, frozen),
        "__repr__": _repr,
        "__eq__": __eq__,
        "__hash__": __hash__ if frozen else None,
    }
    if frozen:
        methods |= {
            "__setattr__": _refuse,
            "__delattr__": _refuse,
            "__getstate__": _state,
            "__setstate__": _set_state,
        }
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    return cls


def _init(cls: type, frozen: bool) -> Callable[..., None]:
    """Return an `__init__` that is compiled by its first call.

    A command creates values of only some of the classes that it imports.
    """

    def __init__(self: object, *values: object, **named: object) -> None:
        compiled = _compiled_init(cls, frozen)
        type.__setattr__(cls, "__init__", compiled)
        compiled(self, *values, **named)

    return __init__


def _compiled_init(cls: type, frozen: bool) -> Callable[..., None]:
    names: dict[str, object] = {"MISSING": dataclasses.MISSING, "put": object.__setattr__}
    parameters, keyword_only, lines = ["self"], ["*"], []
    for item in fields(cls):
        name, value = item.name, item.name
        if item.default is not dataclasses.MISSING:
            names[f"default_{name}"] = item.default
            default = f"default_{name}"
        elif item.default_factory is not dataclasses.MISSING:
            names[f"make_{name}"] = item.default_factory
            default, value = "MISSING", f"make_{name}() if {name} is MISSING else {name}"
        else:
            default = ""
        if item.init:
            listed = keyword_only if item.kw_only else parameters
            listed.append(f"{name}={default}" if default else name)
        elif default:
            value = default if default != "MISSING" else f"make_{name}()"
        else:
            continue
        if frozen and isinstance(slot := getattr(cls, name, None), MemberDescriptorType):
            names[f"put_{name}"] = slot.__set__
            lines.append(f" put_{name}(self, {value})")
        else:
            lines.append(f" put(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    if len(keyword_only) > 1:
        parameters += keyword_only
    exec(f"def __init__({', '.join(parameters)}):\n" + ("\n".join(lines) or " pass"), names)
    compiled: Any = names["__init__"]
    compiled.__module__ = cls.__module__
    compiled.__qualname__ = f"{cls.__qualname__}.__init__"
    return compiled  # type: ignore[no-any-return]


@recursive_repr()
def _repr(self: Any) -> str:
    values = ", ".join(
        f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr
    )
    return f"{self.__class__.__qualname__}({values})"


def _refuse(self: object, name: str, *value: object) -> None:
    raise dataclasses.FrozenInstanceError(
        f"cannot {'assign to' if value else 'delete'} field {name!r}"
    )


def _state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for item, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
