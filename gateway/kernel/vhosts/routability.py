"""Whether messages would reach a queue, found out without publishing them."""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final

from gateway.kernel.caches import remember

if TYPE_CHECKING:
    from gateway.kernel.messages.message import Message
    from gateway.kernel.routing.exchange import Exchange
    from gateway.kernel.routing.explaining_router import ExplainingRouter

_MAX_ANSWERS: Final = 10_000


class Routability:
    """Tells which messages of a batch are routable; changes no counter and no state of an exchange.

    Answers that depend on exchange and routing key only are kept, because most rows of a batch share them: keep an
    object for one batch. ``router`` returns a router for one message.
    """

    def __init__(self, router: "Callable[[], ExplainingRouter]") -> None:
        self._router = router
        self._answers: dict[tuple[str, str], bool] = {}

    def steps(self, exchange: "Exchange", message: "Message") -> Generator[None, None, bool]:
        """Return the steps that find out whether a message would reach a queue: none if that is known already."""
        if message.header.sender_keys:
            _, is_routable = yield from self._explained(exchange, message)
            return is_routable
        key = exchange.name, message.routing_key
        answer = self._answers.get(key)
        if answer is None:
            is_by_key, answer = yield from self._explained(exchange, message)
            if is_by_key:
                remember(self._answers, key, answer, _MAX_ANSWERS)
        return answer

    def _explained(self, exchange: "Exchange", message: "Message") -> Generator[None, None, tuple[bool, bool]]:
        """Return whether the route depends on the routing key only, and whether it has a queue."""
        router = self._router()
        queues = yield from router.explained(exchange, message)
        return all(visited.routes_by_key for visited in router.visits), bool(queues)
