"""The record of a node, which it writes itself."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from typing import Final, TypeAlias

from gateway.cluster.metadata import Key

#: The keys of the records begin with this part.
NODE: Final = "node"

Address: TypeAlias = tuple[str, int]
"""A host and a port."""


class Role(Enum):
    """The role of a node in the election of a leader."""

    FOLLOWER = "follower"
    CANDIDATE = "candidate"
    LEADER = "leader"


@dataclass(frozen=True, slots=True)
class Member:
    """A node of the cluster.

    ``instance`` differs for each start of a process, and tells two nodes with one name apart. ``addresses`` are those
    for clients, by the name of the listener; at ``forwarding`` it takes the connections that other nodes forward.
    ``is_eligible`` says whether it may become the leader. ``figures`` are for operators. ``fingerprint`` is
    that of its certificate for connections of other nodes. ``process`` is a mark by which the next process of this node
    can tell that this one has ended; empty if there is none.
    """

    name: str
    instance: str
    forwarding: Address
    addresses: Mapping[str, Address] = field(default_factory=dict)
    version: str = ""
    beat: int = 0
    role: Role = Role.FOLLOWER
    is_eligible: bool = True
    figures: Mapping[str, int] = field(default_factory=dict)
    fingerprint: str = ""
    process: str = ""


def member_key(name: str) -> Key:
    """Return the key of a node's record."""
    return (NODE, name)


def encode_member(member: Member) -> bytes:
    """Return the record of a node as JSON."""
    fields = {
        "name": member.name,
        "instance": member.instance,
        "forwarding": list(member.forwarding),
        "addresses": {name: list(address) for name, address in member.addresses.items()},
        "version": member.version,
        "beat": member.beat,
        "role": member.role.value,
        "eligible": member.is_eligible,
        "figures": dict(member.figures),
        "fingerprint": member.fingerprint,
        "process": member.process,
    }
    return json.dumps(fields).encode()


def decode_member(data: bytes) -> Member | None:
    """Return the node of a record; ``None`` if it cannot be read. Unknown fields are ignored."""
    try:
        fields = json.loads(data)
        return Member(
            str(fields["name"]),
            str(fields["instance"]),
            decode_address(fields["forwarding"]),
            {str(name): decode_address(address) for name, address in fields["addresses"].items()},
            str(fields["version"]),
            int(fields["beat"]),
            Role(fields["role"]),
            bool(fields["eligible"]),
            {str(name): int(value) for name, value in fields.get("figures", {}).items()},
            str(fields.get("fingerprint", "")),
            str(fields.get("process", "")),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def decode_address(field_value: object) -> Address:
    """Return the address in a JSON list. :raises ValueError: if it is none."""
    if not isinstance(field_value, list) or len(field_value) != 2:
        raise ValueError(f"not an address: {field_value!r}")
    host, port = field_value
    if not isinstance(host, str) or type(port) is not int:
        raise ValueError(f"not an address: {field_value!r}")
    return host, port


def rank(name: str, others: Iterable[str], epoch: int, shift: int = 0) -> int:
    """Return how many of the others come before a node in an election: rendezvous hashing, another order each epoch.

    The first ``shift`` nodes of that order come last, so that elections at the same time have different winners.
    """

    def weight(node: str) -> bytes:
        return sha256(f"{epoch}/{node}".encode()).digest()

    own = weight(name)
    compared = [weight(other) > own for other in others if other != name]
    return (sum(compared) - shift) % (len(compared) + 1)
