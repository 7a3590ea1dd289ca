"""Select k candidates that mean different things, or drop near duplicates; the door of the room."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.encode import Encoder, Vectors
from cod3s.errors import UsageError
from cod3s.selection import tables
from cod3s.selection.candidates import (
    Rows,
    Scores,
    Source,
    check_scores,
    check_texts,
    encode_rows,
    open_source,
    quality_of,
    rank,
    sign_rows,
)
from cod3s.selection.config import AUTO, BITS, SelectConfig
from cod3s.selection.duplicates import find_distinct
from cod3s.selection.greedy import choose_dpp, choose_mmr, weights_of
from cod3s.selection.hamming_rule import choose_apart
from cod3s.selection.history import History, open_history
from cod3s.selection.kmedoids import choose_kmedoids
from cod3s.selection.remarks import Cosines, remarks_on, unknown_language
from cod3s.selection.representatives import choose_representatives
from cod3s.selection.result import Deduplicated, Selected, Selection, TableSelection
from cod3s.selection.standing import Standing, standing_by_cosine, standing_by_hamming
from cod3s.selection.thinning import thin
from cod3s.signatures import SEED, cosine_estimate, hamming, to_text, unpack

MOST_COMPARED = 1_000  # candidates that `representatives` compares in full; beyond, one stands for each bin
_FEW = 200  # candidates whose pairs are all compared, to remark if all or none of them say the same
_WISH_WEIGHT = 0.8  # of the similarity to `like`, where no higher score weight is set


def select(
    candidates: Iterable[str] | Any,
    k: int | None = None,
    *,
    threshold: float | None = None,
    column: str | Sequence[str] | None = None,
    by: str | Iterable[Any] | None = None,
    scores: Iterable[float] | str | None = None,
    unlike: Iterable[str] | Path | None = None,
    like: Iterable[str] | Path | None = None,
    against: Iterable[str] | Path | None = None,
    method: str = AUTO,
    min_hamming: int | None = None,
    bits: int = BITS,
    encoder: Encoder | str = "static",
    vectors: Vectors | None = None,
    seed: int = SEED,
    score_weight: float | None = None,
    strict: bool = False,
) -> Selection:
    """Choose k candidates (10 by default) that mean different things, or with `threshold` drop near duplicates.

    Candidates are texts or a table (pandas, Polars, `datasets.Dataset`): then `column` names the text (several are
    joined), `scores` and `by` may name columns, and the result's `table` has the chosen rows as they came. `by`
    chooses k per group. Higher scores are better; without scores, the order is the ranking.

    `threshold`: a candidate whose cosine to a kept one is at least this is its duplicate; those as similar to
    a text in `against` are left out as leaks. `unlike`: keep away from texts that were shown before. `like`: keep
    near a wish. The three take texts, or the Path of a file.

    `min_hamming` asks for the paper's rule (method `signatures`): candidates are the same if their signatures
    differ in at most so many bits; by default a quarter of `bits`, a cosine of about 0.7. `strict` then returns
    fewer than k rather than any so close. `score_weight`, from 0 to below 1, weighs scores against diversity: by
    default 0.5 for mmr and dpp, else 0.03. `vectors` are your embeddings, which replace the encoder.
    """
    table = candidates if tables.is_table(candidates) else None
    if table is not None:
        candidates = tables.texts_of(table, column)
        scores = tables.column_of(table, scores) if isinstance(scores, str) else scores
        by = tables.column_of(table, by) if isinstance(by, str) else by
    elif column is not None or isinstance(scores, str) or isinstance(by, str):
        raise UsageError("columns were named, but the candidates are not a table", hint="pass lists instead")
    texts = check_texts(candidates)
    numbers = check_scores(scores, len(texts))
    source = open_source(texts, encoder, vectors, bits, seed)
    if threshold is not None:
        if k is not None or by is not None or unlike is not None or like is not None:
            raise UsageError("threshold= keeps all that differ, without k=, by=, unlike= or like=")
        others = open_history(against, "against")
        selection: Selection = Deduplicated.of(
            find_distinct(source, numbers, threshold, against=None if others is None else others.read(), seed=seed)
        )
    else:
        if against is not None:
            raise UsageError("against= needs a threshold", hint="for example threshold=0.9")
        config = SelectConfig(
            k=SelectConfig.k if k is None else k,
            method=method,
            min_hamming=min_hamming,
            strict=strict,
            score_weight=score_weight,
            bits=bits,
            seed=seed,
        ).resolve()
        histories = open_history(unlike, "unlike"), open_history(like, "like")
        if by is None:
            selection = choose(source, numbers, config, *histories)
        else:
            groups = tables.groups_of(by, len(texts))
            selection = joined(source, config, choose_by(source, numbers, config, groups, *histories))
    if table is None:
        return selection
    return TableSelection.of(selection, tables.take(table, selection.indices))


def choose(
    source: Source,
    scores: Scores | None,
    config: SelectConfig,
    unlike: History | None = None,
    like: History | None = None,
    among: Rows | None = None,
) -> Selection:
    """Choose from all candidates, or from those `among` these positions."""
    positions, blank = rank(source.texts, scores, among)
    remarks = unknown_language(source) if among is None else ()
    shown: Scores | None = None  # the cosine of each candidate to the nearest text that was shown
    if unlike is not None and len(positions):
        shown = unlike.nearest(source, encode_rows(source, positions))
        known = int((shown >= config.same_cosine).sum())
        if known:
            remarks = (f"{known} of {len(positions)} candidates say what was shown before", *remarks)
        new = _new_enough(shown, config)
        positions, shown = positions[new], shown[new]
    if config.method == "signatures":
        if like is not None and len(positions):
            wishes = like.nearest(source, encode_rows(source, positions))
            positions = positions[np.argsort(-wishes, kind="stable")]  # the rule knows no scores, only a ranking
        picked = _pick_by_rule(source, positions, config)
    else:
        picked = _pick_by_vectors(source, positions, scores, config, shown, like)
    return Selection(
        k=config.k,
        method=config.method,
        selected=_describe(source, scores, positions, picked),
        settings={"encoder": source.name, **config.to_settings()},
        blank=tuple(blank.tolist()),
        remarks=(*remarks_on(picked.cosines, picked.rows, len(positions), config), *remarks),
    )


def choose_by(
    source: Source,
    scores: Scores | None,
    config: SelectConfig,
    groups: dict[Any, Rows],
    unlike: History | None = None,
    like: History | None = None,
) -> Iterator[tuple[Any, Selection]]:
    """Choose k per group: each group's value and its selection; indices are positions among all candidates."""
    for value, among in groups.items():
        selection = choose(source, scores, config, unlike, like, among)
        selected = tuple(replace(candidate, group=value) for candidate in selection)
        yield value, replace(selection, selected=selected)


