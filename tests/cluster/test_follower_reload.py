"""A follower that reads its configuration again changes everything or nothing."""

from pathlib import Path

import pytest
from twisted.internet.testing import MemoryReactorClock

from gateway.config import Configured, Settings
from gateway.kernel.errors import ConfigurationError
from gateway.node.cluster.member import ClusterMember
from gateway.node.garbage_collector import GarbageCollector
from gateway.node.host import NodeHost


def test_a_log_file_that_cannot_be_opened_leaves_the_certificates_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Settings()
    after = before.model_copy(update={"log": before.log.model_copy(update={"file": tmp_path / "missing" / "log"})})
    configured = Configured(before, {})
    member = ClusterMember(
        configured, MemoryReactorClock(), GarbageCollector(), lambda: Configured(after, {}), NodeHost()
    )
    renewed: list[Settings] = []
    monkeypatch.setattr(member._ports, "renewed", lambda settings: lambda: renewed.append(settings))
    with pytest.raises(ConfigurationError, match="log"):
        member.reload()
    assert renewed == []
    assert member.settings is before
