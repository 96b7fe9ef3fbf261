"""How many streams each caller may hold."""

import pytest

from proxy.transport.quota import StreamQuota


def test_each_holder_has_as_many_as_may_be_and_gets_back_what_it_ends() -> None:
    quota = StreamQuota(2)

    with quota.taken("a") as first, quota.taken("b") as other:
        with quota.taken("a") as second, quota.taken("a") as third:
            assert (first, other, second, third) == (True, True, True, False)
        with quota.taken("a") as again:
            assert again


def test_one_that_is_refused_gives_nothing_back() -> None:
    quota = StreamQuota(1)

    with quota.taken("a"):
        for _ in range(3):
            with quota.taken("a") as more:
                assert not more


def test_a_stream_that_breaks_is_given_back_and_nothing_is_kept_of_it() -> None:
    quota = StreamQuota(1)

    with pytest.raises(ZeroDivisionError), quota.taken("a"):
        raise ZeroDivisionError

    assert quota._held == {}
