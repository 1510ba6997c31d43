"""The secret by which the nodes of a cluster recognise each other. Each client of the engine can read it."""

import secrets
from typing import Final

from gateway.cluster.errors import ClusterMismatch, Outdated, Unanswered
from gateway.cluster.metadata import NEVER, Key, Metadata

_KEY: Final[Key] = ("secret", "forwarding")
_BYTES: Final = 32


async def forwarding_secret(metadata: Metadata) -> str:
    """Return the secret, which the first node writes.

    :raises Unanswered: if the engine does not answer.
    :raises ClusterMismatch: if the record cannot be read.
    """
    secret = secrets.token_hex(_BYTES)
    try:
        await metadata.put(_KEY, secret.encode(), NEVER)
    except Outdated:
        entry = await metadata.get(_KEY)
        if entry is None:
            raise Unanswered("the secret of the cluster cannot be read yet") from None
        found = (entry.value or b"").decode("ascii", "replace")
        if len(found) != 2 * _BYTES:
            raise ClusterMismatch("the secret of the cluster was damaged or deleted") from None
        return found
    return secret
