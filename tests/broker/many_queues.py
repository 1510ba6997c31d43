"""A store with many queues, written without a broker process, which makes the next start slow."""

from pathlib import Path

from gateway.access.passwords import DEFAULT_ALGORITHM, hash_password
from gateway.kernel.journal.changes import Put
from gateway.kernel.journal.records.access import PermissionRecord, UserRecord
from gateway.kernel.journal.records.topology import BindingRecord, QueueRecord, VhostRecord
from gateway_lmdb import LmdbStore

_STEP = 5_000


def fill(data: Path, queues: int) -> None:
    """Create a data directory with the user guest and durable queues ``q0``, ``q1``, ... with one binding each."""
    data.mkdir(mode=0o700)
    store = LmdbStore(data, call_in_kernel=lambda call: None)
    user = UserRecord("guest", hash_password("guest"), DEFAULT_ALGORITHM, ["administrator"], {})
    permission = PermissionRecord("/", "guest", ".*", ".*", ".*")
    store.append([Put(VhostRecord("/", "", [], "", False, {}, {})), Put(user), Put(permission)])
    for first in range(0, queues, _STEP):
        names = [f"q{number}" for number in range(first, min(first + _STEP, queues))]
        records = [Put(QueueRecord("/", name, number + first + 1, False, {})) for number, name in enumerate(names)]
        bindings = [Put(BindingRecord("/", "amq.topic", "queue", name, f"{name}.#", {})) for name in names]
        store.append([*records, *bindings])
    store.close()
