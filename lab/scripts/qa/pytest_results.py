"""A plug-in of pytest with which each test's outcome is recorded as results.py does it for unittest."""

import os


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome == "failed":
        with open(os.environ["QA_RESULTS"], "a", encoding="utf-8") as results:
            results.write(f"{report.outcome} {report.nodeid}\n")
