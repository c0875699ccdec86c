"""What holds for every vendor's client, through each SDK and a server that speaks its protocol."""

from __future__ import annotations

import asyncio
import gc
import pickle
import subprocess
import sys
import threading
from decimal import Decimal

import pytest

from agentnb.errors import AgentRuntimeError
from agentnb.secrets import mask_text
from agentnb.world.llm.base import LLMError, LLMRequest, Usage
from agentnb.world.llm.providers import PROVIDERS, client_of
from agentnb.world.llm.vendor import PerLoop, Reply, VendorClient
from tests.world.llm.model_server import KEY, Answer, of_json
from tests.world.llm.protocols import PROTOCOLS, Gemini, OpenAI, ask, client, request

each = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
TALK = (("system", "Be kind."), ("system", "Be short."), ("user", "Hi"), ("assistant", "Yes?"), ("user", "Why?"))


# ---------------------------------------------------------------------------------------------------- what is answered


@each
def test_an_answer_has_its_model_tokens_and_cost(protocol, serve):
    server = serve(protocol.whole("Hello\nyou"))
    answer = ask(client(protocol, server, prices={"input": "2.50", "output": 10}))
    assert (answer.content, answer.usage) == ("Hello\nyou", Usage(7, 3, Decimal("0.0000475")))
    assert answer.model.endswith("-x-2026")
    assert len(server.asked) == 1


@each
def test_without_prices_the_cost_is_not_known(protocol, serve):
    assert ask(client(protocol, serve(protocol.whole()))).usage == Usage(7, 3, None)


@each
def test_a_conversation_is_sent_in_its_order(protocol, serve):
    server = serve(protocol.whole())
    ask(client(protocol, server), request(*TALK))
    talk = protocol.said(server.asked[0].body)
    spoken = [(role.replace("model", "assistant"), text) for role, text in talk]
    systems = TALK[:2] if protocol is OpenAI else (("system", "Be kind.\n\nBe short."),)
    assert spoken == [*systems, *TALK[2:]]


@each
def test_a_system_message_alone_is_sent(protocol, serve):
    server = serve(protocol.whole())
    ask(client(protocol, server), request(("system", "Say hello.")))
    assert [text for _, text in protocol.said(server.asked[0].body)] == ["Say hello."]


@each
def test_no_messages_are_sent_as_an_empty_one(protocol, serve):
    server = serve(protocol.whole())
    ask(client(protocol, server), LLMRequest(()))
    assert protocol.said(server.asked[0].body) == [("user", "")]


@each
def test_the_key_and_the_headers_are_sent(protocol, serve):
    server = serve(protocol.whole())
    ask(client(protocol, server, headers={"x-own": "1"}))
    headers = server.asked[0].headers
    assert headers["x-own"] == "1"
    assert any(KEY in headers.get(name, "") for name in ("authorization", "x-api-key", "x-goog-api-key"))


@each
def test_settings_of_a_request_override_those_of_the_client(protocol, serve):
    server = serve(protocol.whole())
    llm = client(protocol, server, temperature=0.9, top_p=0.8)
    ask(llm, request(model="m-2", settings={"temperature": 0, "strategy": "not for the model", "top_p": None}))
    sent = server.asked[0].body
    sampling = sent.get("generationConfig", sent)
    assert (sampling["temperature"], sampling.get("top_p", sampling.get("topP"))) == (0, 0.8)
    assert sent.get("model", "m-2") == "m-2"
    assert protocol is not Gemini or "/m-2:" in server.asked[0].path
    assert "not for the model" not in str(sent)


# ----------------------------------------------------------------------------------------------------------- streaming


@each
def test_chunks_are_reported_in_order_and_add_up_to_the_answer(protocol, serve):
    server, chunks = serve(protocol.stream("Hel", "lo ", "ümlaut")), []
    answer = ask(client(protocol, server, prices={"input": 1, "output": 1}), request(on_token=chunks.append))
    assert (chunks, answer.content) == (["Hel", "lo ", "ümlaut"], "Hello ümlaut")
    assert answer.usage == Usage(7, 3, Decimal("0.00001"))
    assert answer.model.endswith("-x-2026")


