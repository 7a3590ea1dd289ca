"""Semantic metrics tell answers that differ in meaning from those that differ in wording; lexical ones cannot."""

import meaning_sets
from cod3s.encode import Encoder


def test_semantic_metrics_see_meaning_where_lexical_ones_cannot(static: Encoder, fast: Encoder) -> None:
    sets = meaning_sets.read_sets()
    assert min(sum(row.kind == kind for row in sets) for kind in ("wording", "meaning")) >= 40
    metrics = meaning_sets.metrics(sets, [fast, static])
    areas = {name: meaning_sets.separation(sets, values) for name, values in metrics.items()}
    assert max(area for name, area in areas.items() if ":" not in name) < 0.65
    assert areas["cosine distance, fast:all-MiniLM-L6-v2"] > 0.88
    assert areas["Vendi score, fast:all-MiniLM-L6-v2"] > 0.88
    assert areas["cosine distance, static:wordllama-l2-supercat-256"] > 0.83
