"""Settings of the audit record."""

from typing import Annotated

from pydantic import Field

from gateway.config.kinds import AuditPaths, Live, Size
from gateway.config.section import Section


class AuditSettings(Section):
    """The record of the changes that operators make, see docs/audit.md."""

    max_entries: Live[Annotated[int, Field(ge=0, le=10_000_000)]] = 10_000
    """Entries that are kept; the oldest is dropped for a later one. 0 records nothing."""

    max_bytes: Live[Annotated[Size, Field(ge=2**16, le=10**12)]] = 16 * 2**20
    """Size of all entries, in the store and in memory."""

    max_age_s: Live[Annotated[int, Field(ge=0, le=10**10)]] = 90 * 86400
    """Age at which an entry is dropped, in seconds; 0 for no limit."""

    longest_entry: Live[Annotated[Size, Field(ge=1024, le=2**20)]] = 16 * 2**10
    """Size of an entry above which the states before and after the change are left out."""

    redact: Live[AuditPaths] = Field(default_factory=list)
    """Parts of states and requests that are replaced by ``***`` before an entry is recorded: action and path."""

    client_topology: Live[bool] = False
    """Whether exchanges, queues and bindings that AMQP and STOMP clients create and delete are recorded, and purges."""

    client_sessions: Live[bool] = False
    """Whether the queues and bindings of MQTT sessions are recorded, such as those of subscriptions."""
