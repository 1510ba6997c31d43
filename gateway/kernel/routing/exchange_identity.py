"""The identity of an exchange: name, type and properties."""

from gateway.kernel.compiling import mypyc_attr
from gateway.kernel.messages.message import Arguments


@mypyc_attr(allow_interpreted_subclasses=True)
class ExchangeIdentity:
    """An exchange's identity, which does not change while it exists; bindings refer to their exchanges by it.

    ``type_name`` is the declared type. Clients cannot publish to an exchange that ``is_internal``.
    The stand-ins of ``gateway.testing`` derive from it.
    """

    __slots__ = ("arguments", "is_auto_delete", "is_durable", "is_internal", "name", "type_name", "vhost_name")

    def __init__(
        self,
        vhost_name: str,
        name: str,
        type_name: str,
        is_durable: bool,
        is_auto_delete: bool,
        is_internal: bool,
        arguments: Arguments | None,
    ) -> None:
        self.vhost_name = vhost_name
        self.name = name
        self.type_name = type_name
        self.is_durable = is_durable
        self.is_auto_delete = is_auto_delete
        self.is_internal = is_internal
        self.arguments: Arguments = arguments or {}
