"""Every name that describes a system, written out from the table of docs/decoding.md."""

from itertools import product

SIGNATURES = ("beam", "mmi", "exact", "prior", "oracle")
SENTENCES = ("beam", "mmi", "rs", "mmi-rs")
BASELINES = ("s2s", "s2s-sigs", "s2s-rs", "dpc")
TWO_STAGES = [
    f"cod3s-{signature}-{sentence}{hamming}{fresh}{faithful}"
    for signature, sentence, hamming, fresh, faithful in product(
        SIGNATURES, SENTENCES, ("", "-no-hamming"), ("", "-fresh"), ("", "-faithful", "-weighed")
    )
    if not (signature == "oracle" and hamming)
]
ALL_NAMES = ["cod3s", *TWO_STAGES, *BASELINES]
