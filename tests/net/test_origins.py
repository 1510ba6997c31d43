"""Host and Origin headers: the names and addresses that belong to this machine."""

from pathlib import Path

import pytest

from gateway.net import origins
from gateway.net.origins import OriginRules, name_of


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost:15672", "localhost"), ("EXAMPLE.com", "example.com"), ("[::1]:80", "::1"), ("a.b.:1", "a.b"),
        ("", ""), ("a@b", ""), ("a/b", ""), ("a:b", ""), ("[::1", ""), ("a?b", ""), ("x:99999", ""),
    ],
)  # fmt: skip
def test_a_host_header_is_reduced_to_its_name(host: str, name: str) -> None:
    assert name_of(host) == name


def test_names_in_the_hosts_file_belong_to_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n127.0.1.1 Broker.example broker # evil.example\n\n")
    monkeypatch.setattr(origins, "_HOSTS", hosts)
    origins._own_names.cache_clear()
    try:
        rules = OriginRules()
        said = [rules.refusal(f"{name}:15672", None, is_local=True) for name in ("broker.example", "broker")]
        assert said == [None, None]
        assert rules.refusal("evil.example:15672", None, is_local=True) is not None
    finally:
        origins._own_names.cache_clear()


@pytest.mark.parametrize(
    ("origin", "host", "is_own"),
    [
        ("http://a.example", "a.example", True), ("http://a.example:80", "a.example", True),
        ("https://a.example", "a.example:443", True), ("https://a.example", "a.example", True),
        ("http://a.example:15672", "a.example:15672", True), ("http://a.example", "a.example:15672", False),
        ("http://b.example", "a.example", False), ("null", "a.example", False), ("", "a.example", False),
        ("a.example", "a.example", False), ("http://a.example/x", "a.example", False), ("http://", "", False),
    ],
)  # fmt: skip
def test_a_page_of_the_same_host_and_port_is_allowed(origin: str, host: str, is_own: bool) -> None:
    assert (OriginRules().refusal(host, origin, is_local=False) is None) is is_own
