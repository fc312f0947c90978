"""Reports of figures: one line a case for the terminal, and docs/benchmarks.md."""

import datetime
import os
import platform
import statistics
import subprocess

from goals import GROUPS, LIMITS, MEANS, group_of, judge, judge_best

VERSIONS = """
import importlib.metadata, platform
found = ["Python " + platform.python_version()]
for name in ("jaxlib", "jax", "numpy", "torch", "numba"):
    try:
        found.append(name + " " + importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        pass
print(", ".join(found))
"""


PROGRAMS = {group for group in GROUPS if group.startswith("programs/")}


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


def cells(row, labels, shown=None):
    """A row of the table as text: `header` says what."""
    case, values = row["case"], row["values"]
    first, last, best = labels[0], labels[-1], row["best"]
    goal, met = judge(case, values.get(last), row["ratio"])
    best_goal, best_met = judge_best(case, row["best_ratio"])
    verdict = {True: "yes", False: "NO"}
    return [
        case,
        *(figure(case, values.get(label)) for label in shown or (first, last)),
        times(row["ratio"]),
        goal,
        verdict.get(met, "-" if goal else ""),
        "-" if best is None else f"{best} {figure(case, values[best])}",
        times(row["best_ratio"]),
        best_goal,
        verdict.get(best_met, "-" if best_goal else ""),
    ]


def times(ratio):
    """A ratio as text."""
    return "-" if ratio is None else f"{ratio:.2f}x"


def header(labels, shown=None):
    """The titles over `cells`: figures of `shown`, or of the reference and the judged peer."""
    first, last = labels[0], labels[-1]
    ratios = (f"{last} / {first}", "goal", "met", "best peer", f"{last} / best", "goal", "met")
    return ["case", *(shown or (first, last)), *ratios]


def terminal_line(columns):
    """Cells side by side."""
    case, *others = columns
    return f"{case:30}" + "".join(f"{text:>14}" for text in others)


def verdicts(rows, labels):
    """Yield the outcome of each goal: (case, "yes" or "NO" or "-")."""
    for row in rows:
        line = cells(row, labels)
        yield from ((row["case"], met) for met in (line[5], line[9]) if met)


def summary(rows, labels):
    """Return the numbers of goals that are met, missed and not measured."""
    found = [met for _, met in verdicts(rows, labels)]
    return (
        f"{found.count('yes')} of {len(found)} goals met, {found.count('NO')} missed, "
        f"{found.count('-')} not measured"
    )


def missed(rows, labels):
    """A line for each case with a goal that is missed, with the reason if it is known.

    Cases whose group has a reason are on one line.
    """
    cases = dict.fromkeys(case for case, met in verdicts(rows, labels) if met == "NO")
    groups: dict[str, list[str]] = {}
    lines = []
    for case in cases:
        group = group_of(case)
        if case not in LIMITS and group in LIMITS:
            groups.setdefault(group, []).append(f"`{case}`")
        else:
            lines.append(f"- `{case}`: {LIMITS.get(case, 'not yet known why')}")
    return lines + [f"- {', '.join(names)}: {LIMITS[group]}" for group, names in groups.items()]


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
    """Return the versions installed for the peer's interpreter."""
    found = subprocess.run([peer.python, "-c", VERSIONS], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else "not found"


def revision():
    """The commit that was measured, with a plus sign where the tree had changes."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], capture_output=True, text=True
    )
    return found.stdout.strip() if found.returncode == 0 else "unknown"


def markdown_table(rows, labels, shown=None):
    """Rows as a table."""
    titles = header(labels, shown)
    figures = ["---:"] * (len(titles) - 7)
    lines = [titles, ["---", *figures, "---:", "---", "---", "---:", "---:", "---", "---"]]
    lines += [cells(row, labels, shown) for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def mean_line(group, rows, labels):
    """Geometric means of a table's ratios with their goals, for programs; else nothing."""
    if group not in PROGRAMS:
        return ""
    goals = MEANS.get(group.removeprefix("programs/"), (None, None))
    found = []
    for key, name, goal in zip(("ratio", "best_ratio"), (labels[0], "the best"), goals):
        ratios = [row[key] for row in rows if row[key]]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            met = "" if goal is None else f" (goal {goal:g}, {'met' if mean <= goal else 'missed'})"
            found.append(f"{mean:.2f} of {name} over {len(ratios)} programs{met}")
    return f"\n\nGeometric means: {'; '.join(found)}."


def markdown(rows, peers, effort):
    """The whole page."""
    labels, cases = [peer.label for peer in peers], [row["case"] for row in rows]
    parts = [
        "# Whole programs" if set(map(group_of, cases)) <= PROGRAMS else "# Benchmarks",
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
        members = [row for row in rows if group_of(row["case"]) == group]
        if members:
            shown = labels if group in PROGRAMS else None
            text += mean_line(group, members, labels)
            page += f"\n\n## {group}\n\n{text}\n\n{markdown_table(members, labels, shown)}"
    lines = missed(rows, labels)
    if lines:
        page += "\n\n## Goals that are missed\n\n" + "\n".join(lines)
    return page + "\n"
