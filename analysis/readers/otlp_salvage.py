"""What can be used of an OTLP/JSON span that does not fit: every field by itself.

`null` is how JSON spells a field's default, and costs nothing.  A field of a wrong type is left out, of a
list the elements that are; without an id or a start a span is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin

import msgspec

from hotspan.analysis.readers import values

if TYPE_CHECKING:
    from collections.abc import Callable

    Say = Callable[[str], None]

_Part = TypeVar("_Part", bound=msgspec.Struct)
_REQUIRED: Final = frozenset({"trace_id", "span_id", "start_time_unix_nano"})
_SHOWN: Final = 40
_NULL: Final = b"null"


def salvage(raw: msgspec.Raw, kind: type[_Part], say: Say) -> _Part:
    """Return a structure with the fields that could be read; each of the others is said.

    Raises:
        msgspec.ValidationError: It is no object, or a field without which there is no span is not usable.
    """
    found = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    kept = {}
    for field in msgspec.structs.fields(kind):
        part = found.get(field.encode_name)
        if part is None or bytes(part) == _NULL:
            continue
        try:
            kept[field.name] = _field(part, field.type, say)
        except msgspec.ValidationError as exc:
            if field.name in _REQUIRED:
                msg = f"a span's {field.encode_name} cannot be read: {exc}"
                raise msgspec.ValidationError(msg) from None
            say(f"{field.encode_name} of a span cannot be read")
    return kind(**kept)


def elements(raw: msgspec.Raw, read: Callable[[msgspec.Raw], Any], what: str, say: Say) -> list[Any]:
    """Return what `read` makes of each element of a list; what it cannot read is said."""
    kept: list[Any] = []
    try:
        parts = msgspec.json.decode(raw, type=list[msgspec.Raw])
    except msgspec.ValidationError:
        say(f"{what} of a span are no list")
        return kept
    for part in parts:
        try:
            kept.append(read(part))
        except ValueError:  # msgspec's errors are ValueErrors too
            shown = values.shown(bytes(part)[:_SHOWN].decode(errors="replace"))
            say(f"one of the {what} of a span cannot be read: {shown}")
    return kept


def _field(part: msgspec.Raw, kind: Any, say: Say) -> Any:
    structures = [inner for inner in (kind, *get_args(kind)) if _is_structure(inner)]
    if not structures:
        return msgspec.json.decode(part, type=kind, strict=False)
    if get_origin(kind) is list:
        name = structures[0].__name__.strip("_").lower() + "s"
        return elements(part, lambda element: salvage(element, structures[0], say), name, say)
    return salvage(part, structures[0], say)


def _is_structure(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
