"""Records the outcome of each unit test of Triton's QA in the file QA_RESULTS, one line a test.

As sitecustomize, Python imports this module by itself at its start. The scripts of Triton's QA start
their tests with many commands, and print only how many have failed.
"""

import os

path = os.environ.get("QA_RESULTS")


def record(outcome, test):
    name = test.id() if hasattr(test, "id") else str(test)
    with open(path, "a", encoding="utf-8") as results:
        results.write(f"{outcome} {name}\n")


def install(result):
    for method, outcome in (
        ("addSuccess", "passed"),
        ("addFailure", "failed"),
        ("addError", "failed"),
        ("addSkip", "skipped"),
        ("addExpectedFailure", "passed"),
        ("addUnexpectedSuccess", "failed"),
    ):
        original = getattr(result, method)

        def hook(self, test, *args, _original=original, _outcome=outcome, **kwargs):
            record(_outcome, test)
            return _original(self, test, *args, **kwargs)

        setattr(result, method, hook)


if path:
    import unittest.result

    install(unittest.result.TestResult)