@dataclass(frozen=True, eq=False)
class _Picked:
    """The chosen rows (in rank order of the candidates), their signatures, and what they stand for."""

    rows: Rows
    signatures: list[str]
    standing: Standing
    cosines: Cosines  # among all candidates if they are few, else among the chosen


def _pick_by_rule(source: Source, positions: Rows, config: SelectConfig) -> _Picked:
    """Rows chosen by the Hamming rule; vectors are not kept."""
    packed = sign_rows(source, positions)
    rows = choose_apart(
        packed,
        lambda rows: source.forms(positions[rows]),
        config.k,
        min_hamming=config.hamming,
        strict=config.strict,
    )
    distances = hamming(packed[rows][:, None], packed[rows])
    return _Picked(
        rows,
        to_text(unpack(packed[rows], config.bits)),
        standing_by_hamming(packed, rows, config.hamming),
        cosine_estimate(distances, config.bits),
    )


def _pick_by_vectors(
    source: Source,
    positions: Rows,
    scores: Scores | None,
    config: SelectConfig,
    shown: Scores | None,
    like: History | None,
) -> _Picked:
    """Rows chosen by a method that looks at cosines, from the candidates whose texts differ."""
    packed, rows, count = None, np.arange(len(positions)), np.ones(len(positions))
    most = max(MOST_COMPARED, 4 * config.k)
    if config.method == "representatives" and len(positions) > most:
        packed = sign_rows(source, positions)
        rows, count = thin(packed, most)
    vectors = encode_rows(source, positions[rows])
    texts = _equal_texts(source.forms(positions[rows]))
    different = np.flatnonzero(texts == np.arange(len(texts)))
    among = vectors[different]
    sizes: Scores = np.bincount(texts, count, len(texts))[different].astype(np.float64)
    quality, score_weight = quality_of(scores, positions[rows[different]]), config.weight
    if like is not None and len(among):
        quality = (quality + quality_of(like.nearest(source, among), np.arange(len(among)))) / 2
        score_weight = max(score_weight, _WISH_WEIGHT)
    if config.method == "kmedoids" and len(among):
        chosen = choose_kmedoids(among, quality, config.k, seed=config.seed)
    elif config.method == "mmr":
        chosen = choose_mmr(among, quality, config.k, score_weight=score_weight)
    elif config.method == "dpp":
        chosen = choose_dpp(among, quality, config.k, score_weight=score_weight)
    else:
        weight = weights_of(quality, score_weight)
        if shown is not None:
            weight *= 1 - np.clip(shown[rows[different]], 0, 0.99)
        chosen = choose_representatives(among, weight, sizes, config.k)
    chosen = different[chosen]
    if packed is None:
        standing = standing_by_cosine(vectors, texts, chosen, config.same_cosine)
    else:
        standing = standing_by_hamming(packed, rows[chosen], config.hamming)
    compared = vectors if len(positions) <= _FEW else vectors[chosen]
    return _Picked(rows[chosen], to_text(source.code.sign(vectors[chosen])), standing, compared @ compared.T)


