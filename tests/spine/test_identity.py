"""Our ids are unique, sortable by time, and of the length that the tables hold."""

import os

from litellm_messplus.records import new_id


def test_ids_are_unique_and_in_order_of_time() -> None:
    ids = [new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert [name[:16] for name in ids] == sorted(name[:16] for name in ids)
    assert {len(name) for name in ids} == {32}
    assert len({name[16:] for name in ids}) == 1000


def test_a_process_that_was_forked_gives_out_ids_of_its_own() -> None:
    new_id()  # some random bits are left over
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_id()[16:].encode())
        os._exit(0)
    ours = {new_id()[16:] for _ in range(1000)}
    os.waitpid(child, 0)
    theirs = os.read(reading, 16).decode()
    for end in (reading, writing):
        os.close(end)
    assert len(theirs) == 16
    assert theirs not in ours
