from __future__ import annotations

import agentnb as nb
from agentnb.dialects.polaris import GraphExecutor
from agentnb.samples import flows


def test_the_search_proceeds_in_rounds_and_tolerates_missing_answers():
    session = GraphExecutor().session(flows.search())
    session.run()
    nodes = [step.node_id for step in session.trace.steps if step.kind == "system"]
    assert nodes[0] == "begin"
    assert sorted(nodes[1:4]) == ["ask", "look", "think"]
    assert nodes[4] == "note"
    assert nodes[-2:] == ["note", "praise"]
    assert session.board[f"{flows.__name__}.Report"].text == (
        "found in the drawer after 2 places; somebody said: it is not on the shelf"
    )


def test_it_is_valid_and_drawn_with_its_handler():
    assert str(flows.search().validate()) == "ok"
    assert "error of ask" in nb.samples("search").draw().dot


def test_the_checkout_requests_a_transfer_if_the_bank_rejects_the_card():
    session = nb.Session(nb.samples("checkout"))
    session.run()
    assert session.board[f"{flows.__name__}.Report"].text == (
        "sent: parcel with a desk; paid: 640 euros by bank transfer, asked for by e-mail; "
        "Thank you for your order. Enjoy it!"
    )
    assert [step.node_id for step in session.trace.steps if step.error] == ["charge_card"]


def test_a_cheaper_order_is_paid_by_card():
    session = nb.Session(nb.samples("checkout"))
    session.step()
    key = f"{flows.__name__}.Order"
    fork = session.fork(edit={key: flows.Order("a lamp", 40, "card")})
    fork.run()
    assert fork.board[f"{flows.__name__}.Report"].text.startswith("sent: parcel with a lamp; paid: 40 euros by card;")


def test_a_text_is_translated_sentence_by_sentence():
    session = nb.Session(nb.samples("translation"))
    session.run()
    assert session.board[f"{flows.__name__}.Report"].text == "Der Mond scheint. Es ist still. Ein Hund bellt."
    assert [step.node_id for step in session.trace.steps if step.phase == "leave"].count("translator") == 3
