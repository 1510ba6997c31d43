"""Patterns of routing keys."""


def matches(pattern: str, key: str) -> bool:
    """Return whether a topic pattern matches a key; ``#`` is its last word only."""
    words, wanted = key.split("."), pattern.split(".")
    if wanted[-1] == "#":
        wanted.pop()
        words = words[: len(wanted)]
    return len(words) == len(wanted) and all(one in ("*", two) for one, two in zip(wanted, words, strict=True))


def filter_of(pattern: str) -> str:
    """Return the MQTT filter of a pattern."""
    return pattern.replace(".", "/").replace("*", "+")
