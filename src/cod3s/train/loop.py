"""The training loop: transformers' Trainer with our batches, logs and time limit."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError, require
from cod3s.io.disk import read_json, replaced_folder
from cod3s.model.shape import SHAPES
from cod3s.model.transformer import quiet_transformers
from cod3s.train.batches import TensorBatches
from cod3s.train.config import TrainConfig
from cod3s.train.curves import Log
from cod3s.train.run_folder import STABLE, clear_disk_errors

_STATE = "trainer_state.json"

Report = Callable[[int, int, float, float], None]
"""Called with step, last step, pairs per second and the newest loss."""


def fit(
    model: Any,
    train: TensorBatches,
    check: Callable[[Any], dict[str, float]],
    config: TrainConfig,
    folder: Path,
    *,
    seconds: float | None,
    clock: Callable[[], float],
    resume: bool,
    report: Report,
    pairs_per_batch: float,
) -> tuple[dict[str, float], bool]:
    """Train until the steps, the time or the patience run out; the best weights end up in `model`.

    `check` gives the validation figures of a model, `loss` among them, which decides what is best. Checkpoints
    (the best and the last) and `log.csv` are in `folder`. Returns the figures of the best weights, and whether the
    run is finished: if it ran out of time, it can continue from its last checkpoint.
    """
    transformers = quiet_transformers()
    log = Log(folder / "log.csv")
    pairs_per_step = pairs_per_batch * config.accumulate * _processes()
    steps = _steps(config, len(train))
    arguments = _arguments(transformers, config, folder, steps)
    trainer = _trainer_class(transformers, check)(
        model=model,
        args=arguments,
        train_dataset=train,
        eval_dataset=train,  # never read: `check` knows what to validate on
        data_collator=lambda items: items[0],  # an item is a batch already
        callbacks=[
            transformers.EarlyStoppingCallback(config.patience),
            *_tensorboard(transformers, config, folder),
            *_stable_copy(transformers, config, folder, steps),
            watch := _watch(transformers, log, seconds, clock, report, pairs_per_step),
        ],
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.remove_callback(transformers.ProgressCallback)
    checkpoint = _last_checkpoint(folder) if resume else None
    state = transformers.TrainerState.load_from_json(str(checkpoint / _STATE)) if checkpoint else None
    if state and state.max_steps != steps and (folder / STABLE).exists():
        checkpoint = folder / STABLE  # the run got more steps, so its rate has not fallen yet
        state = transformers.TrainerState.load_from_json(str(checkpoint / _STATE))
        _forget_after(folder, state.global_step)
    if state and _is_over(state, config):
        # It was stopped between its last step and its end; the Trainer would take another step.
        log.cut(state.global_step)
        state.best_model_checkpoint = str(folder / Path(state.best_model_checkpoint).name)
        trainer.state = state
        trainer._load_best_model()
    else:
        with clear_disk_errors(folder):
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    return {**check(model), "pairs_per_second": watch.rate}, not watch.out_of_time


def _tensorboard(transformers: Any, config: TrainConfig, folder: Path) -> list[Any]:
    """What writes TensorBoard's event files, if they are asked for."""
    if not config.tensorboard:
        return []
    require("tensorboard", "tensorboard")
    writer = transformers.integrations.TensorBoardCallback()
    writer.logging_dir = str(folder / "tensorboard")
    return [writer]


