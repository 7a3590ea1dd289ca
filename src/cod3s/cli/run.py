"""`cod3s run`: type one sentence after another; the model stays loaded and answers appear as they come."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

import cod3s
from cod3s.cli.generate import announce_many, details_of
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
:more              write other answers to the same sentence
:verbose           also show each answer's score, signature and bin; again to stop
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
        except KeyboardInterrupt:  # stops the answer, not the conversation
            if not sys.stdin.isatty():
                raise
            say("")
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
            try:
                line = input(f"{conversation.relation}> ")
            except KeyboardInterrupt:  # clears the line, as in a shell
                say("")
                continue
            yield line


@dataclass
class Conversation:
    """What the next sentence is answered with."""

    generator: "cod3s.Generator"
    relation: str
    k: int
    like: str = ""
    verbose: bool = False
    source: str = ""  # the last sentence, and the answers that it has had
    shown: set[str] = field(default_factory=set)

    def hear(self, line: str) -> bool:
        """Act on a line; False if it ends the conversation."""
        if not line.startswith(":"):
            if line:
                self.source, self.shown = line, set()
                self._answer()
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
            case "more":
                if not self.source:
                    raise UsageError(":more needs a sentence before it", hint="type a sentence")
                self._answer()
            case "verbose":
                self.verbose = not self.verbose
                say(f"details are {'shown' if self.verbose else 'hidden'} from now on")
            case _:
                self.generator.require_relation(command)
                self.relation, self.shown = command, set()
        return True

    def _answer(self) -> None:
        """Print k answers to the sentence; `:more` looks for as many again, and leaves out those already shown."""
        signatures = self.generator.signer.signatures([self.like]) if self.like else None
        before, number = set(self.shown), 0
        k = min(MAX_K, len(before) + self.k)
        events = self.generator.stream(self.source, self.relation, k, signatures=signatures, stages=True)
        for event in _with_stages_shown(events):
            if isinstance(event, AnswerMade) and event.answer.text not in before and number < self.k:
                number += 1
                self.shown.add(event.answer.text)
                typer.echo(f"{len(self.shown):3}  {event.answer.text}")
                if self.verbose:
                    typer.echo(f"     {details_of(event.answer)}")
                sys.stdout.flush()
            elif isinstance(event, AnswerSet):
                for remark in event.remarks:
                    say(remark)
        if before and not number:
            say("there are no other answers" + (" in this bin; :like alone leaves it" if self.like else ""))


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
