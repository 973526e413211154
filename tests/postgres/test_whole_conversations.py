"""Conversations that are counted as one, on Postgres as on SQLite: the same tests, over there."""

from tests.store.test_whole_conversations import (  # noqa: F401
    test_a_conversation_of_one_request_is_a_request,
    test_all_turns_before_the_verdict_have_a_share,
    test_an_imported_label_on_a_turn_is_one_on_the_conversation,
    test_in_any_pages_it_is_the_same,
    test_the_sums_count_conversations_beside_requests,
    test_what_was_learned_by_shares_is_not_learned_again_at_the_end_of_a_call,
    test_who_failed_or_only_repeated_an_answer_has_none,
)
