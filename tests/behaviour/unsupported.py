"""Behaviour tests that a protocol cannot run, with the reasons."""

from collections.abc import Mapping, Set
from typing import Final

#: Tests that MQTT cannot run, by reason.
_MQTT: Final[Mapping[str, Set[str]]] = {
    "expirations below a second": {
        "test_a_message_expires_before_earlier_ones",
        "test_every_death_is_recorded",
        "test_messages_expire_at_the_head_by_default",
        "test_r109_a_dead_letter_has_no_expiration",
        "test_r53_an_expired_message_is_never_delivered",
        "test_r54_an_expired_message_is_removed_when_it_becomes_the_head",
        "test_r54_r158_a_message_waits_behind_one_that_lives_longer",
        "test_r55_expired_messages_behind_the_head_count",
        "test_r61_only_bodies_count",
        "test_the_time_to_live_starts_when_the_delay_is_over",
        "test_the_time_to_live_continues_across_a_restart",
        "test_consumed_messages_leave_no_stale_entries",
        "test_without_the_policy_messages_expire_at_the_head_again",
    },
    "headers that are not strings, and other properties": {
        "test_forged_death_headers_are_ignored",
        "test_r111_a_cycle_with_a_client_in_it_is_not_broken",
        "test_r106_a_dead_letter_routing_key_replaces_cc_and_bcc",
        "test_r108_an_entry_contains_all_fields",
        "test_r114_all_other_properties_are_unchanged",
    },
    "the exact exchange and types": {
        "test_the_shortest_time_to_live_applies",
        "test_a_queue_accepts_each_key_once_and_confirms_every_publish",
        "test_low_priority_messages_expire_independently_of_higher_ones",
        "test_a_policy_makes_waiting_messages_expire_anywhere",
        "test_r106_cc_and_bcc_are_kept_for_a_paged_message",
        "test_r107_deaths_in_one_queue_for_one_reason_are_counted_and_the_newest_comes_first",
        "test_r110_first_and_last_death_are_in_the_headers",
        "test_r57_a_directly_delivered_message_expires_after_it_is_requeued",
        "test_r77_higher_priorities_come_first_none_is_zero_and_excess_is_the_maximum",
        "test_r79_prefetched_messages_are_not_reordered",
        "test_r80_expired_messages_wait_behind_live_ones_of_higher_priority_and_count",
        "test_a_due_message_waits_while_the_queue_is_full",
        "test_an_unacknowledged_message_expires_when_it_is_requeued",
    },
    "transient messages with a confirm": {
        "test_a_restart_keeps_delayed_messages_and_their_times",
        "test_r105_without_a_dead_letter_routing_key_the_original_keys_are_used",
    },
    "priorities": {
        "test_a_long_quorum_queue_with_both_levels_loses_nothing",
        "test_a_requeued_message_of_a_quorum_queue_keeps_its_priority_level",
        "test_a_quorum_queue_serves_two_levels_of_priority",
        "test_a_policy_shortens_the_time_to_live_of_waiting_messages",
        "test_messages_in_the_middle_of_a_long_queue_expire",
        "test_r45_priorities_survive_a_restart",
        "test_r45_zero_is_accepted_and_makes_a_plain_queue",
        "test_r69_a_limit_drops_from_the_head_regardless_of_priority",
        "test_r76_without_the_argument_priority_is_ignored",
        "test_r78_a_policy_cannot_enable_priorities",
        "test_r81_a_requeued_message_returns_to_its_position",
        "test_r81_within_a_priority_the_order_is_that_of_arrival",
        "test_a_delayed_message_keeps_its_properties",
    },
}

#: Tests that STOMP cannot run, by reason.
_STOMP: Final[Mapping[str, Set[str]]] = {
    "headers that are not strings": {
        "test_a_queue_accepts_each_key_once_and_confirms_every_publish",
        "test_forged_death_headers_are_ignored",
        "test_r111_a_cycle_with_a_client_in_it_is_not_broken",
        "test_r105_without_a_dead_letter_routing_key_the_original_keys_are_used",
        "test_r106_cc_and_bcc_are_kept_for_a_paged_message",
        "test_r106_a_dead_letter_routing_key_replaces_cc_and_bcc",
        "test_r108_an_entry_contains_all_fields",
        "test_r114_all_other_properties_are_unchanged",
        "test_a_delayed_message_keeps_its_properties",
    },
}

#: Unsupported tests by protocol.
UNSUPPORTED: Final[Mapping[str, Set[str]]] = {
    "MQTT": frozenset().union(*_MQTT.values()),
    "STOMP": frozenset().union(*_STOMP.values()),
}