def _stable_copy(transformers: Any, config: TrainConfig, folder: Path, steps: int) -> list[Any]:
    """What keeps a copy of the checkpoint from which a run with a stable schedule can be continued."""
    if config.schedule != "stable":
        return []
    last = steps - _decay_steps(config, steps)

    class StableCopy(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_save |= state.global_step == last

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == last and state.is_world_process_zero:
                with replaced_folder(folder / STABLE) as partial:
                    shutil.copytree(folder / f"checkpoint-{last}", partial, dirs_exist_ok=True)

    return [StableCopy()]


def _forget_after(folder: Path, step: int) -> None:
    """Remove the checkpoints after `step`."""
    for path in folder.glob("checkpoint-*"):
        if int(path.name.rpartition("-")[2]) > step and _processes() == 1:
            shutil.rmtree(path)


def _last_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint. Its state is written last: a run that was killed while saving leaves none."""
    steps = {int(path.name.rpartition("-")[2]): path for path in folder.glob("checkpoint-*")}
    for _, path in sorted(steps.items(), reverse=True):
        with suppress(Cod3sError):
            read_json(path / _STATE)
            return path
    return None


def _is_over(state: Any, config: TrainConfig) -> bool:
    """Whether all steps were taken, or the patience had run out, when a checkpoint was written."""
    patience = state.stateful_callbacks.get("EarlyStoppingCallback", {}).get("attributes", {})
    tries: int = patience.get("early_stopping_patience_counter", 0)
    return bool(state.global_step >= state.max_steps or tries >= config.patience)


def _steps(config: TrainConfig, batches: int) -> int:
    steps = max(1, batches // (config.accumulate * _processes()))
    return min(steps, config.max_steps or steps)


def _decay_steps(config: TrainConfig, steps: int) -> int:
    """The steps at the end in which the rate of a stable schedule falls."""
    return max(1, round(config.decay * steps))


def _arguments(transformers: Any, config: TrainConfig, folder: Path, steps: int) -> Any:
    schedules: dict[str, tuple[str, dict[str, Any]]] = {
        "stable": (
            "warmup_stable_decay",
            {"num_decay_steps": _decay_steps(config, steps), "decay_type": "linear", "min_lr_ratio": 0.0},
        )
    }
    schedule, details = schedules.get(config.schedule, (config.schedule, {}))
    return transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=1,
        per_device_eval_batch_size=1,
        max_steps=steps,
        gradient_accumulation_steps=config.accumulate,
        learning_rate=config.learning_rate,
        lr_scheduler_type=schedule,
        lr_scheduler_kwargs=details,
        warmup_steps=min(config.warmup_steps, steps // 10) if config.schedule == "linear" else config.warmup_steps,
        adam_beta1=0.9,
        adam_beta2=config.beta2,
        optim="adamw_torch_fused",
        weight_decay=config.weight_decay,
        max_grad_norm=config.clip,
        # A causal model smooths its labels itself.
        label_smoothing_factor=0.0 if SHAPES[config.shape].causal else config.label_smoothing,
        eval_strategy="steps",
        eval_steps=config.evaluate_every,
        save_steps=config.evaluate_every,
        logging_steps=max(1, config.evaluate_every // 10),
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="loss",
        greater_is_better=False,
        seed=config.seed,
        data_seed=config.seed,
        dataloader_num_workers=0,
        report_to="none",
        disable_tqdm=True,
        use_cpu=not require("torch", "train").cuda.is_available(),
        remove_unused_columns=False,
        logging_nan_inf_filter=False,
        restore_callback_states_from_checkpoint=True,  # patience keeps counting across restarts
    )


def _processes() -> int:
    """How many processes train together (torchrun says so)."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def _trainer_class(transformers: Any, check: Callable[[Any], dict[str, float]]) -> Any:
    """Trainer with batches in the given order (they are already shuffled) and our own validation."""

    class Ordered(transformers.Trainer):  # type: ignore[misc]
        def _get_train_sampler(self, dataset: Any = None) -> Any:
            return require("torch.utils.data", "train").SequentialSampler(dataset or self.train_dataset)

        def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
            figures = {f"eval_{name}": value for name, value in check(self.model).items()}
            self.log(dict(figures))
            self.control: Any = self.callback_handler.on_evaluate(self.args, self.state, self.control, figures)
            return figures

    return Ordered


def any_process(flag: bool, device: Any) -> bool:
    """Whether any of the processes says so: they must stop at the same step, and their clocks differ."""
    if _processes() == 1:
        return flag
    torch = require("torch", "train")
    flags = torch.tensor(int(flag), device=device)
    torch.distributed.all_reduce(flags, op=torch.distributed.ReduceOp.MAX)
    return bool(flags)


def _watch(
    transformers: Any,
    log: Log,
    seconds: float | None,
    clock: Callable[[], float],
    report: Report,
    pairs_per_step: float,
) -> Any:
    """Writes every logged figure to `log`, tells `report`, and stops the run when its time is up."""

    class Watch(transformers.TrainerCallback):  # type: ignore[misc]
        def __init__(self) -> None:
            self.start, self.first_step, self.loss, self.rate = clock(), 0, float("nan"), 0.0
            self.out_of_time = False

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.start, self.first_step = clock(), state.global_step
            if state.is_world_process_zero:
                log.cut(state.global_step)

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any], **_: Any) -> None:
            self.loss = logs.get("loss", self.loss)
            if state.is_world_process_zero:
                log.add(state.global_step, logs)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            spent = clock() - self.start
            self.rate = pairs_per_step * (state.global_step - self.first_step) / max(spent, 1e-9)
            report(state.global_step, state.max_steps, self.rate, self.loss)
            if seconds is not None and any_process(spent > seconds, args.device):
                self.out_of_time = True
                control.should_evaluate = control.should_save = control.should_training_stop = True

    return Watch()
