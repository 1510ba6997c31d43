"""The errors of the broker: their codes in each protocol, their causes and cures, and their texts."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from docs.tools.reference.cures import cure_of
from docs.tools.reference.error_texts import error_texts
from docs.tools.reference.table import NOTE, code, table
from gateway.kernel import errors
from gateway.kernel.errors import GatewayError, Refused
from gateway.management.http.errors import STATUSES
from gateway_amqp.errors import HARD, REPLY_CODES, REPLY_NAMES, VIOLATION_CODES
from gateway_mqtt.codec.reasons import REFUSALS, ReasonCode
from gateway_stomp.errors import MESSAGES

_HEAD: Final = f"""\
# Errors

Each error is of one kind, which decides its code in each protocol. [Troubleshooting](../troubleshooting.md) begins with
what you see, and has the errors that are met most often. Each text has its cause and its cure. {NOTE}
"""


class Advice(NamedTuple):
    """Why an error of a kind occurs, and what to do."""

    cause: str
    cure: str


ADVICE: Final[Mapping[type[GatewayError], Advice]] = {
    errors.AccessRefused: Advice(
        "a wrong login, a missing permission, or a reserved name",
        "`gatewayctl list_user_permissions USER`, then [set_permissions](../users.md); the line of the log has the "
        "user and the permission; another name instead of `amq.`",
    ),
    errors.NotFound: Advice(
        "the queue, exchange, consumer or virtual host does not exist, here or any more",
        "declare it first, in the virtual host of the connection; `gatewayctl list_queues -p VHOST`",
    ),
    errors.ResourceLocked: Advice(
        "an exclusive queue of another connection",
        "another name, or the connection that declared it; it ends with that connection",
    ),
    errors.PreconditionFailed: Advice(
        "the entity exists with other properties, or an argument or a value is out of its range",
        "declare it as it is, or delete it; [arguments](arguments.md) and [queues.md](../queues.md) have the values",
    ),
    errors.NotAllowed: Advice(
        "refused for each user: a limit is reached, or the request contradicts the state of the connection",
        "raise [the limit](../configuration.md#limits), or close what is not needed: `gatewayctl list_vhost_limits`, "
        "`list_user_limits`",
    ),
    errors.CommandInvalid: Advice(
        "the request cannot be executed, such as an unknown exchange type",
        "enable [the plugin](../plugins/README.md#built-in-plugins) that supplies the type",
    ),
    errors.NotImplementedHere: Advice(
        "a part of the protocol that this broker does not have",
        "[amqp.md](../protocols/amqp.md#errors) has the replacements",
    ),
    errors.InternalError: Advice(
        "a fault of the broker or of a plugin; the request was not completed",
        "the log has the traceback; report it with `gatewayctl report`",
    ),
    errors.ProtocolViolation: Advice(
        "the peer sent bytes that the protocol does not allow; the connection closes",
        "the client's library or its port: AMQP, MQTT, STOMP and TLS have ports of their own",
    ),
    errors.ConfigurationError: Advice(
        "a setting, a file of definitions or a plugin is wrong; the broker does not start, a reload changes nothing",
        "`gateway check --config FILE` names the key and the allowed values",
    ),
    errors.StorageError: Advice(
        "the store cannot be opened, read or written",
        "free the disk or repair it: [operations.md](../operations.md#alarms), "
        "[gateway repair](gateway.md#repair-check)",
    ),
}


def page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    yield "## Kinds\n"
    yield from table(("Kind", "Meaning", "Cause", "Cure"), map(_advice, ADVICE))
    yield "\n## Codes\n"
    yield "An AMQP code with a star closes the connection; the others close the channel. MQTT 3.x closes the"
    yield "connection, or refuses a subscription with 0x80.\n"
    yield from table(("Kind", "AMQP", "MQTT 5", "STOMP", "HTTP"), map(_codes, REFUSALS))
    yield "\n## Reply codes of AMQP\n"
    yield from table(("Code", "Closes"), ((code(f"{each} {REPLY_NAMES[each]}"), _closes(each)) for each in REPLY_NAMES))
    yield "\n## Reason codes of MQTT 5\n"
    yield "Those from 0x80 on are errors.\n"
    yield from table(("Code", "Name"), ((code(f"0x{each:02X}"), _words(each.name)) for each in ReasonCode))
    yield from _texts()


def _texts() -> Iterator[str]:
    """Yield a table for each kind. :raises MissingCure: if a text has no cause and cure."""
    names = [kind.__name__ for kind in ADVICE]
    found = sorted(set(error_texts(set(names))))
    for name in names:
        yield f"\n## Texts of {name}\n"
        modules: dict[str, list[str]] = {}
        for kind, text, module in found:
            if kind == name:
                modules.setdefault(text, []).append(module)
        if modules:
            yield "Words in capitals stand for values.\n"
            columns = ("Text", "Cause", "Cure", "Module")
            yield from table(columns, (_row(name, text, where) for text, where in modules.items()))
        else:
            yield "The text is that of the fault."


def _row(kind: str, text: str, modules: list[str]) -> tuple[str, str, str, str]:
    cure = cure_of(kind, text)
    return _quoted(text), cure.cause, cure.cure, ", ".join(map(code, modules))


def _advice(kind: type[GatewayError]) -> tuple[str, str, str, str]:
    title = kind.__name__
    return f"[{title}](#texts-of-{title.lower()})", (kind.__doc__ or "").rstrip("."), *ADVICE[kind]


def _codes(kind: type[Refused]) -> tuple[str, str, str, str, str]:
    reply = REPLY_CODES[kind]
    status, error = STATUSES[kind]
    mqtt = REFUSALS[kind]
    star = "*" if reply in HARD else ""
    amqp = code(f"{reply} {REPLY_NAMES[reply]}{star}")
    return kind.__name__, amqp, code(f"0x{mqtt:02X}"), code(MESSAGES[kind]), code(f"{status} {error}")


def _closes(reply: int) -> str:
    if reply in HARD or reply in VIOLATION_CODES.values():
        return "connection"
    return "" if reply in (312, 313) else "channel"


def _words(name: str) -> str:
    return name.lower().replace("_", " ")


def _quoted(text: str) -> str:
    """Return a text as code, which may have backticks in it."""
    line = " ".join(text.split())
    return f"`` {line} ``" if "`" in line else code(line)
