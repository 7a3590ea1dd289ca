"""Options are declared once: config fields, command line and web requests are held against each other."""

import inspect
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args, get_origin

import pytest
from typer.main import get_command

from cod3s.cli.main import app
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.decode.config import DEFAULT, DecodeConfig
from cod3s.errors import UsageError
from cod3s.io.checked_records import parse_record
from cod3s.options import BITS, SEED, check_options, option, options_of, seed_option, with_values
from cod3s.train.config import PRESETS, TrainConfig

COMMANDS = [("generate", DecodeConfig), ("prepare", PrepareConfig), ("train", TrainConfig)]
NOT_OPTIONS = {"shares"}  # of a training run: --roles gives them


def parameters(command: str) -> dict[str, Any]:
    group: Any = get_command(app)
    return {parameter.name: parameter for parameter in group.commands[command].params}


def choices(command: str) -> dict[str, Any]:
    """The type of each parameter that takes one of several names."""
    (found,) = [own for own in app.registered_commands if own.name == command]
    assert found.callback
    annotations = inspect.signature(found.callback).parameters.values()
    kinds = {own.name: get_args(get_args(own.annotation)[0])[:1] for own in annotations}
    return {name: kind[0] for name, kind in kinds.items() if kind and get_origin(kind[0]) is Literal}


@pytest.mark.parametrize(("command", "config"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_every_field_is_an_option_of_the_command(command: str, config: type) -> None:
    declared = options_of(config)
    assert {field.name for field in fields(config)} - NOT_OPTIONS == set(declared)
    given, chosen = parameters(command), choices(command)
    for name, wanted in declared.items():
        parameter = given[name]
        assert wanted.help in parameter.help, name
        assert parameter.default is None, "None stands for not given, so that presets can fill it in"
        assert get_args(chosen.get(name, ())) == wanted.choices, name
        assert wanted.flags or f"--{name.replace('_', '-')}" in parameter.opts, name
        if wanted.kind in (int, float) and wanted.default is not None:
            assert f"default: {wanted.default:g}" in parameter.help, name


def test_what_nobody_chose_has_one_home() -> None:
    assert DEFAULT.seed == PrepareConfig().seed == TrainConfig().seed == SEED == 1234
    assert PrepareConfig().bits == BITS == 16


def test_help_tells_what_each_option_does() -> None:
    for _, config in COMMANDS:
        for name, declared in options_of(config).items():
            assert declared.help.endswith((".", ".)")), name
            assert len(declared.help.split()) >= 3, name
            assert name == "k" or declared.panel, name


@dataclass(frozen=True)
class Recipe:
    loaves: int = option(2, "How many loaves.", least=1, most=9)
    heat: float = option(0.5, "How hot.", above=0)
    crust: Literal["thin", "thick"] = option("thin", "Which crust.")
    salted: bool = option(True, "With salt.")
    extra: int | None = option(None, "More of it.", least=1)
    spices: dict[str, float] = option(dict, "Which spices.")  # noqa: RUF009 - makes a field
    seed: int = seed_option("Seed of the dough.")
    shelf: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_options(self)


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"loaves": 0}, "loaves is 0, but it must be from 1 to 9", "below"),
    ({"loaves": 10}, "from 1 to 9", "above"),
    ({"loaves": 2.0}, "a whole number", "a fraction is not a count, even if it is whole"),
    ({"loaves": True}, "a whole number", "a truth value is not a number"),
    ({"loaves": "2"}, "a whole number", "text is not a number"),
    ({"heat": 0}, "above 0", "the bound itself"),
    ({"heat": float("nan")}, "above 0", "not a number"),
    ({"heat": None}, "a number", "nothing"),
    ({"crust": "thikc"}, "crust cannot be 'thikc'", "a misspelt choice"),
    ({"salted": 1}, "true or false", "a number is not a truth value"),
    ({"extra": 0}, "at least 1", "a bound of what may be left out"),
    ({"seed": 2**32}, "from 0 to 4294967295", "more than a generator takes"),
    ({"yeast": 1}, "baking has no option 'yeast'", "an unknown name"),
]


@pytest.mark.parametrize(("values", "message", "why"), REFUSED, ids=[row[2] for row in REFUSED])
def test_values_that_a_field_does_not_allow_are_refused(values: dict[str, Any], message: str, why: str) -> None:
    with pytest.raises(UsageError, match=message):
        with_values(Recipe(), "baking", values)


def test_values_that_a_field_allows_are_taken() -> None:
    made = with_values(Recipe(), "baking", {"loaves": 9, "heat": 3, "extra": 4, "crust": "thick"})
    assert asdict(made) == {
        **asdict(Recipe()),
        "loaves": 9,
        "heat": 3,
        "extra": 4,
        "crust": "thick",
    }
    assert Recipe().spices is not Recipe().spices
    assert "shelf" not in options_of(Recipe)


def test_a_misspelt_choice_is_told_the_nearest() -> None:
    with pytest.raises(UsageError) as raised:
        Recipe(crust="thikc")  # type: ignore[arg-type]
    assert raised.value.hint == "did you mean 'thick'?"


def test_presets_pass_their_own_checks_as_records_too() -> None:
    for config in PRESETS.values():
        assert parse_record(TrainConfig, config.record()) == config
