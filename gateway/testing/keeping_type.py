"""The part of ``check_exchange_type`` for types that keep messages (``gateway.api.KeepingType``)."""

from collections.abc import Callable, Sequence
from typing import Final, cast

from gateway.kernel.messages.message import Message
from gateway.kernel.routing.binding import Binding
from gateway.kernel.routing.exchange_type import ExchangeType, KeepingType
from gateway.kernel.routing.kept_messages import KeptMessages

#: The methods that only these types have.
METHODS: Final = ("attach", "published", "bound")


def check_keeping(make: Callable[[], ExchangeType], messages: Sequence[Message], bindings: Sequence[Binding]) -> None:
    """Check an exchange type that keeps messages; do nothing for others.

    :param make: builds the type's part of a new exchange.
    :raises AssertionError: with a sentence that names the broken promise, also if only some of the methods exist.
    """
    exchange = make()
    has = [name for name in METHODS if callable(getattr(exchange, name, None))]
    if not has:
        return
    if len(has) < len(METHODS):
        missing = [name for name in METHODS if name not in has]
        raise AssertionError(f"The type has {' and '.join(has)}(), but not {' and '.join(missing)}().")
    check = _Check(make, messages, bindings)
    check.an_exchange_without_messages_hands_over_none()
    check.only_published_messages_are_handed_over()
    check.kept_messages_are_handed_over_after_a_restart()


class _Check:
    """The promises, one method each."""

    def __init__(
        self, make: Callable[[], ExchangeType], messages: Sequence[Message], bindings: Sequence[Binding]
    ) -> None:
        self._make = make
        self._messages = [  # each with a body of its own
            Message(message.exchange, message.routing_key, message.header, b"body %d" % number)
            for number, message in enumerate(messages)
        ]
        self._bindings = bindings

    def an_exchange_without_messages_hands_over_none(self) -> None:
        exchange = self._attached(KeptMessages())
        for binding in self._bindings:
            if self._handed_over(exchange, binding):
                raise AssertionError(f"bound() returned messages for {_described(binding)} before any was published.")

    def only_published_messages_are_handed_over(self) -> None:
        exchange = self._attached(KeptMessages())
        self._publish_all(exchange)
        bodies = {message.body for message in self._messages}
        for binding in self._bindings:
            for message in self._handed_over(exchange, binding):
                if message.body not in bodies:
                    raise AssertionError(
                        f"bound() returned a message for {_described(binding)} that was not published."
                    )

    def kept_messages_are_handed_over_after_a_restart(self) -> None:
        kept, restored = KeptMessages(), KeptMessages()
        before, after = self._attached(kept), self._attached(restored)
        self._publish_all(before)
        for name in kept.names:
            restored.put(name, cast(Message, kept.get(name)))
        for binding in self._bindings:
            expected, found = self._handed_over(before, binding), self._handed_over(after, binding)
            if [message.body for message in found] != [message.body for message in expected]:
                raise AssertionError(
                    f"After a restart, bound() returns other messages for {_described(binding)} than before; keep all "
                    "state in the KeptMessages that attach() gets."
                )

    # The steps, with the exceptions that are allowed in them

    def _attached(self, kept: KeptMessages) -> KeepingType:
        exchange = cast(KeepingType, self._make())
        try:
            exchange.attach(kept)
        except Exception as error:  # foreign code: any exception is a finding
            raise AssertionError(f"attach() raised {error!r}.") from error
        return exchange

    def _publish_all(self, exchange: KeepingType) -> None:
        for message in self._messages:
            try:
                exchange.published(message)
            except Exception as error:  # foreign code: any exception is a finding
                raise AssertionError(
                    f"published() raised {error!r} for the key {message.routing_key!r} and headers "
                    f"{dict(message.headers)!r}."
                ) from error

    def _handed_over(self, exchange: KeepingType, binding: Binding) -> list[Message]:
        try:
            return list(exchange.bound(binding))
        except Exception as error:  # foreign code: any exception is a finding
            raise AssertionError(f"bound() raised {error!r} for {_described(binding)}.") from error


def _described(binding: Binding) -> str:
    return f"the binding to {binding.destination!r} with key {binding.routing_key!r}"
