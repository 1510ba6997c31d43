"""Connections, channels and consumers as the API shows them."""

from typing import NamedTuple

from gateway.kernel.broker.connections import ChannelInfo, Peer
from gateway.kernel.messages.origin import Origin
from gateway.kernel.queueing.consumer import Consumer
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields
from gateway.management.scope import ApiContext
from gateway.management.statistics.counts import channel_counts, octets
from gateway.management.statistics.subjects import channel_key, key_of
from gateway.management.views.collection import garbage_collection
from gateway.management.views.numbers import DELIVERIES, OCTETS, PUBLISHES, with_rates
from gateway.management.views.times import stamp
from gateway.management.views.tls import tls_fields


class OpenChannel(NamedTuple):
    """A channel and the connection it is on."""

    peer: Peer
    facts: ChannelInfo

    @property
    def name(self) -> str:
        """What tools call it."""
        return f"{self.peer.name} ({self.facts.number})"

    @property
    def origin(self) -> Origin:
        """Where it is, as consumers tell it."""
        return Origin(self.peer.name, self.facts.number, self.peer.user_name, self.peer.info().protocol)


def connection_view(call: Call, peer: Peer) -> Fields:
    """Return a connection."""
    facts, counts = peer.info(), octets(peer)
    fields = with_rates(counts, counts, call.trend(key_of(peer)), OCTETS) | tls_fields(facts.tls)
    name = facts.client_properties.get("connection_name")
    if isinstance(name, str):
        fields["user_provided_name"] = name
    if facts.variables:
        fields["variable_map"] = dict(facts.variables)
    return fields | {
        "auth_mechanism": facts.auth_mechanism,
        "channel_max": facts.channel_max,
        "channels": peer.channel_count,
        "client_properties": dict(facts.client_properties),
        "connected_at": facts.connected_at_ms,
        "frame_max": facts.frame_max,
        "host": facts.host,
        "name": peer.name,
        "garbage_collection": garbage_collection(call.context.statistics.collections),
        "node": call.broker.node,
        "peer_host": facts.peer_host,
        "peer_port": facts.peer_port,
        "port": facts.port,
        "protocol": facts.protocol,
        "recv_cnt": facts.received[1],
        "send_cnt": facts.sent[1],
        "send_pend": facts.pending,
        "ssl": facts.is_tls,
        "state": facts.state,
        "timeout": facts.timeout_s,
        "type": "network",
        "user": peer.user_name,
        "user_who_performed_action": peer.user_name,
        "vhost": peer.vhost_name,
    }


def channel_view(call: Call, channel: OpenChannel) -> Fields:
    """Return a channel."""
    peer, facts = channel
    connection, key = peer.info(), channel_key(channel.peer, facts.number)
    counts = channel_counts(facts)
    idle_since_ms = call.context.statistics.idle_since_ms(key)
    fields: Fields = {
        "acks_uncommitted": facts.acks_uncommitted,
        "confirm": facts.is_confirming,
        "connection_details": {
            "name": peer.name,
            "peer_host": connection.peer_host,
            "peer_port": connection.peer_port,
        },
        "consumer_count": len(facts.consumers),
        "garbage_collection": garbage_collection(call.context.statistics.collections),
        "global_prefetch_count": facts.shared_prefetch,
        "messages_unacknowledged": facts.unacknowledged,
        "messages_uncommitted": facts.uncommitted,
        "messages_unconfirmed": facts.unconfirmed,
        "name": channel.name,
        "node": call.broker.node,
        "number": facts.number,
        "pending_raft_commands": 0,
        "prefetch_count": facts.prefetch,
        "state": "running",
        "transactional": facts.is_transactional,
        "user": peer.user_name,
        "user_who_performed_action": peer.user_name,
        "vhost": peer.vhost_name,
    }
    if idle_since_ms is not None:
        fields["idle_since"] = stamp(idle_since_ms)
    shown = [name for half in (PUBLISHES, DELIVERIES) if any(counts[name] for name in half) for name in half]
    if shown:
        fields["message_stats"] = with_rates(shown, counts, call.trend(key))
    return fields


def consumer_view(context: ApiContext, consumer: Consumer) -> Fields:
    """Return a consumer."""
    queue = consumer.queue
    is_active = queue.consumers.is_active(consumer)
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
    """Return where a channel is, for what belongs to it; what has no channel stands under its connection's name."""
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
