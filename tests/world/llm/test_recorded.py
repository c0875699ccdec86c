from __future__ import annotations

from decimal import Decimal

import networkx as nx
import pytest

from agentnb.errors import ExecutionError
from agentnb.trace import SimulationTrace
from agentnb.world.llm.base import LLMError, LLMRequest, LLMResponse, Usage
from agentnb.world.llm.recorded import RecordedClient
from tests.session.small_sessions import session


def talk(**options):
    """Return a cycle of two agents, `ask` and `tell`, that ends when each was asked twice."""
    graph = nx.DiGraph(name="talk")
    graph.add_node("ask", kind="agent", prompt="Ask.", inputs={"n": "n", "secret": "api_key"}, output="question")
    graph.add_node("tell", kind="agent", inputs={"question": "question"}, output="said", **options)
    graph.add_node("count", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_edge("ask", "tell")
    graph.add_edge("tell", "count")
    graph.add_edge("count", "ask", when="n < 2")
    graph.graph["entry"] = "ask"
    return graph


INPUTS = {"n": 0, "api_key": "k3y-of-the-first-run"}


def answered(request):
    usage = Usage(10 + request.number, 5, Decimal("0.002"))
    return LLMResponse({"said": {"deep": [request.number]}} if request.node == "tell" else "why?", usage=usage)


@pytest.fixture
def first():
    run = session(talk(), INPUTS, llm=answered)
    run.run()
    assert run.status == "finished"
    return run


def get_answers(run):
    return [row["result"] for _, row in run.trace.frames.calls.iterrows()]


def test_a_run_gets_the_answers_of_the_first_one(first):
    run = session(talk(), INPUTS, llm=RecordedClient(first.trace, strict=True))
    run.run()
    assert get_answers(run) == get_answers(first) == ["why?", {"said": {"deep": [1]}}, "why?", {"said": {"deep": [3]}}]
    columns = ["node", "tokens_in", "tokens_out", "cost_usd_exact"]
    assert run.trace.frames.calls[columns].equals(first.trace.frames.calls[columns])


def test_a_session_is_accepted_instead_of_its_trace(first):
    assert repr(RecordedClient(first)) == repr(RecordedClient(first.trace)) == "<RecordedClient of 4 answers>"


def test_a_trace_from_a_file_answers_and_its_masks_match_any_secret(first, tmp_path):
    first.trace.to_json(tmp_path / "trace.json")
    client = RecordedClient(SimulationTrace.read(tmp_path / "trace.json"), strict=True)
    run = session(talk(), INPUTS, llm=client)
    run.run()
    assert (run.status, get_answers(run)) == ("finished", get_answers(first))


def test_going_back_repeats_the_answers(first):
    run = session(talk(), INPUTS, llm=RecordedClient(first.trace))
    for k in (0, 3, 1, 0):
        run.goto(min(k, run.position)).run()
        assert run.board["said"] == {"deep": [3]}


def test_recorded_answers_cannot_be_changed_by_their_receiver(first):
    client = RecordedClient(first.trace)
    request = LLMRequest((), node="tell")
    client.complete(request).content["said"]["deep"].append("changed")
    assert client.complete(request).content == {"said": {"deep": [1]}}


def test_abandoned_steps_of_a_fork_are_not_among_the_answers(first):
    fork = first.fork(at=2, llm={"ask": ["never", "how?"], "tell": ["never", {"said": "new"}]})
    fork.run()
    client = RecordedClient(fork.trace)
    assert [client.complete(LLMRequest((), node="ask", of_node=n)).content for n in (0, 1)] == ["why?", "how?"]


def test_steps_after_a_fork_are_not_part_of_it(first):
    assert repr(RecordedClient(first.fork(at=2))) == "<RecordedClient of 2 answers>"


def test_a_different_message_is_answered_unless_strict(first):
    inputs = {"n": 0, "api_key": "k3y-of-another-run"}
    recipe = talk()
    recipe.nodes["ask"]["prompt"] = "Ask nicely."
    run = session(recipe, inputs, llm=RecordedClient(first.trace))
    run.run()
    assert run.status == "finished"
    run = session(recipe, inputs, llm=RecordedClient(first.trace, strict=True))
    run.run()
    assert (run.status, run.error.code) == ("failed", "X341")
    assert "message 1 was system: 'Ask.', and is system: 'Ask nicely.'" in run.error.why


def test_additional_and_missing_messages_are_reported_in_strict_mode(first):
    client = RecordedClient(first.trace, strict=True)
    with pytest.raises(ExecutionError, match=r"X341(.|\n)*message 1 was user: (.|\n)*is not there"):
        client.complete(LLMRequest((), node="tell"))


def test_an_exhausted_record_is_a_problem(first):
    client = RecordedClient(first.trace)
    with pytest.raises(ExecutionError, match=r"X340(.|\n)*made 3 requests, and the trace has 2"):
        client.complete(LLMRequest((), node="ask", of_node=2))
    with pytest.raises(ExecutionError, match=r"X340(.|\n)*did you mean 'tell'"):
        client.complete(LLMRequest((), node="tel"))


def failing(request, tries=iter(range(9))):  # noqa: B008  (one for all requests)
    if request.node == "tell" and next(tries) == 0:
        raise TimeoutError("slow")
    return "fine"


def test_a_retried_call_answers_with_its_last_attempt():
    run = session(talk(attempts=2), INPUTS, llm=failing)
    run.run()
    assert list(run.trace.frames.calls["attempt"])[:3] == [1, 1, 2]
    assert RecordedClient(run).complete(LLMRequest((), node="tell")).content == "fine"


@pytest.mark.parametrize(("error", "kind"), [(TimeoutError("slow"), TimeoutError), (KeyError("x"), LLMError)])
def test_a_call_that_failed_fails_again(error, kind):
    def raises(request):
        raise error

    run = session(talk(), INPUTS, llm=raises)
    run.run()
    with pytest.raises(kind, match="slow" if kind is TimeoutError else "X342(.|\\n)*raised KeyError"):
        RecordedClient(run).complete(LLMRequest((), node="ask"))


def test_a_listener_receives_the_whole_answer_at_once(first):
    chunks = []
    RecordedClient(first).complete(LLMRequest((), node="ask", on_token=chunks.append))
    RecordedClient(first).complete(LLMRequest((), node="tell", on_token=chunks.append))  # no text
    assert chunks == ["why?"]


@pytest.mark.parametrize("trace", [5, None, [1], {"a": 1}])
def test_an_invalid_trace_is_reported(trace):
    with pytest.raises(ExecutionError, match="X343"):
        RecordedClient(trace)
