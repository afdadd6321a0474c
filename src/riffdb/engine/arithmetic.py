"""What generated functions call where Python's own operators do not have the language's meaning.

Division truncates toward zero, `lower` is ASCII alone, `length` counts bytes of UTF-8. Whatever leaves its range raises
`RDB-E-ARITHMETIC` with the place in the contract and never with a value. Range checks themselves stand in the generated
text, since they are on the hot path.
"""

from collections.abc import Callable
from datetime import date
from typing import NoReturn

from riffdb.core.errors import RiffError
from riffdb.core.limits import I64_MAX, I64_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN, U64_MAX

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def ascii_lower(text: str) -> str:
    """The text with A to Z in lower case, everything else as it is."""
    return text.translate(_ASCII_LOWER)


def utf8_length(text: str) -> int:
    """The bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def truncated(dividend: int, divisor: int) -> int:
    """The quotient without its fraction; the divisor is not zero."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def seconds_between(start: int, end: int) -> int:
    """Whole seconds from one timestamp to another, negative when the second is the earlier one."""
    return truncated(end - start, 1_000_000)


def offered_functions(name: str) -> dict[str, object]:
    """What the generated text of that command or query may use in expressions, by name."""
    return {
        "ascii_lower": ascii_lower,
        "length": len,
        "seconds_between": seconds_between,
        "utf8_length": utf8_length,
        "overflow": _overflow(name),
        "quotient": _quotient(name),
        "remainder": _remainder(name),
        "I64_MIN": I64_MIN,
        "I64_MAX": I64_MAX,
        "U64_MAX": U64_MAX,
        "TIMESTAMP_MIN": TIMESTAMP_MIN,
        "TIMESTAMP_MAX": TIMESTAMP_MAX,
        "DATE_MIN": date.min.toordinal() - _EPOCH_DAY,
        "DATE_MAX": date.max.toordinal() - _EPOCH_DAY,
    }


def _overflow(name: str) -> Callable[[str, str], NoReturn]:
    def overflow(place: str, type_name: str) -> NoReturn:
        raise RiffError(
            "RDB-E-ARITHMETIC",
            f"{name}, {place}: the result leaves the range of {type_name}; give values that keep it inside, or let a "
            "`require` before it answer with an outcome",
        )

    return overflow


def _division_by_zero(name: str, place: str) -> RiffError:
    return RiffError(
        "RDB-E-ARITHMETIC",
        f"{name}, {place}: division by zero; give another divisor, or let a `require` before it answer with an outcome",
    )


def _quotient(name: str) -> Callable[[str, int, int], int]:
    def quotient(place: str, dividend: int, divisor: int) -> int:
        if divisor == 0:
            raise _division_by_zero(name, place)
        return truncated(dividend, divisor)

    return quotient


def _remainder(name: str) -> Callable[[str, int, int], int]:
    def remainder(place: str, dividend: int, divisor: int) -> int:
        if divisor == 0:
            raise _division_by_zero(name, place)
        return dividend - divisor * truncated(dividend, divisor)

    return remainder
