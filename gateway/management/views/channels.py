"""Connections, channels and consumers as the API shows them."""

from typing import NamedTuple

from gateway.kernel.connections import ChannelFacts, Peer
from gateway.kernel.consumers import Consumer
from gateway.management.routes import Fields
from gateway.management.scope import Surroundings
from gateway.management.statistics import counted
from gateway.management.views.numbers import DELIVERIES, PUBLISHES, with_rates

_NO_RATES: dict[str, float] = {}


class OpenChannel(NamedTuple):
    """A channel and the connection it is on."""

    peer: Peer
    facts: ChannelFacts

    @property
    def name(self) -> str:
        """What tools call it."""
        return f"{self.peer.name} ({self.facts.number})"


def connection_view(surroundings: Surroundings, peer: Peer) -> Fields:
    """Return a connection."""
    facts = peer.facts()
    octets = {"recv_oct": facts.received[0], "send_oct": facts.sent[0]}
    fields = with_rates(octets, octets, surroundings.statistics.rates(peer))
    name = facts.client_properties.get("connection_name")
    if isinstance(name, str):
        fields["user_provided_name"] = name
    return fields | {
        "auth_mechanism": facts.auth_mechanism,
        "channel_max": facts.channel_max,
        "channels": peer.channel_count,
        "client_properties": dict(facts.client_properties),
        "connected_at": facts.connected_at_ms,
        "frame_max": facts.frame_max,
        "host": facts.host,
        "name": peer.name,
        "node": surroundings.broker.node,
        "peer_cert_issuer": None,
        "peer_cert_subject": None,
        "peer_cert_validity": None,
        "peer_host": facts.peer_host,
        "peer_port": facts.peer_port,
        "port": facts.port,
        "protocol": facts.protocol,
        "recv_cnt": facts.received[1],
        "send_cnt": facts.sent[1],
        "send_pend": facts.pending,
        "ssl": facts.is_tls,
        "ssl_cipher": None,
        "ssl_hash": None,
        "ssl_key_exchange": None,
        "ssl_protocol": None,
        "state": facts.state,
        "timeout": facts.timeout_s,
        "type": "network",
        "user": peer.user_name,
        "user_who_performed_action": peer.user_name,
        "vhost": peer.vhost_name,
    }


def channel_view(surroundings: Surroundings, channel: OpenChannel) -> Fields:
    """Return a channel."""
    peer, facts = channel
    connection = peer.facts()
    counts = counted(facts.counters)
    fields: Fields = {
        "acks_uncommitted": facts.acks_uncommitted,
        "confirm": facts.is_confirming,
        "connection_details": {
            "name": peer.name,
            "peer_host": connection.peer_host,
            "peer_port": connection.peer_port,
        },
        "consumer_count": len(facts.consumers),
        "global_prefetch_count": facts.shared_prefetch,
        "messages_unacknowledged": facts.unacknowledged,
        "messages_uncommitted": facts.uncommitted,
        "messages_unconfirmed": facts.unconfirmed,
        "name": channel.name,
        "node": surroundings.broker.node,
        "number": facts.number,
        "prefetch_count": facts.prefetch,
        "state": "running",
        "transactional": facts.is_transactional,
        "user": peer.user_name,
        "user_who_performed_action": peer.user_name,
        "vhost": peer.vhost_name,
    }
    if any(counts.values()):
        counts |= {
            "confirm": facts.confirmed,
            "return_unroutable": facts.returned,
            "drop_unroutable": facts.unroutable,
        }
        shown = (*PUBLISHES, *DELIVERIES) if facts.counters.publish else DELIVERIES
        fields["message_stats"] = with_rates(shown, counts, _NO_RATES)
    return fields


def detailed_channel_view(surroundings: Surroundings, channel: OpenChannel) -> Fields:
    """Return a channel with its consumers."""
    consumers = [consumer_view(surroundings, consumer) for consumer in channel.facts.consumers]
    return channel_view(surroundings, channel) | {"consumer_details": consumers}


def consumer_view(surroundings: Surroundings, consumer: Consumer) -> Fields:
    """Return a consumer."""
    origin, queue = consumer.subscriber.origin, consumer.queue
    is_active = queue.consumers.is_active(consumer)
    peer_host, _, peer_port = origin.connection.partition(" -> ")[0].rpartition(":")
    return {
        "ack_required": consumer.needs_settling,
        "active": is_active,
        "activity_status": "up" if is_active else "waiting",
        "arguments": dict(consumer.arguments),
        "channel_details": {
            "connection_name": origin.connection,
            "name": f"{origin.connection} ({origin.channel})",
            "node": surroundings.broker.node,
            "number": origin.channel,
            "peer_host": peer_host,
            "peer_port": int(peer_port) if peer_port.isdigit() else 0,
            "user": origin.user,
        },
        "consumer_tag": consumer.tag,
        "exclusive": consumer.is_exclusive,
        "prefetch_count": consumer.credit.limit,
        "queue": {"name": queue.name, "vhost": queue.vhost_name},
    }
