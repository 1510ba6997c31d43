"""Values in the notation of Erlang, as RabbitMQ's error texts have them."""

from typing import Final

from gateway.kernel.messages.message import Value

#: The number of characters of an invalid value that an error repeats.
_SHOWN_AT_MOST: Final = 200


def as_erlang(value: Value) -> str:
    """Format a value as Erlang prints a term decoded from JSON."""
    if isinstance(value, str):
        shown = value if len(value) <= _SHOWN_AT_MOST else f"{value[:_SHOWN_AT_MOST]}..."
        return f'<<"{shown}">>'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(as_erlang(item) for item in value)}]"
    if isinstance(value, dict):
        return f"#{{{','.join(f'{as_erlang(key)} => {as_erlang(item)}' for key, item in value.items())}}}"
    return "null" if value is None else str(value)
