"""A whole evaluation: generate with every system, score what they wrote, and write the report."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from cod3s.bundle import default_bundle
from cod3s.decode.config import PAPER, DecodeConfig
from cod3s.decode.systems import find_system
from cod3s.errors import Progress
from cod3s.evaluate.evaluation import evaluate_outputs
from cod3s.evaluate.generation import (
    DEFAULT_SYSTEMS,
    Named,
    check_run,
    generate_outputs,
    require_system,
    run_record,
    runnable,
)
from cod3s.evaluate.guessing import score_guessing
from cod3s.evaluate.items import EvaluationData, read_data
from cod3s.evaluate.opened import Opened, open_bundle
from cod3s.evaluate.report import OUTPUTS, write_report
from cod3s.evaluate.summary import Summary
from cod3s.options import SEED


def evaluate(
    data: EvaluationData | str | Path,
    output: str | Path,
    bundle: Opened | str | Path | None = None,
    *,
    systems: Sequence[str] = (),
    options: DecodeConfig = PAPER,
    sizes: Sequence[int] = (3, 10),
    seed: int = SEED,
    questions: Sequence[EvaluationData] = (),
    stage: Callable[[str, int | None], AbstractContextManager[Progress]] = lambda _label, _total: nullcontext(
        lambda _done: None
    ),
    remark: Callable[[str], None] = lambda _remark: None,
) -> Summary:
    """The figures of each system on `data`; the report is written to the folder `output`.

    Without `bundle`, the one in the package answers; without `systems`, those of the paper's rows that it can run.
    `options` are those that a system's name leaves open. The same call goes on with a report that was begun.
    """
    data = data if isinstance(data, EvaluationData) else read_data(Path(data), "")
    opened = bundle if isinstance(bundle, Opened) else open_bundle(Path(bundle or default_bundle()))
    options = options.with_values(k=max(sizes), seed=seed)
    for name in systems:
        require_system(opened.generator, name, data, options)
    names = systems or list(runnable(opened.generator, DEFAULT_SYSTEMS, data, options, remark))
    named = [Named(name, find_system(name).name, options) for name in names]
    check_run(Path(output), run_record(data, dict(opened.judges.settings), options))
    with stage("generating", len(named) * len(data.items)) as advance:
        written = generate_outputs(opened.generator, data, named, Path(output) / OUTPUTS, progress=advance)
    remark("scoring the outputs")
    summary = evaluate_outputs(
        written,
        data,
        opened.judges,
        sizes=sizes,
        seed=seed,
        more_questions=questions,
        inference=score_guessing(opened.folder, opened.models, opened.generator.signer, data.items, options),
    )
    write_report(Path(output), summary, written, data.items)
    return summary
