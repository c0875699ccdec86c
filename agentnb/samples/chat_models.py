"""A chat model of LangChain without a network: it stands in for a real one in the samples of LangGraph and Burr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool


class SimulatedChatModel(BaseChatModel):  # type: ignore[misc]  # a class without types
    """Answers by a function of the messages, which returns a text or a message.

    A session with a model asks that one instead: `nb.Session(recipe, llm="openai:gpt-4o")`, `agentnb run NAME --live`.
    """

    answer: Callable[[Sequence[BaseMessage]], str | AIMessage]

    @property
    def _llm_type(self) -> str:
        return "simulated"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        """Return the model with tools that it may call."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        del stop, run_manager, options
        answer = self.answer(messages)
        message = AIMessage(answer) if isinstance(answer, str) else answer
        return ChatResult(generations=[ChatGeneration(message=message)])
