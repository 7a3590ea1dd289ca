"""distilabel: keep the k generations of each row that mean different things, as a step of a pipeline.

generate = TextGeneration(llm=…, num_generations=20, group_generations=True)
generate >> DifferentGenerations(k=5)
"""

from typing import TYPE_CHECKING

from distilabel.steps import Step, StepInput

import cod3s

if TYPE_CHECKING:
    from distilabel.typing import StepColumns, StepOutput


class DifferentGenerations(Step):
    """The other columns of a row stay as they are."""

    k: int = 5
    encoder: str = "static"

    @property
    def inputs(self) -> "StepColumns":
        return ["generation"]

    @property
    def outputs(self) -> "StepColumns":
        return ["generation"]

    def process(self, inputs: StepInput) -> "StepOutput":
        for row in inputs:
            texts = [text for text in row["generation"] if text]
            row["generation"] = list(cod3s.select(texts, self.k, encoder=self.encoder).texts)
        yield inputs
