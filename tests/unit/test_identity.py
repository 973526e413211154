"""Our ids are unique, sortable by time, and of the length that the tables hold."""

from litellm_messplus.identity import new_id


def test_ids_are_unique_and_in_order_of_time() -> None:
    ids = [new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert [name[:16] for name in ids] == sorted(name[:16] for name in ids)
    assert {len(name) for name in ids} == {32}
    assert len({name[16:] for name in ids}) == 1000
