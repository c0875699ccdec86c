"""Models: one protocol, one client per file; a vendor's package is imported by its own client only.

Pass a model to a session as `Session(recipe, llm=...)`. It may be:

- a string "provider:model": `"openai:gpt-4o"`, `"anthropic:claude-sonnet-4-5"`, `"gemini:gemini-2.5-flash"`,
  `"lmstudio:qwen3-8b"` (LM Studio on this machine), `"simulated"` (answers that state that they are simulated). The key
  comes from OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or GOOGLE_API_KEY. The packages are extras: `pip install
  "agentnb-kit[openai]"`, `anthropic`, `gemini`, or `llm` for all of them. `"openai_compatible:llama3.2"` uses the
  server at OPENAI_BASE_URL, without a key.
- a client with settings:

      from agentnb.world.llm.providers import client_of

      client_of("openai:gpt-4o", {"temperature": 0, "prices": {"input": "2.50", "output": "10"}})
      client_of("openai_compatible:llama3.2", {"base_url": "http://127.0.0.1:11434/v1"})
      client_of("ours:small", {"type": "openai_compatible", "base_url": "https://...", "api_key": "{{env.OUR_KEY}}"})

- answers from a script: a list in the order of the requests, a mapping from node to a list or one value, or a function
  (plain or async) of the LLMRequest.
- `RecordedClient(trace)` of agentnb.world.llm.recorded: the answers of an earlier run.
- any object with `complete(request)`: a custom client.

Settings, all optional: `model`, `temperature`, `max_tokens` (default for anthropic: 1024), `top_p`, `top_k`, `stop`,
`seed`; `schema`, a JSON Schema for the answer (the content is then the value instead of text); `json_object`, true: the
answer is a JSON object, and its content stays text (OpenAI's and Gemini's JSON mode; other vendors, and servers that
reject the mode, only get the description in the prompt; false in a client's settings: never); `kwargs`, further fields
of the protocol, which override all others; `request_timeout` in seconds (a node's own timeout takes precedence);
`prices`, USD per million tokens, from which the cost of each call is computed; and for the connection `api_key`,
`base_url`, `headers`, `client_kwargs` (for the SDK's client). A request may contain all but the connection settings and
`prices`, and takes precedence: a node's model over the client's. A value of exactly `{{env.NAME}}` is replaced by that
variable and never shown.

Tools: a request with `tools` (ToolDefinitions) lets the model call them natively; the response then has `tool_calls`,
and the next request has the result of each in a message of the role `tool` with its `tool_call_id`. The caller that
offers tools handles the calls: an unhandled call is an error, and so is an answer with neither text nor calls.

A client makes one attempt: retries, backoff and timeouts of a node are the engine's, and each attempt is a row of
`trace.frames.calls`, with its tokens and cost. A failure is an LLMError (base.py), or a TimeoutError.

Streaming: `session.subscribe(listener, to="token")` calls the listener with each piece of text as it arrives; without a
listener nothing is streamed. A cockpit subscribes, and shows the text while it arrives.

A custom client answers an LLMRequest with an LLMResponse, directly or as an awaitable:

    from agentnb.world.llm.base import LLMResponse, Usage

    class Echo:
        def complete(self, request):
            text = request.prompt.upper()
            if request.on_token is not None:  # there is a listener: pass on the pieces
                for word in text.split():
                    request.on_token(word + " ")
            return LLMResponse(text, model="echo", usage=Usage(tokens_in=3, tokens_out=3))

    nb.Session(recipe, llm=Echo())

It needs no counter: `request.number` and `request.of_node` are the numbers of earlier requests, so that a run that goes
back gets the same answers. It may block: under a timeout, and in a live run, it is called in a thread. To call any
client outside a run, with the answer as a whole or in pieces, see agentnb.world.llm.direct_call.
"""

from __future__ import annotations

from agentnb.world.llm.base import (
    LLMClient,
    LLMError,
    LLMMessage,
    LLMRequest,
    LLMResponse,
    ToolCall,
    ToolDefinition,
    Usage,
)

__all__ = ["LLMClient", "LLMError", "LLMMessage", "LLMRequest", "LLMResponse", "ToolCall", "ToolDefinition", "Usage"]
