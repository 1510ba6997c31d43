"""A parsed selector, a condition on the headers of a message."""

from typing import Final

from gateway.kernel.messages.message import Properties
from gateway.selectors.errors import SelectorError
from gateway.selectors.expressions import Expression, literal
from gateway.selectors.parser import SelectorParser
from gateway.selectors.terms import expression_of_term
from gateway.selectors.tokens import tokens
from gateway.selectors.values import MessageValues

#: Longest selector in characters; a longer one is a mistake or an attack.
MAX_LENGTH: Final = 16_384

#: Prefixes that ActiveMQ accepts before a selector: convert text to numbers, and allow hyphens in names.
_CONVERTING: Final = "convert_string_expressions:"
_HYPHENATED: Final = "hyphenated_props:"


class Selector:
    """A condition on messages (JMS 2.0, 3.8.1). An empty or blank one matches every message.

    With ``converts_text``, text is converted to the number or boolean it is compared with, as ActiveMQ does for
    STOMP, whose headers are all text.
    """

    def __init__(self, text: str, condition: Expression, *, converts_text: bool = False) -> None:
        self.text = text
        self._condition = condition
        self._converts_text = converts_text

    @classmethod
    def parse(cls, text: str, *, converts_text: bool = False) -> "Selector":
        """Parse a selector.

        The prefix ``convert_string_expressions:`` enables conversion, and ``hyphenated_props:`` allows hyphens in
        names.

        :raises SelectorError: if the text is not a valid selector.
        """
        _check_length(text)
        start, asked = _prefixes(text)
        condition = _condition(text, start, has_hyphens=_HYPHENATED in asked)
        return cls(text, condition, converts_text=converts_text or _CONVERTING in asked)

    @classmethod
    def parse_term(cls, text: str) -> "Selector":
        """Parse a selector that RabbitMQ's JMS client has compiled to an Erlang term.

        :raises SelectorError: if it is not a valid term.
        """
        _check_length(text)
        return cls(text, expression_of_term(text))

    def matches(
        self, properties: Properties, delivery_count: int | None = None, is_redelivered: bool | None = None
    ) -> bool:
        """Return whether a message matches; false and unknown do not match. Never raises.

        :param delivery_count: the number of this delivery, 1 for the first; ``None`` if unknown.
        :param is_redelivered: whether a consumer may have received the message before; ``None`` if unknown.
        """
        values = MessageValues(properties, delivery_count, is_redelivered, converts_text=self._converts_text)
        return self._condition.value(values) is True

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


def _check_length(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise SelectorError(f"more than {MAX_LENGTH} characters, the first excess one", MAX_LENGTH)


def _prefixes(text: str) -> tuple[int, set[str]]:
    """Return the start of the selector after its prefixes, and the prefixes."""
    start, asked = 0, set()
    while prefix := next((known for known in (_CONVERTING, _HYPHENATED) if text.startswith(known, start)), None):
        asked.add(prefix)
        start += len(prefix)
    return start, asked


def _condition(text: str, start: int, *, has_hyphens: bool) -> Expression:
    if not text[start:].strip(" \t\n\r\f"):
        return literal(start, True)
    return SelectorParser(tokens(text, start, has_hyphens=has_hyphens)).selector()
