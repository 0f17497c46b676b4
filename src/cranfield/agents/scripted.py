"""A backend for tests and examples: a function answers."""

from __future__ import annotations

from collections.abc import Callable

from cranfield.agents.budget import TYPICAL_BYTES, estimate
from cranfield.agents.protocol import ModelAnswer, Request, Usage, with_output


class Scripted:
    """Answers by a function of the request: with text, or with a whole answer."""

    def __init__(self, script: Callable[[Request], str | ModelAnswer]) -> None:
        self.script = script
        self.requests: list[Request] = []

    async def ask(self, request: Request) -> ModelAnswer:
        """The answer of the script; text is validated by the schema as that of a model."""
        self.requests.append(request)
        answer = self.script(request)
        if isinstance(answer, ModelAnswer):
            return answer
        tokens = estimate(request, TYPICAL_BYTES)
        usage = Usage(input=tokens.input, cache_read=0, output=max(1, len(answer) // TYPICAL_BYTES))
        return with_output(ModelAnswer(text=answer, usage=usage, model=request.model), request)
