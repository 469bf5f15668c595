"""Prints the outcome of each check that a script of Triton's QA makes itself, one line a check.

usage: checks.py test.sh TRACE

A check is an `if` whose body sets RET=1 or would end the script. The trace (prelude.sh) has the lines
that were executed: a check whose `if` was reached and whose body was not has passed. A check in a loop
or function counts each time. What only repeats the outcome of Python's tests is left out, and so is
whether a server starts where its tests follow.
"""

import re
import sys

FAILURE = re.compile(r"^\s*(RET=1|exit 1)\b")
BRANCH = re.compile(r"^\s*(if|elif|else|for|while|until|function|do|case)\b|^\s*\w+ ?\(\)")
REPEATS = re.compile(r"check_test_results|python3? .*(TEST|_test|pytest)")
LINE = re.compile(r"^\+(\+*)test\.sh:(\d+):(\d+): (.*)")


def indent(text):
    return len(text) - len(text.lstrip())


def condition(lines, at):
    """The line of the `if` that decides whether the line at is executed, or None."""
    limit = indent(lines[at])
    for index in range(at - 1, -1, -1):
        text = lines[index]
        if text.strip() and indent(text) < limit and BRANCH.match(text):
            word = text.split()[0]
            if word in ("if", "elif"):
                return index
            if word != "else":
                return None
            limit = indent(text) + 1
    return None


def checks(lines):
    """From the line of each check to the lines that tell of its failure."""
    found = {}
    for index, text in enumerate(lines):
        if FAILURE.match(text):
            at = condition(lines, index)
            if at is not None:
                found.setdefault(at, []).append(index)
    kept = {}
    for at, failures in found.items():
        before = next((text for text in reversed(lines[:at]) if text.strip()), "")
        near = "\n".join([before] + lines[at : at + 6])
        ends = any("exit 1" in lines[index] for index in failures)
        if REPEATS.search(near) or (ends and "SERVER_PID" in lines[at]):
            continue
        kept[at + 1] = [index + 1 for index in failures]
    return kept


def main():
    with open(sys.argv[1], encoding="utf-8") as script:
        lines = script.read().split("\n")
    kept = checks(lines)
    of = {failure: at for at, failures in kept.items() for failure in failures}
    visits, last = [], None
    with open(sys.argv[2], encoding="utf-8", errors="replace") as trace:
        for text in trace:
            found = LINE.match(text)
            if not found or found.group(1):
                continue
            line, caller = int(found.group(2)), int(found.group(3))
            if line in kept and line != last:
                visits.append([line, caller, "passed"])
            if line in of:
                for visit in reversed(visits):
                    if visit[0] == of[line]:
                        visit[2] = "failed"
                        break
            last = line
    for line, caller, outcome in visits:
        place = f"test.sh:{line}" + (f" from {caller}" if caller else "")
        print(f"{outcome} {place}")


main()
