"""Which worker owns which partition: one for a number of all topics, evenly, moving as few as balance allows."""

from __future__ import annotations

import pytest
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from hypothesis import given
from hypothesis import strategies as st

from turngate.streams.kafka.assignor import CoPartitioned, divide
from turngate.streams.log import LogError

TOPICS = ["a", "b", "c"]


class Counts(ClusterMetadata):
    def __init__(self, counts: dict[str, int]) -> None:
        super().__init__()
        self.counts = counts

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self.counts[topic])) if topic in self.counts else None


def member(had: frozenset[int] = frozenset()) -> ConsumerProtocolMemberMetadata:
    assignor = CoPartitioned()
    assignor.owned = had
    return assignor.metadata(TOPICS)


def numbers(assignment: object, topic: str) -> list[int]:
    return dict(assignment.assignment).get(topic, [])


def test_a_partition_of_every_topic_goes_to_one_member() -> None:
    members = {name: member() for name in ("w1", "w2", "w3")}
    assigned = CoPartitioned().assign(Counts(dict.fromkeys(TOPICS, 4)), members)
    for assignment in assigned.values():
        assert numbers(assignment, "a") == numbers(assignment, "b") == numbers(assignment, "c")
    assert sorted(n for a in assigned.values() for n in numbers(a, "a")) == [0, 1, 2, 3]


@pytest.mark.parametrize("counts", [{"a": 4, "b": 4, "c": 3}, {"a": 4, "b": 4}])
def test_unequal_numbers_of_partitions_are_refused(counts: dict[str, int]) -> None:
    with pytest.raises(LogError, match="equal numbers of partitions"):
        CoPartitioned().assign(Counts(counts), {"w1": member()})


def test_members_keep_what_they_had_and_a_newcomer_gets_its_share() -> None:
    assert divide(4, {"w1": [0, 1, 2, 3], "w2": []}) == {"w1": [0, 1], "w2": [2, 3]}
    assert divide(4, {"w1": [2, 3], "w2": [0, 1]}) == {"w1": [2, 3], "w2": [0, 1]}
    assert divide(4, {"w1": [2, 3]}) == {"w1": [0, 1, 2, 3]}


def test_what_a_member_says_it_had_is_remembered_from_its_assignment() -> None:
    assignor = CoPartitioned()
    (assignment,) = assignor.assign(Counts(dict.fromkeys(TOPICS, 2)), {"w1": member()}).values()
    assignor.on_assignment(assignment)
    assert assignor.owned == {0, 1}


def test_a_member_that_speaks_nonsense_gets_its_share_all_the_same() -> None:
    odd = ConsumerProtocolMemberMetadata(0, TOPICS, b"\xffnot json")
    assigned = CoPartitioned().assign(Counts(dict.fromkeys(TOPICS, 2)), {"w1": odd})
    assert numbers(assigned["w1"], "a") == [0, 1]


@given(
    st.integers(1, 12),
    st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.integers(0, 15), max_size=8), min_size=1),
)
def test_any_claims_are_divided_evenly_and_without_gap(partitions: int, had: dict[str, list[int]]) -> None:
    share = divide(partitions, had)
    assert sorted(n for ns in share.values() for n in ns) == list(range(partitions))
    sizes = [len(ns) for ns in share.values()]
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 12), st.sets(st.sampled_from("abcdefgh"), min_size=1))
def test_a_division_that_is_even_already_stays(partitions: int, members: set[str]) -> None:
    share = divide(partitions, {m: [] for m in members})
    assert divide(partitions, share) == share
