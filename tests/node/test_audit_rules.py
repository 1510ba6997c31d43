"""The rules of the audit record, from the settings."""

from gateway.config import Settings
from gateway.kernel.broker.audit_log import AuditRules
from gateway.node.audit import audit_rules


def test_the_default_settings_are_the_default_rules() -> None:
    assert audit_rules(Settings()) == AuditRules()


def test_sizes_are_numbers_of_bytes() -> None:
    settings = Settings.model_validate({"audit": {"max_bytes": "1MiB", "longest_entry": "2kB"}})
    rules = audit_rules(settings)
    assert (rules.max_bytes, rules.longest_entry) == (2**20, 2000)
