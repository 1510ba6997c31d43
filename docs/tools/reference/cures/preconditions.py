"""Cures of failed preconditions."""

from collections.abc import Sequence
from typing import Final

from docs.tools.reference.cures.cure import Cure

_ARGUMENTS: Final = "[arguments](arguments.md) has the names; the page of the queue type has the values"
_LEADER: Final = "`gatewayctl cluster_status` shows who leads and who is alive"

PRECONDITIONS: Final[Sequence[Cure]] = (
    Cure(
        "^inequivalent arg",
        "the entity exists with another value",
        "declare it with the same value, or delete it first",
    ),
    Cure(
        "^ENTITY in use|in use$",
        "it has consumers or bindings, and `if-unused` was set",
        "cancel and unbind first, or delete without it",
    ),
    Cure("not empty$", "it has messages, and `if-empty` was set", "consume or purge first, or delete without it"),
    Cure(
        "limit .*is reached|limit of exclusive",
        "a limit of the user, virtual host, connection or node is reached",
        "delete what is not needed, or raise the limit: `gatewayctl list_vhost_limits`, `list_user_limits`, `limits.*`",
    ),
    Cure(
        "protected from deletion",
        "the virtual host is protected",
        "`gatewayctl disable_vhost_protection_from_deletion`",
    ),
    Cure("being deleted", "it is deleted in the background", "try again when it is gone"),
    Cure(
        "max size|has SIZE bytes; the limit",
        "the message is larger than the broker takes",
        "`amqp.max_message_size`, or send smaller ones",
    ),
    Cure("is not transactional", "a commit or rollback comes before `tx.select`", "`tx.select` first"),
    Cure("transactional|cannot switch", "a channel is either transactional or has confirms", "use another channel"),
    Cure(
        "open transactions",
        "transactions and bodies of the connection are larger than `amqp.max_held_size`",
        "commit more often",
    ),
    Cure(
        "unknown delivery tag",
        "the delivery was acknowledged already, on another channel, or consumed without acknowledgement",
        "acknowledge once, on the channel of the delivery; `auto_ack=False`",
    ),
    Cure(
        "not acknowledged", "the client takes deliveries and never acknowledges", "acknowledge them, and set a prefetch"
    ),
    Cure(
        "reply",
        "a client of direct replies uses the pseudo-queue wrongly",
        "consume from `amq.rabbitmq.reply-to` once, without acknowledgement, before the request",
    ),
    Cure(
        "user_id",
        "the property `user_id` is not that of the login",
        "leave it out, or give the user the tag `impersonator`",
    ),
    Cure(
        "prefetch count", "a consumer of a stream needs a prefetch", "`basic.qos` with a count before `basic.consume`"
    ),
    Cure("offset OFFSET", "the offset is no position of a stream", "`first`, `last`, `next`, a number, or a time"),
    Cure(
        "segment-size|stream-filter-size|invalid arg|invalid property|invalid type|WRONG in ENTITY|"
        "invalid value of WHAT|^invalid arguments|^WHAT",
        "an argument has a value that it cannot have, or that this queue type does not support",
        _ARGUMENTS,
    ),
    Cure(
        "the value of 'NAME' FAULT",
        "a setting of a plugin's queue feature is refused by the plugin",
        "the text ends with its reason",
    ),
    Cure(
        "x-match|Binding keys|binding key|Non empty binding|binding to x-jms|cannot parse GIVEN|GIVEN must be|"
        "exactly one",
        "the key or the arguments of a binding do not fit the exchange type",
        "[exchange types](../plugins/exchange-types.md) has the form of each",
    ),
    Cure("Destination not found", "an exchange of this type binds queues only", "bind a queue"),
    Cure(
        "partitions|named (PARTITION_)?NAME",
        "a super stream cannot be made in this way",
        "other names, and either partitions or keys: [super streams](../streams.md#super-streams)",
    ),
    Cure(
        "hash-header|Unsupported property|NAME must be a string|Invalid argument|COMPLAINT",
        "an argument of the exchange has a value that its type does not take",
        "[exchange types](../plugins/exchange-types.md) has the arguments",
    ),
    Cure(
        "is inert|EXCHANGE_NAME' in vhost 'EXCHANGE_VHOST_NAME'",
        "the plugin of the exchange type is missing, or fails for this exchange",
        "the text ends with the reason: enable or correct the plugin",
    ),
    Cure(
        "reaches no queue",
        "a batch must be routed, and no binding matches",
        "bind a queue, or publish without that demand",
    ),
    Cure(
        "expiration",
        "the expiration is not a number of milliseconds in this range",
        "a text of digits, such as `60000`",
    ),
    Cure(
        "^header 'NAME'|header 'priority'|header 'timestamp'",
        "the value of a STOMP header is out of its range",
        "[stomp.md](../protocols/stomp.md) has the values",
    ),
    Cure(
        "invalid message|SUBJECT|nested|tables and lists|routing key of|64 bits|name of SIZE bytes|"
        "name of a consumer must|cannot be stored",
        "a name or value cannot be stored: too long, too many, too deep, or of a type without an encoding",
        "shorten or simplify it to the bound in the text",
    ),
    Cure(
        "regular expression|pattern 'PATTERN'",
        "the pattern is not RE2, or too large",
        "[the rules of patterns](../management.md#regular-expressions)",
    ),
    Cure(
        "Validation failed|Unrecognised terms|should be a number|RECORD_NAME|invalid COMPONENT|has the parameter",
        "a policy, a limit or a parameter has an unknown key or a wrong value",
        "the text names it; [arguments](arguments.md#keys-of-policies) has the keys of policies",
    ),
    Cure("default queue type", "there is no such type", "`classic`, `quorum` or `stream`"),
    Cure(
        "plugin",
        "the plugin cannot be changed in this way now",
        "`gatewayctl plugin list` shows its state and whether it is a file",
    ),
    Cure("cannot be opened", "the system refuses the file, for the reason in the text", "correct the cause"),
    Cure(
        "traces already",
        "as many traces in files run as may run",
        "`DELETE /api/traces/VHOST/NAME` ends one: [tracing](../tracing.md)",
    ),
    Cure(
        "trace|name of a file|file 'NAME'",
        "the file of a trace has a wrong name, or another trace has it",
        "another name; `DELETE /api/traces/VHOST/NAME` ends a trace: [tracing](../tracing.md)",
    ),
    Cure(
        "workbench|action NUMBER|^FULL",
        "the workbench is busy, or keeps all the undone actions that it may",
        "wait for the job, or forget an action: [workbench](../workbench.md)",
    ),
    Cure("cell|leader|node|changed by the leader", "the cluster is not in the state that the request needs", _LEADER),
    Cure(
        "JSON object",
        "the body of the request is not a JSON object",
        "send `{...}`; [the HTTP API](http.md) has the fields",
    ),
)
