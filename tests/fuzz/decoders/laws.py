"""Laws that decoders obey, and helpers that check them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, ParamSpec, TypeGuard, TypeVar
from zlib import crc32

P = ParamSpec("P")
T = TypeVar("T")

#: Inputs up to this size are also cut into single bytes.
_SINGLE_BYTES: Final = 96


class LawBroken(AssertionError):
    """A decoder broke a law; the text names it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error of a decoder that its documentation announces."""

    kind: str
    text: str


def attempt(
    refusals: type[Exception] | tuple[type[Exception], ...],
    decode: Callable[P, T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T | Refusal:
    """Return what a decoder returns, or its refusal. Any other exception passes, and is a finding."""
    try:
        return decode(*args, **kwargs)
    except refusals as error:
        return Refusal(type(error).__name__, str(error))


def refused(outcome: object) -> TypeGuard[Refusal]:
    """Whether an outcome is a refusal."""
    return isinstance(outcome, Refusal)


def require(holds: bool, law: str, *shown: object) -> None:
    """Check a law. :raises LawBroken: with the law and the values, if it does not hold."""
    if not holds:
        raise LawBroken(": ".join((law, *(repr(each)[:300] for each in shown))))


def require_same(law: str, one: object, other: object) -> None:
    """Check that two outcomes are equal, types and order included: they are compared as they are printed."""
    require(repr(one) == repr(other), law, one, other)


def cuttings(data: bytes) -> Iterator[Sequence[bytes]]:
    """Yield the data whole, in two to four pieces and, if it is short, in single bytes. The cuts follow from it."""
    yield (data,)
    if len(data) < 2:
        return
    noise = crc32(data)
    one, other = sorted((1 + noise % (len(data) - 1), 1 + (noise >> 16) % (len(data) - 1)))
    yield data[:one], data[one:]
    yield data[:one], data[one:other], b"", data[other:]
    if len(data) <= _SINGLE_BYTES:
        yield [data[at : at + 1] for at in range(len(data))]


def require_any_cut(data: bytes, outcome: Callable[[Sequence[bytes]], object]) -> None:
    """Check that a decoder of streams has the same outcome however its input is cut."""
    whole, *others = (outcome(pieces) for pieces in cuttings(data))
    for other in others:
        require_same("any cut of the bytes gives the same result", whole, other)


def text_of(data: bytes) -> str:
    """Return an input as text; bytes that are not UTF-8 become U+FFFD."""
    return data.decode(errors="replace")
