"""Remarks on a selection: too few candidates, nothing to do, text that the encoder does not know."""

from itertools import islice

import numpy as np
import numpy.typing as npt

from cod3s.selection.candidates import Rows, Source
from cod3s.selection.config import SelectConfig
from cod3s.selection.duplicates import Distinct
from cod3s.word_lists import word_groups, word_set

Cosines = npt.NDArray[np.float32] | npt.NDArray[np.float64]

_SAMPLE = 200  # texts that are looked at for their language
_CHARACTERS = 10_000
_LATIN_END = "\u024f"
_LEAST_WORDS = 3  # of another language
_SHARE = 0.3  # of the letters outside Latin script, from which on a remark is due
_MULTILINGUAL = "sbert:paraphrase-multilingual-MiniLM-L12-v2"
_ENGLISH_ONLY = ("static", "fast", "sbert:all-MiniLM")


def remarks_on(cosines: Cosines, rows: Rows, candidates: int, config: SelectConfig) -> tuple[str, ...]:
    """Why fewer than k were chosen, or that there was nothing to choose.

    `cosines` are those among all candidates or, if these are many, among the chosen.
    """
    k, same_cosine = config.k, config.same_cosine
    if not len(rows):
        return ("there was nothing to select",)
    if len(rows) < k:
        return (shortage(len(rows), candidates),)
    if len(cosines) == candidates and candidates > max(k, 2):
        lowest, others = cosines.min(), cosines.copy()
        if lowest >= same_cosine:
            return (f"all {candidates} candidates say about the same: no cosine is below {lowest:.2f}",)
        np.fill_diagonal(others, -1)
        if others.max() < same_cosine:
            return (f"all {candidates} candidates differ: no cosine is above {others.max():.2f}",)
    among = cosines[np.ix_(rows, rows)] if len(cosines) == candidates else cosines
    apart: list[int] = []
    for row in range(len(among)):
        if not apart or among[row, apart].max() < same_cosine:
            apart.append(row)
    if len(apart) < len(rows):
        return (
            f"{len(apart)} of {k} differ; the others have a cosine of {same_cosine:.2f} or more to one of them",
        )
    return ()


def remarks_on_distinct(distinct: Distinct) -> tuple[str, ...]:
    """How many were dropped, or that there was nothing to do."""
    dropped, leaks = len(distinct.dropped.positions), len(distinct.leaks.positions)
    left_out = (f"{leaks} left out because a text of the others says the same",) if leaks else ()
    if not len(distinct.kept) and not leaks:
        return ("there was nothing to select",)
    if not dropped:
        return (*left_out, f"all {len(distinct.kept)} differ: no cosine reaches {distinct.threshold:g}")
    if len(distinct.kept) == 1:
        return (*left_out, f"all {dropped + 1} candidates say the same as the best of them")
    return left_out


def shortage(chosen: int, candidates: int) -> str:
    """Why fewer than k were chosen."""
    if chosen < candidates:
        return f"only {chosen} of {candidates} candidates differ"
    return "there was only 1 candidate" if candidates == 1 else f"there were only {candidates} candidates"


def unknown_language(source: Source) -> tuple[str, ...]:
    """A remark if many texts are in a language that the encoder was not trained on, with an encoder that was."""
    if not source.name.startswith(_ENGLISH_ONLY):
        return ()
    text = "\n".join(islice(source.texts, _SAMPLE))[:_CHARACTERS]
    foreign = 0
    if not text.isascii():
        letters = [character for character in text if character.isalpha()]
        foreign = sum(character > _LATIN_END for character in letters)
    if not foreign or foreign < _SHARE * len(letters):
        words = text.lower().split()
        english = sum(word in word_set("English") for word in words)
        other = max(sum(word in language for word in words) for language in map(set, word_groups("foreign")))
        if other < _LEAST_WORDS or other <= english:
            return ()
    return (f"{source.name.partition(':')[0]} knows English only; try --encoder {_MULTILINGUAL}",)
