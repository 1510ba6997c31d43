"""The nodes of a cluster, and the one of them that leads: it owns the log, and the others forward to it.

``Members`` says which nodes are alive, which is a suspicion. ``Leadership`` elects a leader. The claim of the log
decides who leads; the lease says when another node may try.
"""

from gateway.cluster.leadership.contact import Contact, ContactListener
from gateway.cluster.leadership.leadership import Leadership, LeadershipListener
from gateway.cluster.leadership.lease import LEADER_LOG, LEASE_KEY, Lease, lease_key
from gateway.cluster.leadership.maintenance import MaintenanceRecords
from gateway.cluster.leadership.member import Address, Member, Role
from gateway.cluster.leadership.members import Members
from gateway.cluster.leadership.pulse import Start
from gateway.cluster.leadership.standing import Standing

__all__ = [
    "LEADER_LOG",
    "LEASE_KEY",
    "Address",
    "Contact",
    "ContactListener",
    "Leadership",
    "LeadershipListener",
    "Lease",
    "MaintenanceRecords",
    "Member",
    "Members",
    "Role",
    "Standing",
    "Start",
    "lease_key",
]
