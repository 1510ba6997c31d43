"""The rules of an archive, by the name of its exchange or queue."""

from gateway.archive.redaction import BodyRule, rules_of

RULES = [BodyRule.parse(text) for text in ("orders eu.* $.card", "order* * $.a", "* us $", "amq.topic * $.b")]


def test_rules_are_those_of_the_name() -> None:
    assert rules_of(RULES, "orders") == [("eu.*", "$.card"), ("*", "$.a"), ("us", "$")]
    assert rules_of(RULES, "amq-topic") == [("us", "$")]
    assert rules_of(RULES, "amq.topic") == [("us", "$"), ("*", "$.b")]