def _new_enough(shown: Scores, config: SelectConfig) -> npt.NDArray[np.bool_]:
    """Which candidates do not say what was shown before; if fewer than k, also the least similar others."""
    new = shown < config.same_cosine
    if new.sum() < config.k:
        new[np.argsort(shown, kind="stable")[: config.k]] = True
    return new


def _equal_texts(forms: list[str]) -> Rows:
    """For each text, the first row with the same."""
    first: dict[str, int] = {}
    return np.fromiter((first.setdefault(form, row) for row, form in enumerate(forms)), np.intp, len(forms))


def _describe(source: Source, scores: Scores | None, positions: Rows, picked: _Picked) -> tuple[Selected, ...]:
    selected = []
    owners = np.argsort(picked.standing.number, kind="stable")
    bounds = np.searchsorted(picked.standing.number[owners], np.arange(len(picked.rows) + 1))
    for number, (row, signature) in enumerate(zip(picked.rows.tolist(), picked.signatures, strict=True)):
        duplicates = owners[bounds[number] : bounds[number + 1]]
        duplicates = duplicates[np.argsort(positions[duplicates])]
        similarity = picked.standing.similarity
        selected.append(
            Selected(
                text=source.texts[positions[row]],
                signature=signature,
                score=None if scores is None else float(scores[positions[row]]),
                index=int(positions[row]),
                duplicates=tuple(positions[duplicates].tolist()),
                similarities=() if similarity is None else tuple(similarity[duplicates].round(4).tolist()),
            )
        )
    return tuple(selected)


def joined(source: Source, config: SelectConfig, groups: Iterable[tuple[Any, Selection]]) -> Selection:
    """One selection from those of all groups."""
    selections = dict(groups)
    short = sum(len(selection) < config.k for selection in selections.values())
    have = "has" if short == 1 else "have"
    remark = f"{short} of {len(selections)} groups {have} fewer than {config.k} candidates that differ"
    return Selection(
        k=config.k,
        method=config.method,
        selected=tuple(candidate for selection in selections.values() for candidate in selection),
        settings=next((selection.settings for selection in selections.values()), {}),
        blank=tuple(sorted(position for selection in selections.values() for position in selection.blank)),
        remarks=(*((remark,) if short else ()), *unknown_language(source)),
    )
