"""Objects are known by what they are, not by what they say of their hash."""

import gc

from trainwright.seams.listening.seen import WeakIdentityDictionary


class _Moody:
    """Has a hash of its state, as torchmetrics' metrics do, and none before it has one."""

    def __hash__(self) -> int:
        return hash(self.state)  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        return True


def test_an_object_without_a_hash_yet_is_known_and_stays_known_when_its_hash_changes() -> None:
    known: WeakIdentityDictionary[int] = WeakIdentityDictionary()
    first, second = _Moody(), _Moody()
    known[first] = 1
    first.state = 5
    assert known[first] == 1 and second not in known and known.get(second) is None
    known[second] = 2
    assert sorted(known.values()) == [1, 2] and len(known) == 2
    del known[first]
    assert first not in known


def test_what_is_known_of_an_object_goes_with_it() -> None:
    known: WeakIdentityDictionary[int] = WeakIdentityDictionary()
    kept, gone = _Moody(), _Moody()
    known[kept], known[gone] = 1, 2
    del gone
    gc.collect()
    assert list(known) == [kept] and len(known) == 1
