"""The cells of a cluster: each has a log and a leader, and each virtual host is in one of them.

The records are in the metadata, so that each node knows them. Those of virtual hosts change by compare-and-set alone;
users and all else that has no virtual host are written by the leader of the first cell, and read by the others.
"""

from gateway.cluster.cells.count import cell_count
from gateway.cluster.cells.handovers import Handover, HandoverRecords
from gateway.cluster.cells.shared_records import SharedRecord, SharedRecords, SharedWriter
from gateway.cluster.cells.spreading import moves
from gateway.cluster.cells.user_figures import UserFigures, decode_figures, frames_of
from gateway.cluster.cells.vhost_records import VhostPlace, VhostRecords, VhostState

__all__ = [
    "Handover",
    "HandoverRecords",
    "SharedRecord",
    "SharedRecords",
    "SharedWriter",
    "UserFigures",
    "VhostPlace",
    "VhostRecords",
    "VhostState",
    "cell_count",
    "decode_figures",
    "frames_of",
    "moves",
]
