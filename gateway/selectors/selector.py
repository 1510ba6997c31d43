"""A selector: text that was parsed once, and that tells which messages match."""

from typing import Final

from gateway.kernel.messages.message import Properties
from gateway.selectors.errors import SelectorError
from gateway.selectors.expressions import Expression, literal
from gateway.selectors.parser import SelectorParser
from gateway.selectors.terms import expression_of_term
from gateway.selectors.tokens import tokens
from gateway.selectors.values import MessageValues

#: Characters: what is longer is a mistake, or no friend's.
MAX_LENGTH: Final = 16_384

#: What ActiveMQ reads before a selector: that text may stand for a number, and that names may hold hyphens.
_CONVERTING: Final = "convert_string_expressions:"
_HYPHENATED: Final = "hyphenated_props:"


class Selector:
    """Which messages somebody wants, as JMS 2.0, 3.8.1 says it. One that is empty or all spaces matches every message.

    ``converts_text`` lets text stand for the number or truth it is compared with, as ActiveMQ does for STOMP, whose
    headers are all text.
    """

    def __init__(self, text: str, condition: Expression, *, converts_text: bool = False) -> None:
        self.text = text
        self._condition = condition
        self._converts_text = converts_text

    @classmethod
    def parse(cls, text: str, *, converts_text: bool = False) -> "Selector":
        """Read a selector.

        A text that begins with ``convert_string_expressions:`` asks for conversion itself, and in one that begins with
        ``hyphenated_props:`` names may hold hyphens.

        :raises SelectorError: when the text is no selector.
        """
        _check_length(text)
        start, asked = _prefixes(text)
        condition = _condition(text, start, has_hyphens=_HYPHENATED in asked)
        return cls(text, condition, converts_text=converts_text or _CONVERTING in asked)

    @classmethod
    def parse_term(cls, text: str) -> "Selector":
        """Read a selector that RabbitMQ's JMS client has compiled to an Erlang term.

        :raises SelectorError: when it is none.
        """
        _check_length(text)
        return cls(text, expression_of_term(text))

    def matches(
        self, properties: Properties, delivery_count: int | None = None, is_redelivered: bool | None = None
    ) -> bool:
        """Whether a message matches: what is false or unknown does not. Never raises.

        :param delivery_count: which delivery this is, 1 for the first; ``None`` where it is not known.
        :param is_redelivered: whether somebody may have seen the message before; ``None`` where it is not known.
        """
        values = MessageValues(properties, delivery_count, is_redelivered, converts_text=self._converts_text)
        return self._condition.value(values) is True

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


def _check_length(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise SelectorError(f"more than {MAX_LENGTH} characters, the first too many", MAX_LENGTH)


def _prefixes(text: str) -> tuple[int, set[str]]:
    """Return where the selector proper begins, and the prefixes before it."""
    start, asked = 0, set()
    while prefix := next((known for known in (_CONVERTING, _HYPHENATED) if text.startswith(known, start)), None):
        asked.add(prefix)
        start += len(prefix)
    return start, asked


def _condition(text: str, start: int, *, has_hyphens: bool) -> Expression:
    if not text[start:].strip(" \t\n\r\f"):
        return literal(start, True)
    return SelectorParser(tokens(text, start, has_hyphens=has_hyphens)).selector()
