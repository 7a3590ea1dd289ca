"""The prompt of a call: a text, or the messages of a conversation, whose images are passed on untouched."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from cod3s.errors import UsageError
from cod3s.text import is_visible

Message = Mapping[str, Any]
PromptLike = Union["Prompt", str, Sequence[Message]]
_FORM = '[{"role": "user", "content": "…"}]'


@dataclass(frozen=True)
class Prompt:
    """The messages to send; `is_text` if the user gave a text, which a plain function gets as text again."""

    messages: tuple[Message, ...]
    is_text: bool

    @property
    def text(self) -> str:
        """The text of the last message."""
        return _text_of(self.messages[-1]["content"])

    def adding(self, request: str) -> "Prompt":
        """The same with a request after the last message."""
        content = self.messages[-1]["content"]
        if isinstance(content, str):
            return self._with_last(f"{content}\n\n{request}")
        return self._with_last([*content, {"type": "text", "text": request}])

    def rewording(self, text: str) -> "Prompt":
        """The same with another text in the last message; its images stay."""
        content = self.messages[-1]["content"]
        if isinstance(content, str):
            return self._with_last(text)
        others = [part for part in content if part.get("type") != "text"]
        return self._with_last([*others, {"type": "text", "text": text}])

    def with_system(self, text: str) -> "Prompt":
        """The same with a system prompt, which follows the one that is there."""
        first = self.messages[0]
        if first["role"] == "system" and isinstance(first["content"], str):
            system = {**first, "content": f"{first['content']}\n\n{text}"}
            return Prompt((system, *self.messages[1:]), self.is_text)
        return Prompt(({"role": "system", "content": text}, *self.messages), self.is_text)

    def continued(self, reply: str, request: str) -> "Prompt":
        """The conversation after a reply, with another request."""
        answer = {"role": "assistant", "content": reply}
        return Prompt((*self.messages, answer, {"role": "user", "content": request}), self.is_text)

    def to_send(self, takes_messages: bool) -> str | list[Message]:
        """Messages, or the text of all of them for a generator that takes a text."""
        if takes_messages or not self.is_text:
            return list(self.messages)
        return "\n\n".join(_text_of(message["content"]) for message in self.messages)

    def original(self) -> str | tuple[Message, ...]:
        """The prompt as the user wrote it."""
        return self.text if self.is_text else self.messages

    @property
    def fingerprint(self) -> str:
        """Tells this prompt from others."""
        content = json.dumps(self.messages, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def _with_last(self, content: Any) -> "Prompt":
        return Prompt((*self.messages[:-1], {**self.messages[-1], "content": content}), self.is_text)


def read_prompt(prompt: PromptLike) -> Prompt:
    """The prompt in a text or in a list of messages; an error says what is wrong with it."""
    if isinstance(prompt, Prompt):
        return prompt
    if isinstance(prompt, str):
        if not is_visible(prompt):
            raise UsageError("the prompt is empty", hint="give a text with at least one visible character")
        return Prompt(({"role": "user", "content": prompt},), is_text=True)
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes) or not prompt:
        raise UsageError(f"the prompt is {type(prompt).__name__}", hint=f"give a text, or messages: {_FORM}")
    messages: list[Any] = list(prompt)
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise UsageError(f"message {number} has no role", hint=f"messages look like {_FORM}")
        if not isinstance(message.get("content"), str | list) and number == len(messages):
            raise UsageError(f"message {number} has no content", hint=f"messages look like {_FORM}")
    last = messages[-1]
    if last["role"] == "assistant":
        raise UsageError("the conversation ends with the assistant's answer", hint="leave out its last message")
    content = last["content"]
    if isinstance(content, list) and not all(isinstance(part, Mapping) for part in content):
        raise UsageError("the last message has a part that is not an object", hint=f"messages look like {_FORM}")
    if isinstance(content, str) and not is_visible(content):
        raise UsageError("the last message is empty", hint="give a text with at least one visible character")
    return Prompt(tuple(dict(message) for message in messages), is_text=False)


def _text_of(content: Any) -> str:
    """The text of a message; parts are joined."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if part.get("type", "text") == "text")
    return str(content)
