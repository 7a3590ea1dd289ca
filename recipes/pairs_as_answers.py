"""Write the pairs of a corpus as answers: each once as an effect and once as a cause.

    python recipes/pairs_as_answers.py causal-pairs.tsv.gz --corpus ecare -o answers.tsv

Reads a tab-separated file with the columns cause, effect and corpus.
"""

import argparse
import csv
import gzip
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    with gzip.open(options.pairs, "rt", encoding="utf-8") as read, options.output.open("w") as written:
        rows = csv.DictReader(read, delimiter="\t", quoting=csv.QUOTE_NONE)
        written.write("source\trelation\ttarget\n")
        for row in (row for row in rows if row["corpus"] == options.corpus):
            written.write(f"{row['cause']}\teffect\t{row['effect']}\n{row['effect']}\tcause\t{row['cause']}\n")


if __name__ == "__main__":
    main()
