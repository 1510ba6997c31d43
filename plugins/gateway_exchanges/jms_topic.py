"""x-jms-topic: routes to every binding whose message selector matches; the routing key is ignored.

A binding has its selector in ``x-jms-selector``, in JMS syntax, or in ``rjms_erlang_selector``, as compiled by
RabbitMQ's JMS client. That client binds this exchange to the topic exchange, which selects the topics.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from gateway.api import (
    Arguments,
    Binding,
    Destination,
    ExchangeTypes,
    LongRoute,
    Message,
    PreconditionFailed,
    Selector,
    SelectorError,
    hookimpl,
)

PARSERS: Final[Mapping[str, Callable[[str], Selector]]] = {
    "x-jms-selector": Selector.parse,
    "rjms_erlang_selector": Selector.parse_term,
}


#: Selectors that are evaluated at once; more take several turns, of which each evaluates a part.
_MOST_AT_ONCE: Final = 512
_PART: Final = 32


class JmsTopic:
    """To the queues whose selectors match. It evaluates the selectors one by one: 20,000 take 50 ms."""

    def __init__(self, arguments: Arguments) -> None:
        self._selectors: dict[Binding, Selector] = {}

    def bind(self, binding: Binding) -> None:
        """Add a binding. :raises PreconditionFailed: if it does not have exactly one selector."""
        self._selectors[binding] = _selector(binding.arguments)

    def unbind(self, binding: Binding) -> None:
        """Remove a binding."""
        del self._selectors[binding]

    def route(self, message: Message) -> Iterable[Destination]:
        """Return the destinations of a message."""
        if len(self._selectors) > _MOST_AT_ONCE:
            return LongRoute(partial(self._found, message, list(self._selectors)))
        properties = message.properties
        return [binding.destination for binding, selector in self._selectors.items() if selector.matches(properties)]

    def _found(self, message: Message, bindings: list[Binding]) -> Iterator[Destination | None]:
        """Return the steps that evaluate the selectors of bindings, except of those that are removed meanwhile."""
        properties = message.properties
        for number, binding in enumerate(bindings, 1):
            selector = self._selectors.get(binding)
            if selector is not None and selector.matches(properties):
                yield binding.destination
            if number % _PART == 0:
                yield None


def _selector(arguments: Arguments) -> Selector:
    given = [name for name in PARSERS if name in arguments]
    if len(given) != 1:
        raise PreconditionFailed(
            f"a binding to x-jms-topic must have exactly one of the arguments {' and '.join(PARSERS)}"
        )
    text = arguments[given[0]]
    if not isinstance(text, str):
        raise PreconditionFailed(f"{given[0]} must be text")
    try:
        return PARSERS[given[0]](text)
    except SelectorError as error:
        raise PreconditionFailed(f"cannot parse {given[0]}: {error}") from None


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``x-jms-topic``."""
    return {"x-jms-topic": JmsTopic}
