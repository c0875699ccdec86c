from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from agentnb.clock import TickingClock
from agentnb.engine.core.rng import SeededRandom, get_draws, roll_back_draws, save_draws
from tests.engine.graph_shapes import begun, step

DRAWS = {
    "random": lambda chance: chance.random(),
    "randint": lambda chance: chance.randint(1, 1000),
    "bits": lambda chance: chance.getrandbits(77),
    "gauss": lambda chance: chance.gauss(0, 1),
    "choice": lambda chance: chance.choice("abcdefg"),
    "shuffle": lambda chance: chance.shuffle([1, 2, 3, 4, 5]),
    "bytes": lambda chance: chance.randbytes(9),
}
draws = st.lists(st.sampled_from(sorted(DRAWS)), max_size=30)


@given(st.integers(0, 99), draws, draws)
def test_a_generator_continues_from_the_state_of_another(seed, before, after):
    one = SeededRandom(seed)
    for name in before:
        DRAWS[name](one)
    other = SeededRandom(seed)
    other.advance_to(one.get_state())
    assert [DRAWS[name](other) for name in after] == [DRAWS[name](one) for name in after]
    assert other.get_state() == one.get_state()


@given(st.integers(0, 99), draws)
def test_it_draws_the_numbers_of_random_random(seed, names):
    one, other = SeededRandom(seed), random.Random(seed)
    assert [DRAWS[name](one) for name in names] == [DRAWS[name](other) for name in names]


def test_many_recorded_draws_are_skipped_at_once():
    one = SeededRandom(1)
    one.getrandbits(32 * 200_000)
    other = SeededRandom(1)
    other.advance_to(one.get_state())
    assert other.random() == one.random()


def test_draws_of_a_step_are_undone_if_nothing_else_has_drawn():
    run = begun("cycle")
    run.clock = TickingClock()
    run.random.random()
    run.ids("thing")
    save_draws(run)
    earlier_draws = get_draws(run)
    then = run.random.random(), run.random.gauss(0, 1), run.ids("thing"), run.clock.now()
    assert get_draws(run) != earlier_draws
    roll_back_draws(run)
    assert get_draws(run) == earlier_draws
    assert (run.random.random(), run.random.gauss(0, 1), run.ids("thing"), run.clock.now()) == then
    step(run)  # it has come to its end: what it has drawn stays drawn
    draws = get_draws(run)
    roll_back_draws(run)
    assert get_draws(run) == draws
