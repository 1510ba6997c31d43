"""JSON views of connections, channels and consumers."""

from typing import NamedTuple

from gateway.kernel.broker.connections import ChannelInfo, Peer
from gateway.kernel.messages.origin import Origin
from gateway.kernel.queueing.consumer import Consumer
from gateway.management.context import ApiContext
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields
from gateway.management.statistics.counts import channel_counts, octets
from gateway.management.statistics.subjects import channel_key, key_of
from gateway.management.views.collection import garbage_collection
from gateway.management.views.numbers import DELIVERIES, OCTETS, PUBLISHES, with_rates
from gateway.management.views.times import timestamp
from gateway.management.views.tls import tls_fields


class OpenChannel(NamedTuple):
    """A channel and its connection."""

    peer: Peer
    info: ChannelInfo

    @property
    def name(self) -> str:
        """The name of the channel in RabbitMQ's form."""
        return f"{self.peer.name} ({self.info.number})"

    @property
    def origin(self) -> Origin:
        """The origin of its publishes and deliveries."""
        return Origin(self.peer.name, self.info.number, self.peer.user_name, self.peer.info().protocol)


def connection_view(call: Call, peer: Peer) -> Fields:
    """Return the view of a connection."""
    info, counts = peer.info(), octets(peer)
    fields = with_rates(counts, counts, call.trend(key_of(peer)), OCTETS) | tls_fields(info.tls)
    name = info.client_properties.get("connection_name")
    if isinstance(name, str):
        fields["user_provided_name"] = name
    if info.variables:
        fields["variable_map"] = dict(info.variables)
    return fields | {
        "auth_mechanism": info.auth_mechanism,
        "channel_max": info.channel_max,
        "channels": peer.channel_count,
        "client_properties": dict(info.client_properties),
        "connected_at": info.connected_at_ms,
        "frame_max": info.frame_max,
        "host": info.host,
        "name": peer.name,
        "garbage_collection": garbage_collection(call.context.statistics.collections),
        "node": call.broker.node,
        "peer_host": info.peer_host,
        "peer_port": info.peer_port,
        "port": info.port,
        "protocol": info.protocol,
        "recv_cnt": info.received[1],
        "send_cnt": info.sent[1],
        "send_pend": info.pending,
        "ssl": info.is_tls,
        "state": info.state,
        "timeout": info.timeout_s,
        "type": "network",
        "user": peer.user_name,
        "user_who_performed_action": peer.user_name,
        "vhost": peer.vhost_name,
    }


def channel_view(call: Call, channel: OpenChannel) -> Fields:
    """Return the view of a channel."""
    peer, info = channel
    connection, key = peer.info(), channel_key(channel.peer, info.number)
    counts = channel_counts(info)
    idle_since_ms = call.context.statistics.idle_since_ms(key)
    fields: Fields = {
        "acks_uncommitted": info.acks_uncommitted,
        "confirm": info.is_confirming,
        "connection_details": {
            "name": peer.name,
            "peer_host": connection.peer_host,
            "peer_port": connection.peer_port,
        },
        "consumer_count": len(info.consumers),
        "garbage_collection": garbage_collection(call.context.statistics.collections),
        "global_prefetch_count": info.shared_prefetch,
        "messages_unacknowledged": info.unacknowledged,
        "messages_uncommitted": info.uncommitted,
        "messages_unconfirmed": info.unconfirmed,
        "name": channel.name,
        "node": call.broker.node,
        "number": info.number,
        "pending_raft_commands": 0,
        "prefetch_count": info.prefetch,
        "state": "running",
        "transactional": info.is_transactional,
        "user": peer.user_name,
        "user_who_performed_action": peer.user_name,
        "vhost": peer.vhost_name,
    }
    if idle_since_ms is not None:
        fields["idle_since"] = timestamp(idle_since_ms)
    shown = [name for half in (PUBLISHES, DELIVERIES) if any(counts[name] for name in half) for name in half]
    if shown:
        fields["message_stats"] = with_rates(shown, counts, call.trend(key))
    return fields


def consumer_view(context: ApiContext, consumer: Consumer) -> Fields:
    """Return the view of a consumer."""
    queue = consumer.queue
    is_active = queue.is_active(consumer)
    return {
        "ack_required": consumer.needs_settling,
        "active": is_active,
        "activity_status": "up" if is_active else "waiting",
        "arguments": dict(consumer.arguments),
        "channel_details": channel_details(context, consumer.subscriber.origin),
        "consumer_tag": consumer.tag,
        "exclusive": consumer.is_exclusive,
        "prefetch_count": consumer.credit.limit,
        "queue": {"name": queue.name, "vhost": queue.vhost_name},
    }


def channel_details(context: ApiContext, origin: Origin) -> Fields:
    """Return the details of a channel; without a channel, the name is that of the connection."""
    peer_host, _, peer_port = origin.connection.partition(" -> ")[0].rpartition(":")
    return {
        "connection_name": origin.connection,
        "name": f"{origin.connection} ({origin.channel})" if origin.channel else origin.connection,
        "node": context.broker.node,
        "number": origin.channel,
        "peer_host": peer_host,
        "peer_port": int(peer_port) if peer_port.isdigit() else 0,
        "user": origin.user,
    }
