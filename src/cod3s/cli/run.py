"""`cod3s run`: type one sentence after another; the model stays loaded and answers appear as they come."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import cod3s
from cod3s.cli.generate import announce_many
from cod3s.cli.output import OPENING, live_text, say
from cod3s.cli.parameters import BundleOption
from cod3s.decode.config import MAX_K
from cod3s.errors import Cod3sError, UsageError
from cod3s.io.disk import open_text
from cod3s.records import AnswerMade, AnswerSet, Event, StageStarted

_HELP = """\
a sentence         get answers to it
:RELATION          answer with this relation from now on, such as :cause
:k N               write N answers
:like SENTENCE     write in the bin of this sentence; :like alone goes back to inferred bins
:help              show this
:quit              leave (also Ctrl-D)"""


def run(
    relation: Annotated[str | None, typer.Argument(help="The relation to start with.", show_default=False)] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=MAX_K, help="How many answers to write.")] = 10,
    bundle: BundleOption = None,
) -> None:
    """Answer sentences as you type them, one per line. The model stays loaded.

    Lines that start with a colon are commands; :help lists them.
    With a pipe as input, only the answers are printed.
    """
    announce_many(k)
    with live_text(OPENING):
        generator = cod3s.load(bundle)
    conversation = Conversation(generator, relation or next(iter(generator.facts.relations)), k)
    generator.require_relation(conversation.relation)
    for line in _lines_for(conversation):
        try:
            if not conversation.hear(line.strip()):
                return
        except Cod3sError as error:  # a slip of the keyboard should not end the conversation
            say(error.message + (f" ({error.hint})" if error.hint else ""))


def _lines_for(conversation: "Conversation") -> Iterator[str]:
    """The lines that are typed after a prompt, or those of a pipe."""
    if not sys.stdin.isatty():
        with open_text(Path("-")) as piped:
            yield from piped
        return
    with suppress(ImportError):  # line editing and history, where Python has them
        import readline  # noqa: F401
    say(f"type a sentence to get its {conversation.relation}s; :help lists the commands")
    with suppress(EOFError):
        while True:
            yield input(f"{conversation.relation}> ")


@dataclass
class Conversation:
    """What the next sentence is answered with."""

    generator: "cod3s.Generator"
    relation: str
    k: int
    like: str = ""

    def hear(self, line: str) -> bool:
        """Act on a line; False if it ends the conversation."""
        if not line.startswith(":"):
            if line:
                self._answer(line)
            return True
        command, _, rest = line[1:].partition(" ")
        match command:
            case "quit" | "q" | "exit":
                return False
            case "help" | "":
                say(_HELP)
            case "k":
                self.k = _count(rest)
                announce_many(self.k)
            case "like":
                self.like = rest.strip()
            case _:
                self.generator.require_relation(command)
                self.relation = command
        return True

    def _answer(self, source: str) -> None:
        signatures = self.generator.signer.signatures([self.like]) if self.like else None
        events = self.generator.stream(source, self.relation, self.k, signatures=signatures, stages=True)
        for event in _with_stages_shown(events):
            if isinstance(event, AnswerMade):
                typer.echo(f"{event.place + 1:3}  {event.answer.text}")
                sys.stdout.flush()
            elif isinstance(event, AnswerSet):
                for remark in event.remarks:
                    say(remark)


def _count(text: str) -> int:
    if not text.strip().isdecimal() or not 1 <= int(text) <= MAX_K:
        raise UsageError(f":k takes a number from 1 to {MAX_K}, not {text.strip()!r}", hint="such as :k 5")
    return int(text)


def _with_stages_shown(events: Iterator[Event]) -> Iterator[Event]:
    """The events except stages, which the terminal shows until the next event comes."""
    with live_text(OPENING):
        event = next(events, None)
    while event is not None:
        if isinstance(event, StageStarted):
            with live_text(f"{event} …"):
                event = next(events, None)
        else:
            yield event
            event = next(events, None)
