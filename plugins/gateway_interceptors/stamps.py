"""The headers that RabbitMQ's message interceptors set on published messages, each by a plugin of its own here."""

from collections.abc import Callable

from gateway.api import Decision, Interceptor, Message, Origin, PluginSettings, Value


class StampSettings(PluginSettings):
    """The settings of the plugins that set one header."""

    overwrite: bool = False
    """Whether a header of this name that the publisher set is replaced."""


class Stamp(Interceptor):
    """Sets one header of each published message. ``value`` returns it, always the same, ``None`` to set nothing."""

    on_error = "pass"
    decides_by_header = True

    def __init__(self, header: str, value: Callable[[Origin], Value], *, overwrite: bool) -> None:
        self._header = header
        self._value = value
        self._overwrite = overwrite

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        """Return the message with the header, unless the publisher's own one is kept."""
        if not self._overwrite and self._header in message.headers:
            return message
        value = self._value(origin)
        return message if value is None else message.edited({self._header: value})
