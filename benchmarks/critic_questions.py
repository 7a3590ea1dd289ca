"""How many questions the critic answers if it was not fitted on their alternatives: five folds.

    python benchmarks/critic_questions.py balanced-copa-dev-all.xml ecare-dev.jsonl --also copa-dev.xml

Weighs every score that the bundle can give, and fits the weights for alternatives on the questions of four folds,
as `cod3s critic train` does. The questions of --also are judged by the weights of their fold: COPA dev is a part
of Balanced COPA, and equal alternatives are in the same fold. Known sources count as if they were not known.
"""

import argparse
from pathlib import Path

import numpy as np

from cod3s.cli.critic import offered_features
from cod3s.corpus.questions import read_questions
from cod3s.critic.examples import question_examples
from cod3s.critic.fitting import THOROUGH_FEATURES, fit_weights, make_folds, measure
from cod3s.decode.generator import load
from cod3s.decode.plausibility import Critic, Judge
from cod3s.logistic import logistic

TOGETHER = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="+", type=Path)
    parser.add_argument("--also", action="append", type=Path, default=[])
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--seed", type=int, default=1234)
    options = parser.parse_args()
    generator = load(options.bundle)
    paths = [*options.questions, *options.also]
    examples = [e for path in paths for e in question_examples(path.name.partition(".")[0], read_questions(path))]
    fitted_on = {path.name.partition(".")[0] for path in options.questions}
    weights = dict.fromkeys(offered_features(THOROUGH_FEATURES, generator.facts), 0.0)
    critic = Critic(weights, 0.0, 0.0, generator.encoder.id)
    judge = Judge(critic, generator.models, generator.signer, leave_out=True, likelihoods=True)
    pairs = [example.pair for example in examples]
    rows = np.concatenate([judge.features(pairs[n : n + TOGETHER]) for n in range(0, len(pairs), TOGETHER)])
    labels = np.array([float(example.plausible) for example in examples])
    data = np.array([example.data for example in examples])
    folds = make_folds([example.question for example in examples], options.seed)
    probabilities = np.zeros(len(examples))
    for fold in set(folds.tolist()):
        taught = (folds != fold) & np.isin(data, [*fitted_on])
        fold_weights, bias = fit_weights(rows[taught], labels[taught], data[taught])
        probabilities[folds == fold] = logistic(rows[folds == fold] @ fold_weights + bias)
    print("| data | relation | questions | right | AUC | calibration error |\n|---|---|---|---|---|---|")
    for row in measure(examples, probabilities):
        figures = f"{row.accuracy:.1%} | {row.auc:.3f} | {row.calibration_error:.3f}"
        print(f"| {row.data} | {row.relation or 'all'} | {row.questions} | {figures} |")


if __name__ == "__main__":
    main()
