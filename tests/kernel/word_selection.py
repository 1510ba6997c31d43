"""A selection by the first word of the body, which counts its calls."""

from gateway.kernel.messages.message import Message


class WordSelection:
    """Selects messages by these words; with ``first_only`` those that were not delivered before."""

    def __init__(self, *words: bytes, first_only: bool = False) -> None:
        self.words = words
        self.first_only = first_only
        self.calls = 0

    def wants(self, message: Message, deliveries: int, is_redelivered: bool) -> bool:
        self.calls += 1
        return self.matches(message.body, deliveries)

    def matches(self, body: bytes, deliveries: int) -> bool:
        """Return the same result without counting the call."""
        return body.split()[0] in self.words and not (self.first_only and deliveries)
