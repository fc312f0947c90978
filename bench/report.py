"""How figures are written: one line a case for the terminal, and docs/benchmarks.md."""

import datetime
import os
import platform
import subprocess

from goals import GROUPS, is_goal, judge

VERSIONS = """
import importlib.metadata, platform
found = ["Python " + platform.python_version()]
for name in ("jaxlib", "jax", "numpy", "torch"):
    try:
        found.append(name + " " + importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        pass
print(", ".join(found))
"""


def figure(case, value):
    """A value with the unit its case has; `-` where there is none."""
    if value is None:
        return "-"
    if case.startswith(("walk/", "devices/collectives")):
        return f"{value:.0f}"
    if case.startswith("memory/"):
        return f"{value / 1e6:.0f} MB"
    if case.startswith("residual/"):
        return f"{value / 1e3:.0f} kB"
    if case == "start/import_over_engine":
        return f"{value:.2f}x"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.0f} ns"


def cells(row, labels):
    """A row of the table as text: case, each peer, ratio, goal, and whether it is met."""
    case, value = row["case"], row["values"].get(labels[-1])
    goal, met = judge(case, value, row["ratio"])
    verdict = {True: "yes", False: "NO", None: "-" if goal else ""}[met]
    ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f}x"
    figures = [figure(case, row["values"].get(label)) for label in labels]
    return [case, *figures, ratio, goal, verdict]


def header(labels):
    """The titles over `cells`."""
    return ["case", *labels, f"{labels[-1]} / {labels[0]}", "goal", "met"]


def terminal_line(columns):
    """Cells side by side."""
    case, *others = columns
    return f"{case:30}" + "".join(f"{text:>12}" for text in others)


def summary(rows, labels):
    """How many goals are met, missed and not measured."""
    verdicts = [cells(row, labels)[-1] for row in rows if is_goal(row["case"])]
    return (
        f"{verdicts.count('yes')} of {len(verdicts)} goals met, {verdicts.count('NO')} missed, "
        f"{verdicts.count('-')} not measured"
    )


def cpu():
    """Model and number of the processors, and the memory."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as lines:
            model = next(x.split(":", 1)[1].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        pass  # not Linux: the platform's word has to do
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} CPUs, {memory:.0f} GiB, {platform.system()}"


def versions(peer):
    """What the peer's interpreter has installed."""
    found = subprocess.run([peer.python, "-c", VERSIONS], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else "not found"


def revision():
    """The commit that was measured, with a plus sign where the tree had changes."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], capture_output=True, text=True
    )
    return found.stdout.strip() if found.returncode == 0 else "unknown"


def markdown_table(rows, labels):
    """Rows as a table."""
    titles = header(labels)
    lines = [titles, ["---", *["---:"] * (len(titles) - 3), "---", "---"]]
    lines += [cells(row, labels) for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def markdown(rows, peers, effort):
    """The whole page."""
    labels = [peer.label for peer in peers]
    parts = [
        "# Benchmarks",
        "Written by `make bench`; do not edit. All peers ran in one run on one machine.",
        f"- Date: {datetime.date.today().isoformat()}, commit {revision()}",
        f"- Machine: {cpu()}",
        *(f"- {peer.label}: {versions(peer)}" for peer in peers),
        f"- Method: {effort.batches} batches of about {effort.seconds:g} s a case (for starting, "
        f"{effort.processes} fresh processes), alternating between the peers; medians.",
        f"\n**{summary(rows, labels)}.** Below 1.00x is faster (or less) than {labels[0]}. A `-` "
        "is a feature that is not there, or a figure that was not taken.",
    ]
    page = "\n\n".join(parts[:2]) + "\n\n" + "\n".join(parts[2:])
    for group, text in GROUPS.items():
        members = [row for row in rows if row["case"].split("/")[0] == group]
        if members:
            page += f"\n\n## {group}\n\n{text}\n\n{markdown_table(members, labels)}"
    return page + "\n"
