"""The number of snapshots of a table, which its metadata lists in each commit."""

from contextlib import suppress

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table


def expire_oldest(table: Table, kept: int) -> None:
    """Expire the oldest snapshots once a table has an eighth more than ``kept``; those of branches and tags stay.

    Their files stay until ``gateway archive tidy``.
    """
    snapshots = table.snapshots()
    if len(snapshots) <= kept + kept // 8:
        return
    pinned = {reference.snapshot_id for reference in table.refs().values()}
    by_age = sorted(snapshots, key=lambda snapshot: snapshot.timestamp_ms)
    oldest = [snapshot.snapshot_id for snapshot in by_age[:-kept] if snapshot.snapshot_id not in pinned]
    if oldest:
        with suppress(CommitFailedException):  # the next commit does it
            table.maintenance.expire_snapshots().by_ids(oldest).commit()
