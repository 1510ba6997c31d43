"""Cures of the errors of requests, but for failed preconditions."""

from collections.abc import Mapping, Sequence
from typing import Final

from docs.tools.reference.cures.cure import Cure

_REPORT: Final = "report it with `gatewayctl report`"
_PROXY: Final = "let the proxy send the PROXY protocol, or switch the setting `proxy_protocol` of the listener off"
_NODES: Final = "let all nodes have the same `cluster.name` and `cluster.servers`, and only nodes connect to that port"

REQUESTS: Final[Mapping[str, Sequence[Cure]]] = {
    "AccessRefused": (
        Cure(
            "exclusive use", "another consumer of the queue is exclusive, or this one wants to be", "cancel the other"
        ),
        Cure("reserved prefix", "names with `amq.` belong to the broker", "choose another name"),
        Cure("^access to RESOURCE", "the user lacks the permission", "`gatewayctl set_permissions`"),
        Cure(
            "internal exchange",
            "an internal exchange takes messages from other exchanges only",
            "publish to an exchange that is bound to it",
        ),
        Cure("system exchange|default exchange", "the broker needs this exchange", "use one of your own"),
        Cure(
            "belongs to another user",
            "another user has an MQTT session with this client identifier",
            "another client identifier; the other user's client can end its session with clean start",
        ),
    ),
    "NotFound": (
        Cure(
            "undone",
            "the action was undone, forgotten or is older than the record",
            "`gatewayctl messages undo` lists them",
        ),
        Cure("no job", "the job has ended or never was", "`GET /api/workbench/jobs` lists them"),
        Cure(
            "previously declared",
            "an empty name stands for the last queue that the channel declared",
            "declare a queue on this channel, or name one",
        ),
        Cure("no exchange", "it is not declared in this virtual host, or was deleted", "declare it before its use"),
        Cure(
            "no queue", "it is not declared in this virtual host, was deleted, or expired", "declare it before its use"
        ),
        Cure("no user", "the user does not exist", "`gatewayctl add_user`, or add it to the definitions"),
        Cure(
            "dynamic security",
            "a client or group has a role that the file does not define",
            "define it or remove it there",
        ),
        Cure("the cluster has no", "a wrong name or number", "`gatewayctl cluster_status` lists them"),
        Cure("was deleted", "the virtual host of the session was deleted meanwhile", "connect to another one"),
    ),
    "NotAllowed": (
        Cure(
            r"^access to vhost .*limit|user connection limit",
            "a limit of the virtual host or user is reached",
            "close connections, or raise it: `gatewayctl set_vhost_limits`, `set_user_limits`",
        ),
        Cure(
            "^access to vhost",
            "the user has no permissions in the virtual host, or an authorizer refuses it",
            "`gatewayctl set_permissions -p VHOST USER '.*' '.*' '.*'`",
        ),
        Cure(
            "reuse consumer tag",
            "two consumers of a channel have one tag",
            "another tag, or none: the broker makes one",
        ),
        Cure(
            "number of channels",
            "the connection or the user has too many channels",
            "close channels; raise `amqp.channel_max` or the limit of the user",
        ),
        Cure(
            "consumers per channel",
            "`limits.consumers_per_channel` is reached",
            "use further channels, or raise it",
        ),
        Cure("connection is closed", "a request came after the connection was closed", "connect again"),
        Cure(
            "new secret",
            "`connection.update-secret` has a token that is not valid or of another user",
            "send a new token of the same user",
        ),
        Cure(
            "sessions in vhost",
            "`mqtt.max_sessions_per_user` is reached",
            "end sessions: connect with clean start, or raise it",
        ),
        Cure(
            "cell must be 1",
            "definitions of a cluster with several cells are imported into one without",
            "remove `cell` from its virtual hosts",
        ),
        Cure("being deleted", "a virtual host is deleted in the background", "try again when it is gone"),
        Cure(
            "not found", "there is no such virtual host", "`gatewayctl add_vhost`; check the URL: `/` is written `%2F`"
        ),
    ),
    "CommandInvalid": (Cure("unimplemented", "AMQP 0-9-1 does not have the method", "update the client"),),
    "NotImplementedHere": (
        Cure(
            "global qos",
            "the queue does not support a prefetch for all consumers of a channel",
            "`global=false` in `basic.qos`",
        ),
        Cure("OPERATION not supported", "streams do not have the operation", "use a queue, or consume with an offset"),
        Cure(
            "automatic ack", "a stream needs acknowledgements as credit", "consume with acknowledgements and a prefetch"
        ),
        Cure(
            "active=false|immediate|prefetch_size|requeue=false",
            "a part of AMQP that RabbitMQ does not have either",
            "leave it at its default; [the replacements](../protocols/amqp.md#errors)",
        ),
        Cure(
            "selectors", "streams filter by values, not by selectors", "`x-stream-filter`, see [streams](../streams.md)"
        ),
    ),
    "InternalError": (
        Cure("migration was interrupted", "the process that migrated data ended", "start `gateway migrate` again"),
        Cure(
            "transient non-exclusive",
            "the settings do not permit such queues",
            "declare the queue durable or exclusive, or set `deprecated_features.permit_transient_nonexcl_queues`",
        ),
    ),
    "ProtocolViolation": (
        Cure("PROXY", "the listener expects the PROXY protocol, and got something else", _PROXY),
        Cure("node|introduction", "a peer at the port of nodes is no node of this cluster", _NODES),
        Cure(
            "new leader|relayed|agreed",
            "a connection could not be continued at the new leader",
            "the client connects again by itself",
        ),
        Cure(
            "mechanism|user name",
            "the client logs in in a way that the broker does not have, or wrongly",
            "PLAIN, AMQPLAIN, EXTERNAL or one of a plugin; names and passwords in UTF-8",
        ),
        Cure("head of a frame", "the broker and its worker process do not understand each other", _REPORT),
        Cure("message", "a stored header cannot be read: the store is damaged, or the broker has a fault", _REPORT),
    ),
}