@each
def test_without_listeners_nothing_is_streamed(protocol, serve):
    server = serve(protocol.whole())
    ask(client(protocol, server))
    assert "stream" not in server.asked[0].body
    assert "stream" not in server.asked[0].path


@each
@pytest.mark.parametrize("how", ["cut", "without an end"])
def test_an_incomplete_stream_is_an_error(protocol, how, serve):
    answer = protocol.stream("Hel", "lo", cut=True) if how == "cut" else protocol.stream("Hel", "lo", ends=False)
    chunks = []
    with pytest.raises(LLMError, match=r"X337|X338") as raised:
        ask(client(protocol, serve(answer)), request(on_token=chunks.append))
    assert raised.value.is_retryable
    assert chunks == (["Hel", "lo"] if how == "without an end" else ["Hel", "lo"][: len(chunks)])


@each
def test_an_error_in_a_stream_is_reported(protocol, serve):
    chunks = []
    with pytest.raises(LLMError, match=r"X336.*it is too much") as raised:
        ask(client(protocol, serve(protocol.stream_fails("Hel", "it is too much"))), request(on_token=chunks.append))
    assert raised.value.is_retryable
    assert chunks == ["Hel"]


# ------------------------------------------------------------------------------------------------------- what fails


@each
def test_a_rate_limit_has_a_delay_and_is_not_retried_here(protocol, serve):
    server = serve(protocol.failed(429, f"Too fast with {KEY}", **{"retry-after": "7"}))
    with pytest.raises(LLMError, match=r"X336: \w+:m-1 answered 429: Too fast with \*+") as raised:
        ask(client(protocol, server))
    error = raised.value
    assert (error.status, error.is_retryable, error.retry_after, len(server.asked)) == (429, True, 7.0, 1)
    assert "after 7 s" in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None  # the SDK's own error holds the request, with the key


@each
@pytest.mark.parametrize(
    ("answer", "again", "said"),
    [
        (Answer(b"it fell over", 500, kind="text/plain"), True, "it fell over"),
        (of_json({"error": {"message": "overloaded"}}, status=503), True, "overloaded"),
        (of_json({"error": {"message": "no such key"}}, status=401), False, "check the key"),
        (of_json({"error": {"message": "no such model"}}, status=404), False, "model's name"),
        (of_json({"error": {"message": "temperature"}}, status=400), False, "fix the request"),
    ],
    ids=["500", "503", "401", "404", "400"],
)
def test_an_error_reports_whether_a_retry_may_help(protocol, answer, again, said, serve):
    server = serve(answer)
    with pytest.raises(LLMError, match=said) as raised:
        ask(client(protocol, server))
    assert (raised.value.status, raised.value.is_retryable, len(server.asked)) == (answer.status, again, 1)


@each
def test_a_server_that_does_not_answer_is_a_timeout(protocol, serve):
    server = serve(protocol.whole()._replace(hold=threading.Event()))
    with pytest.raises(TimeoutError, match=r"m-1 did not answer within 0.5 s"):
        ask(client(protocol, server, request_timeout=0.5))
    assert len(server.asked) == 1


@each
def test_a_timeout_of_the_sdk_is_a_timeout(protocol, serve):
    server = serve(protocol.whole()._replace(hold=threading.Event()))
    if protocol is Gemini:
        llm = client(protocol, server, client_kwargs={"http_options": {"timeout": 300}})
    else:
        llm = client(protocol, server, kwargs={"timeout": 0.3})
    with pytest.raises(TimeoutError, match="m-1 did not answer"):
        ask(llm)


@each
def test_the_timeout_of_a_node_overrides_that_of_the_settings(protocol, serve):
    server = serve(protocol.whole()._replace(hold=threading.Event()))
    with pytest.raises(TimeoutError, match=r"within 0.4 s"):
        ask(client(protocol, server, request_timeout=60), request(timeout=0.4, settings={"request_timeout": 50}))


@each
def test_a_connection_lost_during_the_answer_is_reported(protocol, serve):
    server = serve(protocol.whole()._replace(cut=True))
    with pytest.raises(LLMError, match=r"X337: the connection to .* failed") as raised:
        ask(client(protocol, server))
    assert (raised.value.is_retryable, len(server.asked)) == (True, 1)


