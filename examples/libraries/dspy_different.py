"""DSPy: ask a signature until k predictions mean different things, as a module.

ideas = Different("question -> answer", k=5)
for prediction in ideas(question="Name one use for a brick.").predictions: …
"""

from itertools import count
from typing import Any

import dspy

import cod3s


class Different(dspy.Module):
    """`compare` is the output field that has to differ; by default, the signature's last."""

    def __init__(self, signature: Any, k: int = 5, compare: str = "", **options: Any) -> None:
        super().__init__()
        self.predict = dspy.Predict(signature)
        self.compare = compare or list(self.predict.signature.output_fields)[-1]
        self.k, self.options = k, options

    def forward(self, **inputs: Any) -> dspy.Prediction:
        predictions: list[dspy.Prediction] = []
        rollouts = count(1)  # another number per call, so that DSPy's cache does not repeat an answer

        def ask(_prompt: str) -> str:
            config = {"rollout_id": next(rollouts), "temperature": 1.0}
            predictions.append(self.predict(**inputs, config=config))
            return str(getattr(predictions[-1], self.compare))

        prompt = "\n".join(map(str, inputs.values()))
        answers = cod3s.diversify(ask, prompt, self.k, strategy="resample", **self.options)
        return dspy.Prediction(predictions=[predictions[answer.index] for answer in answers])
