from agentnb.draw.run_view import RunView
from tests.draw.drawn_recipes import support_run


def test_marks_come_in_a_fixed_order():
    view = support_run()
    assert view.marks("write") == ("visited", "next")
    assert view.marks("refund") == ("visited", "failed")
    assert view.marks("critic") == ("current",)
    assert view.marks("send") == ("breakpoint",)
    assert view.marks("approve") == ("waiting",)


def test_a_run_that_has_not_started_marks_nothing():
    assert RunView().marks("any") == ()
