"""Arguments of exchanges."""

from typing import Any

from gateway.clients.deduplication import DeduplicationRule


def delayed_exchange_arguments(
    routes_as: str = "direct", *, deduplication: DeduplicationRule | None = None
) -> dict[str, Any]:
    """Return the arguments of an exchange of type ``x-delayed-message``, which routes a message when it is due.

    :param routes_as: the type that routes, such as ``topic``.
    """
    return {"x-delayed-type": routes_as, **(deduplication.arguments() if deduplication is not None else {})}
