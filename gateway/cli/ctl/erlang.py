"""Values as rabbitmqctl writes them into its tables: Erlang's terms, in Elixir's dress."""

from gateway.cli.ctl.values import Json

ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\x1b": "\\e"})


def cell(value: Json) -> str:
    r"""A value in a column: strings bare, nothing for null, ``[{"x-max-length",5}]`` for objects, ``[a, b]`` for names.

    Tabs, line ends and escapes are written ``\t``, ``\n``, ``\r`` and ``\e``: a row stays one line, and a name cannot
    speak to the terminal.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value.translate(ESCAPES)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return f"[{', '.join(cell(item) for item in value)}]"
    return term(value)


def term(value: Json) -> str:
    """A value within another: strings in quotes, objects as lists of pairs."""
    if isinstance(value, dict):
        return f"[{','.join(f'{{{term(name)},{term(item)}}}' for name, item in value.items())}]"
    if isinstance(value, list):
        return f"[{','.join(map(term, value))}]"
    if isinstance(value, str):
        return '"{}"'.format(value.replace("\\", "\\\\").replace('"', '\\"').translate(ESCAPES))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "undefined" if value is None else str(value)