@each
def test_an_unreachable_server_is_reported(protocol, serve):
    server = serve(protocol.whole())
    llm = client(protocol, server)
    server.http.server_close()
    with pytest.raises(LLMError, match="X337: the connection to") as raised:
        ask(llm)
    assert raised.value.is_retryable


@each
@pytest.mark.parametrize(
    "answer",
    [Answer(b'{"id": '), Answer(b"<html>hello", kind="text/html"), Answer(b"[1]"), Answer(b"{}"), Answer(b'{"a": 1}')],
    ids=["bad JSON", "HTML", "a list", "nothing in it", "something else"],
)
def test_an_invalid_response_is_reported(protocol, answer, serve):
    server = serve(answer)
    with pytest.raises(LLMError, match=r"X338: .* sent a response that cannot be parsed") as raised:
        ask(client(protocol, server))
    assert (raised.value.is_retryable, len(server.asked)) == (True, 1)


@each
def test_a_setting_unknown_to_the_sdk_is_a_problem(protocol, serve):
    with pytest.raises(AgentRuntimeError, match=r"X334: .* cannot be used"):
        ask(client(protocol, serve(protocol.whole()), client_kwargs={"color": "blue"}))


def test_an_error_survives_pickling(serve):
    with pytest.raises(LLMError) as raised:
        ask(client(OpenAI, serve(OpenAI.failed(429, "slow", **{"retry-after": "2.5"}))))
    back = pickle.loads(pickle.dumps(raised.value))
    assert (str(back), back.status, back.is_retryable, back.retry_after) == (str(raised.value), 429, True, 2.5)


# -------------------------------------------------------------------------------------------------- structured answers


SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


