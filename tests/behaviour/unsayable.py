"""What a table of behaviour says that a publisher of some protocol cannot, and why: those rows have no such column."""

from collections.abc import Mapping, Set
from typing import Final

#: Reason to the tests that need what MQTT has not.
_MQTT: Final[Mapping[str, Set[str]]] = {
    "lives shorter than a second": {
        "test_a_message_need_not_wait_for_those_before_it",
        "test_every_death_is_on_record",
        "test_it_is_off_unless_asked_for",
        "test_r109_a_dead_letter_does_not_expire_again_by_itself",
        "test_r53_an_expired_message_is_never_delivered",
        "test_r54_an_expired_head_is_removed_as_soon_as_it_is_the_head",
        "test_r54_r158_a_message_waits_behind_one_that_lives_longer",
        "test_r55_what_is_expired_but_not_removed_counts",
        "test_r61_only_bodies_count",
        "test_the_time_to_live_begins_when_the_delay_is_over",
        "test_time_passes_across_a_restart",
        "test_what_was_consumed_leaves_nothing_behind",
        "test_without_the_policy_they_wait_for_the_head_again",
    },
    "headers that are no text, and other properties": {
        "test_headers_that_only_look_like_deaths_do_no_harm",
        "test_r111_a_circle_that_a_client_had_a_hand_in_goes_on",
        "test_r106_with_a_key_of_the_queue_copies_are_forgotten",
        "test_r108_an_entry_says_everything_there_is_to_say",
        "test_r114_everything_else_stays_as_it_was_published",
    },
    "the exchange and the types are told exactly": {
        "test_a_message_lives_as_long_as_the_strictest_of_all_allows",
        "test_a_queue_takes_each_key_once_and_confirms_every_time",
        "test_in_a_priority_queue_low_priorities_do_not_wait_for_high_ones",
        "test_messages_that_wait_already_expire_where_they_stand",
        "test_r106_copies_are_kept_with_a_message_that_leaves_memory",
        "test_r107_deaths_in_one_queue_for_one_reason_are_counted_and_the_newest_comes_first",
        "test_r110_first_and_last_death_are_named",
        "test_r57_what_was_handed_out_at_once_expires_when_it_comes_back",
        "test_r77_larger_numbers_first_none_is_zero_and_too_much_is_the_most",
        "test_r79_a_consumer_that_holds_the_backlog_gets_no_better_order",
        "test_r80_expired_messages_wait_behind_live_ones_of_higher_priority_and_count",
        "test_what_finds_no_room_at_its_time_waits_for_it",
        "test_what_was_out_when_its_time_came_expires_when_it_comes_back",
    },
    "transient messages with a confirm": {
        "test_a_restart_changes_neither_number_nor_time",
        "test_r105_without_a_key_of_the_queue_all_original_keys_count",
    },
    "priorities": {
        "test_a_long_quorum_queue_with_both_levels_loses_nothing",
        "test_a_message_of_a_quorum_queue_comes_back_to_its_level",
        "test_a_quorum_queue_serves_two_levels_of_priority",
        "test_a_policy_may_shorten_what_waits_already",
        "test_long_queues_expire_in_the_middle_too",
        "test_r45_priorities_survive_a_restart",
        "test_r45_zero_is_accepted_and_makes_a_plain_queue",
        "test_r69_a_limit_drops_from_the_head_whatever_its_priority",
        "test_r76_without_the_argument_priority_is_ignored",
        "test_r78_no_policy_makes_priorities",
        "test_r81_what_comes_back_takes_its_old_place",
        "test_r81_within_a_priority_the_order_is_that_of_arrival",
        "test_what_the_publisher_said_is_what_the_consumer_sees",
    },
}

#: The same of STOMP.
_STOMP: Final[Mapping[str, Set[str]]] = {
    "headers that are no text": {
        "test_a_queue_takes_each_key_once_and_confirms_every_time",
        "test_headers_that_only_look_like_deaths_do_no_harm",
        "test_r111_a_circle_that_a_client_had_a_hand_in_goes_on",
        "test_r105_without_a_key_of_the_queue_all_original_keys_count",
        "test_r106_copies_are_kept_with_a_message_that_leaves_memory",
        "test_r106_with_a_key_of_the_queue_copies_are_forgotten",
        "test_r108_an_entry_says_everything_there_is_to_say",
        "test_r114_everything_else_stays_as_it_was_published",
        "test_what_the_publisher_said_is_what_the_consumer_sees",
    },
}

#: Protocol to the tests that have no column for it.
UNSAYABLE: Final[Mapping[str, Set[str]]] = {
    "MQTT": frozenset().union(*_MQTT.values()),
    "STOMP": frozenset().union(*_STOMP.values()),
}
