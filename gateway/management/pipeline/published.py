"""The batches that were published already, and the checks that all ways of publishing share."""

from typing import Final

from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.errors import bad_request
from gateway.management.http.routes import Fields
from gateway.management.pipeline.batches import BatchIdentity, StagedBatch

DUPLICATE: Final[Fields] = {"published": 0, "duplicate": True}
"""The answer to a batch that was published before."""


def is_published(vhost: VirtualHost, identity: BatchIdentity | None) -> bool:
    """Return whether a batch, or a later one of the same query, was published; one without an identity never was."""
    return identity is not None and vhost.producers.has_published(identity.producer, identity.query, identity.batch)


def note_published(vhost: VirtualHost, batch: StagedBatch, memory_ms: int) -> None:
    """Record the identity of a batch, in the same turn as its last messages; forget those of old batches."""
    if batch.identity is not None:
        vhost.producers.published(batch.identity.producer, batch.identity.query, batch.identity.batch)
        vhost.producers.forget(memory_ms)


def require_count(batch: StagedBatch, staged: int) -> None:
    """Check the number of staged rows. :raises HttpError: if it is not that of the batch."""
    if staged != batch.rows:
        raise bad_request(f"the batch has {batch.rows} rows, but {staged} were staged")