@pytest.mark.parametrize("protocol", [OpenAI, Gemini])
@pytest.mark.parametrize("streams", [False, True])
def test_an_answer_with_a_schema_is_a_value(protocol, streams, serve):
    server = serve(protocol.stream('{"tit', 'le": "Rain"}') if streams else protocol.whole('{"title": "Rain"}'))
    prepared = request(settings={"schema": SCHEMA}, on_token=[].append if streams else None)
    assert ask(client(protocol, server), prepared).content == {"title": "Rain"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_that_violates_its_schema_is_reported(protocol, serve):
    with pytest.raises(LLMError, match=r"X339.*\n.*\n.*the answer is not JSON") as raised:
        ask(client(protocol, serve(protocol.whole("I would rather not."))), request(settings={"schema": SCHEMA}))
    assert (raised.value.is_retryable, raised.value.usage) == (True, Usage(7, 3))  # it was paid for


@pytest.mark.parametrize("protocol", [OpenAI, Gemini])
def test_null_is_not_an_answer_with_a_schema(protocol, serve):
    with pytest.raises(LLMError, match=r"X339(.|\n)*the answer is null"):
        ask(client(protocol, serve(protocol.whole("null"))), request(settings={"schema": SCHEMA}))


# --------------------------------------------------------------------------------------------- loops, keys, laziness


@each
def test_a_client_serves_several_event_loops_and_concurrent_requests(protocol, serve):
    server = serve(protocol.whole())
    llm = client(protocol, server)

    async def main():
        return await asyncio.gather(*(llm.complete(request()) for _ in range(3)))

    answers = asyncio.run(main()) + asyncio.run(main())
    assert [answer.content for answer in answers] == ["Hello"] * 6
    assert len(llm._open) == 0  # closed with its loop


def test_an_unawaited_call_sends_nothing(serve):
    server = serve(OpenAI.whole())
    client(OpenAI, server).complete(request())
    assert server.asked == []


@pytest.mark.parametrize("kind", sorted(set(PROVIDERS) - {"openai_compatible", "lmstudio"}))
def test_a_missing_key_is_reported_when_the_client_is_created(kind, monkeypatch):
    for name in PROVIDERS[kind].variables:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(AgentRuntimeError, match=rf"X332: there is no API key for '{kind}'") as raised:
        client_of(f"{kind}:m")
    assert PROVIDERS[kind].variables[0] in str(raised.value)


@each
def test_the_key_may_come_from_the_environment(protocol, serve, monkeypatch):
    monkeypatch.setenv(PROVIDERS[protocol.name].variables[-1], "key-of-the-shell")
    server = serve(protocol.whole())
    ask(client(protocol, server, api_key=None))
    assert "key-of-the-shell" in str(server.asked[0].headers)


@pytest.mark.parametrize("kind", sorted(PROVIDERS))
def test_a_package_that_is_missing_is_reported_with_its_extra(kind, monkeypatch):
    monkeypatch.setattr("agentnb.world.llm.vendor.find_spec", lambda name: None)
    order = r'pip install "agentnb-kit\[(openai|anthropic|gemini)\]"'
    with pytest.raises(AgentRuntimeError, match=rf"X331(.|\n)*settings of(.|\n)*{order}"):
        client_of(f"{kind}:m", {"api_key": KEY})


def test_a_missing_model_is_reported_at_the_first_request(serve):
    llm = client_of("openai", {"base_url": serve(OpenAI.whole()).url, "api_key": KEY})
    with pytest.raises(AgentRuntimeError, match="X335"):
        ask(llm)
    assert ask(llm, request(model="m-3")).content == "Hello"


def test_making_clients_imports_no_sdk():
    program = (
        "import sys; from agentnb.world.llm.providers import PROVIDERS, client_of\n"
        "for kind in PROVIDERS: client_of(kind + ':m', {'api_key': 'a-key-0815'})\n"
        "print({'openai', 'anthropic', 'google.genai'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_the_package_is_imported_at_the_first_request():
    class Light(VendorClient):
        package, extra, needs_key = "json.tool", "light", False

        def connect(self):
            return sys.modules[self.package]

        async def close_sdk(self, sdk):
            pass

        async def converse(self, sdk, asked):
            return Reply([sdk.__name__], is_complete=True)

    sys.modules.pop("json.tool", None)
    llm = Light("m")
    assert "json.tool" not in sys.modules
    assert ask(llm).content == "json.tool"


@pytest.mark.parametrize(("key", "told"), [("none", "none of it: sk-1"), ("sk-1", "none of it: ********")])
def test_a_placeholder_for_a_key_is_not_masked(key, told):
    client_of("lmstudio:m", {"api_key": key})
    assert mask_text("none of it: sk-1") == told


def test_the_settings_of_a_request_are_checked_too(serve):
    server = serve(OpenAI.whole())
    with pytest.raises(AgentRuntimeError, match=r"X334: 'request_timeout'(.|\n)*X334: 'schema'"):
        ask(client(OpenAI, server), request(settings={"request_timeout": "soon", "schema": 5}))
    assert server.asked == []


def test_a_client_does_not_show_its_settings():
    shown = repr(client_of("openai:gpt", {"api_key": KEY, "headers": {"authorization": "Bearer abc-123-def"}}))
    assert shown == "<OpenAIClient openai:gpt>"


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


def test_an_event_loop_has_one_client(pool, made):
    result = asyncio.run(several(pool))
    assert result == [made[0]] * 3


def test_a_client_is_built_outside_of_the_thread_of_the_event_loop(pool, made):
    asyncio.run(several(pool))
    assert made[0].thread is not threading.current_thread()


def test_each_event_loop_has_its_own_client_which_is_closed_with_it(pool, made):
    asyncio.run(several(pool))
    assert (made[0].closed, len(pool)) == (True, 0)
    asyncio.run(several(pool))
    assert [client.closed for client in made] == [True, True]


def test_a_running_event_loop_keeps_its_client(pool, made):
    async def main():
        await pool.client()
        await asyncio.sleep(0)
        gc.collect()
        assert (made[0].closed, len(pool)) == (False, 1)
        return await pool.client() is made[0]

    assert asyncio.run(main())


def test_a_client_of_a_closed_event_loop_is_forgotten(pool, made):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(pool.client())
    loop.close()
    asyncio.run(several(pool))
    assert (len(made), len(pool)) == (2, 0)


def test_creating_a_client_is_retried_after_a_failure(made):
    def make():
        made.append(1)
        raise ValueError("no")

    pool = PerLoop(make, Client.close)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            asyncio.run(several(pool, 1))
    assert (len(made), len(pool)) == (2, 0)
