"""JSON views of streams and their consumers."""

from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.streams.stream import Stream
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields
from gateway.management.views.channels import consumer_view


def stream_fields(call: Call, stream: Stream) -> Fields:
    """Return the additional fields of a stream: offsets, segments and readers."""
    return {
        "committed_offset": stream.durable_end - 1,
        "first_offset": stream.first_offset,
        "message_bytes": stream.size_bytes,
        "message_bytes_persistent": stream.size_bytes,
        "message_bytes_ready": stream.size_bytes,
        "messages_persistent": len(stream),
        "next_offset": stream.next_offset,
        "readers": {call.broker.node: len(stream.consumers)},
        "segments": len(stream.segments),
    }


def tracking_view(stream: Stream) -> Fields:
    """Return the stored offsets of a stream's consumers, with their lags in messages."""
    return {"offsets": stream.offsets, "lags": stream.lag, "writers": {}}


def tracked_view(stream: Stream, consumer: str) -> Fields:
    """Return the stored offset of one consumer."""
    return {
        "consumer": consumer,
        "lag": stream.lag[consumer],
        "offset": stream.offsets[consumer],
        "queue": {"name": stream.name, "vhost": stream.vhost_name},
    }


def stream_consumer_view(call: Call, stream: Stream, consumer: Consumer) -> Fields:
    """Return the view of a stream consumer: ``offset`` is the last one sent, ``offset_lag`` the messages after it."""
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
