from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from agentnb.world.llm.client_per_loop import PerLoop


class Client:
    def __init__(self):
        self.closed, self.thread = False, threading.current_thread()

    async def close(self):
        await asyncio.sleep(0)
        self.closed = True


@pytest.fixture
def made():
    return []


@pytest.fixture
def pool(made):
    def make():
        made.append(Client())
        return made[-1]

    return PerLoop(make, Client.close)


async def several(pool, times=3):
    return await asyncio.gather(*(pool.client() for _ in range(times)))


def test_a_loop_has_one_client(pool, made):
    found = asyncio.run(several(pool))
    assert found == [made[0]] * 3


def test_a_client_is_built_outside_the_loops_thread(pool, made):
    asyncio.run(several(pool))
    assert made[0].thread is not threading.current_thread()


def test_each_loop_has_its_own_and_it_is_closed_when_the_loop_ends(pool, made):
    asyncio.run(several(pool))
    assert (made[0].closed, len(pool)) == (True, 0)
    asyncio.run(several(pool))
    assert [client.closed for client in made] == [True, True]


def test_a_loop_that_goes_on_keeps_its_client(pool, made):
    async def main():
        await pool.client()
        await asyncio.sleep(0)
        gc.collect()
        assert (made[0].closed, len(pool)) == (False, 1)
        return await pool.client() is made[0]

    assert asyncio.run(main())


def test_a_client_whose_loop_was_closed_without_ending_is_forgotten(pool, made):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(pool.client())
    loop.close()
    asyncio.run(several(pool))
    assert (len(made), len(pool)) == (2, 0)


def test_a_client_that_cannot_be_made_is_tried_again(made):
    def make():
        made.append(1)
        raise ValueError("no")

    pool = PerLoop(make, Client.close)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            asyncio.run(several(pool, 1))
    assert (len(made), len(pool)) == (2, 0)
