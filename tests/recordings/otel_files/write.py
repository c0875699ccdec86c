"""Write the files of this folder: one run of an agent, as three libraries export it, and one that fails.

The libraries change the hooks of LangChain, so each file is written by a process of its own, in an environment with
langchain, langsmith, opentelemetry-instrumentation-langchain, openinference-instrumentation-langchain and
opentelemetry-exporter-otlp-json-file:

    python write.py openllmetry; python write.py openinference; python write.py langsmith

No network is used: the model is scripted.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from opentelemetry import trace
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

FOLDER = Path(__file__).parent
BOTH = threading.Barrier(2, timeout=10)  # both tools run at the same time


class Scripted(BaseChatModel):
    """A model that calls both tools, and then answers."""

    model: str = "scripted-1"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _get_ls_params(self, stop: Any = None, **words: Any) -> dict[str, Any]:
        return {"ls_provider": "openai", "ls_model_name": self.model, "ls_model_type": "chat"}

    def bind_tools(self, tools: Any, **words: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **words: Any) -> ChatResult:
        results = sum(isinstance(each, ToolMessage) for each in messages)
        usage = {"input_tokens": 10 + results, "output_tokens": 5 + results, "total_tokens": 15 + 2 * results}
        calls = (
            [] if results else [{"name": name, "args": {"city": "Rome"}, "id": name} for name in ("weather", "clock")]
        )
        reason = "stop" if results else "tool_calls"
        answer = "It is sunny at noon in Rome." if results else ""
        message = AIMessage(answer, tool_calls=calls, usage_metadata=usage,
                            response_metadata={"model_name": self.model, "finish_reason": reason})  # fmt: skip
        return ChatResult(generations=[ChatGeneration(message=message, generation_info={"finish_reason": reason})],
                          llm_output={"model_name": self.model})  # fmt: skip


@tool
def weather(city: str) -> dict:
    """Return the weather of a city."""
    BOTH.wait()
    return {"sky": "sunny", "city": city}


@tool
def clock(city: str) -> str:
    """Return the time in a city."""
    BOTH.wait()
    if os.environ.get("FAIL"):
        raise ValueError("the clock has stopped")
    return "noon"


def main() -> None:
    """Write the file of one library."""
    library, fails = sys.argv[1], os.environ.get("FAIL")
    path = FOLDER / f"{library}{'_failed' if fails else ''}.jsonl"
    path.unlink(missing_ok=True)
    provider = TracerProvider(resource=Resource({"service.name": "weather"}))
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(path)))
    trace.set_tracer_provider(provider)
    match library:
        case "openllmetry":
            from opentelemetry.instrumentation.langchain import LangchainInstrumentor

            LangchainInstrumentor().instrument(tracer_provider=provider)
        case "openinference":
            from openinference.instrumentation.langchain import LangChainInstrumentor

            LangChainInstrumentor().instrument(tracer_provider=provider)
        case "langsmith":
            words = {"TRACING": "true", "OTEL_ENABLED": "true", "OTEL_ONLY": "true", "API_KEY": "none"}
            os.environ.update({f"LANGSMITH_{name}": word for name, word in words.items()})
    agent = create_agent(Scripted(), [weather, clock], system_prompt="You are terse.", name="helper")
    with suppress(ValueError):
        agent.invoke({"messages": [{"role": "user", "content": "Weather and time in Rome?"}]})
    if library == "langsmith":
        from langchain_core.tracers.langchain import wait_for_all_tracers

        wait_for_all_tracers()
    provider.shutdown()
    text = path.read_text(encoding="utf-8")
    # In tracebacks: no folder of a machine
    path.write_text(re.sub(r'(File [\\"]+)[^"]*/', r"\1", text), encoding="utf-8")


if __name__ == "__main__":
    main()
