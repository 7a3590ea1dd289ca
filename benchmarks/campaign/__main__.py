"""All campaigns, one after another, as the rows of one table."""

import argparse
import sys
from importlib import import_module

from campaign.tally import print_all

NAMES = (
    *("damaged_files", "strangers", "two_runs", "kills", "study_kills", "disks", "failing_disks"),
    *("configurations", "crowds", "long_runs", "databases"),
)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cases", type=int, default=100, help="cases per part of each campaign")
    options.add_argument("--seconds", type=float, default=60, help="at most so long per part")
    options.add_argument("--seed", type=int, default=1)
    chosen = argparse.Namespace(**vars(options.parse_args()), only="")
    statuses = [
        print_all(import_module(f"campaign.{name}").campaign(chosen), header=name == NAMES[0]) for name in NAMES
    ]
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
