"""Formatting of values as in rabbitmqctl's tables: Erlang terms in Elixir's notation."""

from gateway.cli.ctl.values import Json

#: Control characters, also those of eight bits, which some terminals obey.
_CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]

ESCAPES = str.maketrans(
    {each: f"\\x{ord(each):02X}" for each in _CONTROLS} | {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\x1b": "\\e"}
)


def cell(value: Json) -> str:
    r"""Format a column's value: bare strings, ``[{"x-max-length",5}]`` for objects, ``[a, b]`` for lists of names.

    Tabs, line ends and escapes are written ``\t``, ``\n``, ``\r`` and ``\e``, other control characters ``\x07``: a row
    stays one line, and a name cannot send control sequences to the terminal.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value.translate(ESCAPES)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return f"[{', '.join(cell(item) for item in value)}]"
    return term(value)


def term(value: Json) -> str:
    """Format a nested value: strings in quotes, objects as lists of pairs."""
    if isinstance(value, dict):
        return f"[{','.join(f'{{{term(name)},{term(item)}}}' for name, item in value.items())}]"
    if isinstance(value, list):
        return f"[{','.join(map(term, value))}]"
    if isinstance(value, str):
        return '"{}"'.format(value.replace("\\", "\\\\").replace('"', '\\"').translate(ESCAPES))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "undefined" if value is None else str(value)
