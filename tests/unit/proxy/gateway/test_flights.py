"""Calls under way, and who may cancel them."""

import asyncio
from dataclasses import replace

import pytest

from proxy.gateway.flights import FlightId, Flights

FLIGHT = FlightId("hash", "session", "7")


async def for_ever() -> None:
    await asyncio.Event().wait()


async def ended(work: asyncio.Task[None]) -> bool:
    """Was it cancelled? Ends it otherwise."""
    if work.cancelling():
        return bool(await asyncio.gather(work, return_exceptions=True))
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    return False


async def test_a_flight_is_cancelled_by_its_name() -> None:
    flights = Flights()
    work = asyncio.ensure_future(for_ever())
    with flights.joined(FLIGHT, work):
        flights.cancel(FLIGHT)
        assert await ended(work)


@pytest.mark.parametrize(
    "other",
    [
        replace(FLIGHT, key_hash="another"),
        replace(FLIGHT, key_hash=None),
        replace(FLIGHT, session="another"),
        replace(FLIGHT, session=""),
        replace(FLIGHT, request_id='"7"'),
        replace(FLIGHT, request_id=""),
    ],
)
async def test_another_name_cancels_nothing(other: FlightId) -> None:
    flights = Flights()
    work = asyncio.ensure_future(for_ever())
    with flights.joined(FLIGHT, work):
        flights.cancel(other)
        assert not await ended(work)


async def test_a_request_without_a_session_cannot_be_cancelled_by_name() -> None:
    flights = Flights()
    nameless = replace(FLIGHT, session="")
    work = asyncio.ensure_future(for_ever())
    with flights.joined(nameless, work):
        flights.cancel(nameless)
        assert not await ended(work)


async def test_a_flight_that_has_ended_is_forgotten() -> None:
    flights = Flights()
    work = asyncio.ensure_future(for_ever())
    with flights.joined(FLIGHT, work):
        pass
    flights.cancel(FLIGHT)
    assert not await ended(work)


async def test_a_flight_is_forgotten_when_it_fails() -> None:
    flights = Flights()
    work = asyncio.ensure_future(for_ever())
    with pytest.raises(RuntimeError), flights.joined(FLIGHT, work):
        raise RuntimeError
    flights.cancel(FLIGHT)
    assert not await ended(work)


async def test_of_two_flights_of_one_name_the_first_has_it() -> None:
    flights = Flights()
    first, second = asyncio.ensure_future(for_ever()), asyncio.ensure_future(for_ever())
    with flights.joined(FLIGHT, first):
        with flights.joined(FLIGHT, second):
            pass  # leaving the second must not forget the first
        flights.cancel(FLIGHT)
        assert [await ended(first), await ended(second)] == [True, False]
