from __future__ import annotations

from agentnb.board.values import ABSENT
from tests.session.shape_sessions import session_of
from tests.ui import ticket_recipe


def test_each_key_has_the_step_and_the_node_that_wrote_it():
    session = ticket_recipe.session()
    session.step()
    assert session._parts.explanations.writers() == {"ticket": (0, ""), "api_key": (0, ""), "category": (1, "classify")}
    session.back()
    assert session._parts.explanations.writers().keys() == {"ticket", "api_key"}
    session.goto(1)
    assert session._parts.explanations.writers()["category"] == (1, "classify")


def test_an_edited_key_has_a_person_as_writer_until_a_node_writes_it():
    session = ticket_recipe.session("hello")
    session.step()
    session.edit({"category": "mine", "own.deep": 2})
    assert (
        session._parts.explanations.writers()["category"] == session._parts.explanations.writers()["own"] == (1, None)
    )
    session.run()
    assert session._parts.explanations.writers()["reply"] == (2, "refuse")
    session.edit({"reply": "yes"})
    assert session._parts.explanations.writers()["reply"] == (3, None)
    session.goto(2)
    assert session._parts.explanations.writers()["reply"] == (2, "refuse")


def test_a_branch_and_a_fork_know_earlier_writers():
    session = ticket_recipe.session("hello")
    session.run()
    session.goto(1)
    session.edit({"category": "mine"})
    assert session._parts.explanations.writers()["category"] == (1, None)
    session.step()
    assert session._parts.explanations.writers()["reply"] == (2, "refuse")
    fork = session.fork(at=1, edit={"own": 1})
    assert (fork._parts.explanations.writers()["own"], fork._parts.explanations.writers()["ticket"]) == (
        (1, None),
        (0, ""),
    )
    assert "reply" not in fork._parts.explanations.writers()


def test_a_deleted_key_has_no_writer():
    session = ticket_recipe.session()
    session.step()
    session.edit({"category": ABSENT})
    assert "category" not in session._parts.explanations.writers()


def test_last_writers_equal_who_wrote_in_every_shape_and_at_every_step():
    for name in ("diamond", "cycle", "branches", "nested", "reactive"):
        session = session_of(name)
        session.run()
        for step in range(session.position + 1):
            session.goto(step)
            for key, writer in session._parts.explanations.writers().items():
                assert writer.step == session.who_wrote(key)
