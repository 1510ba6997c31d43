"""A stream and its readers as the API shows them."""

from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.streams.stream import Stream
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields
from gateway.management.views.channels import consumer_view


def stream_fields(call: Call, stream: Stream) -> Fields:
    """Return what a queue of this type tells besides: where it begins and ends, and who keeps it."""
    node = call.broker.node
    return {
        "committed_offset": stream.durable_end - 1,
        "first_offset": stream.first_offset,
        "leader": node,
        "members": [node],
        "message_bytes": stream.size_bytes,
        "message_bytes_persistent": stream.size_bytes,
        "message_bytes_ready": stream.size_bytes,
        "messages_persistent": len(stream),
        "next_offset": stream.next_offset,
        "online": [node],
        "readers": {node: len(stream.consumers)},
        "segments": len(stream.segments),
    }


def tracking_view(stream: Stream) -> Fields:
    """Return the stored offsets of a stream's consumers; ``lags`` are how many messages each has yet to see."""
    return {"offsets": stream.offsets, "lags": stream.lag, "writers": {}}


def tracked_view(stream: Stream, consumer: str) -> Fields:
    """Return how far one of them got."""
    return {
        "consumer": consumer,
        "lag": stream.lag[consumer],
        "offset": stream.offsets[consumer],
        "queue": {"name": stream.name, "vhost": stream.vhost_name},
    }


def stream_consumer_view(call: Call, consumer: Consumer) -> Fields:
    """Return a consumer of a stream: ``offset`` is the last it was sent, ``offset_lag`` how much came since."""
    stream = consumer.queue
    assert isinstance(stream, Stream)
    next_offset = stream.cursor_of(consumer).next_offset
    return consumer_view(call.context, consumer) | {
        "consumed": consumer.counters.deliver,
        "credits": consumer.credit.limit - consumer.credit.used,
        "offset": next_offset - 1,
        "offset_lag": stream.durable_end - next_offset,
        "properties": {"name": consumer.arguments["x-stream-consumer"]}
        if "x-stream-consumer" in consumer.arguments
        else {},
        "subscription_id": consumer.tag,
    }
