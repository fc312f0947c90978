"""Find operations that are slower than their best peer: time survey.txt and sort by ratio.

usage: survey.py [--only TEXT ...] [--part K/N] [--worse-than RATIO] [--quick] [--peers ...]
                 [--suite programs] [--cpu]
It goes case by case as run.py does, and writes no page.
"""

import argparse
import sys
import tempfile

from run import PEERS, Effort, Run
from worker import Peer, Worker


def print_table(run, worse):
    """The cases by the ratio to the best peer, the largest first; the least times, microseconds."""
    *others, own = run.labels
    rows = []
    for case, samples in run.samples.items():
        least = {label: min(found) for label, found in samples.items() if found}
        peers = [least[label] for label in others if label in least]
        if own in least and peers:
            rows.append((least[own] / min(peers), case, least))
    print(f"{'':>6} " + "".join(f"{label:>10}" for label in run.labels))
    for ratio, case, least in sorted(rows, reverse=True):
        if ratio >= worse:
            times = [f"{least[x] * 1e6:10.0f}" if x in least else " " * 10 for x in run.labels]
            print(f"{ratio:6.2f} {''.join(times)}  {case}")


def main():
    """Measure, and print the slower operations."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", nargs="*", default=[], help="cases whose name contains any")
    parser.add_argument("--part", default="1/1", help="the k-th of n parts of the table")
    parser.add_argument("--worse-than", type=float, default=0.0, help="print no ratio below this")
    parser.add_argument("--quick", action="store_true", help="a short look")
    parser.add_argument("--suite", default="survey", help="survey, or programs for programs/")
    parser.add_argument("--cpu", action="store_true", help="seconds of the processor")
    parser.add_argument("--peers", nargs="+", type=Peer.parse, default=PEERS)
    args = parser.parse_args()
    peers = [Peer.parse(peer) if isinstance(peer, str) else peer for peer in args.peers]
    part, parts = map(int, args.part.split("/"))
    options = ["--suite", args.suite, *["--cpu"] * args.cpu]
    run = Run(peers, Effort(0, 7, 0.003) if args.quick else Effort(0, 15, 0.01), None)
    with tempfile.TemporaryDirectory(prefix="weft-survey-") as cache:
        workers = [Worker(peer, cache, *options) for peer in peers]
        try:
            cases = workers[-1].ask(do="list").get("cases", [])
            found = [c for c in cases if not args.only or any(text in c for text in args.only)]
            wanted = set(found[len(found) * (part - 1) // parts : len(found) * part // parts])
            run.wanted = wanted.__contains__
            list(run.rows_of(workers))
        finally:
            for worker in workers:
                worker.stop()
    print_table(run, args.worse_than)
    failed = {k: names for k, names in run.missing().items() if "no such case" not in k[1]}
    for (label, error), names in failed.items():
        print(f"{label}: not measured: {'; '.join(names)}: {error}", file=sys.stderr)
    if any(label == run.labels[-1] for label, _ in failed):  # of peers some lack functions
        sys.exit(f"survey: all operations must run; some of {run.labels[-1]} failed, see above")


if __name__ == "__main__":
    main()
