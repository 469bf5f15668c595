"""Measures what a feature costs, by alternating pairs with and without it.

usage: cost.py TUNER live MODEL       CPU time of the live view (--ui live)
       cost.py TUNER web MODEL        CPU time of the page (--ui web)
       cost.py TUNER windows MODEL    windows beside the live view, and without it
       cost.py TUNER summaries MODEL  percentiles of latencies in a server's metrics

Each takes less than five minutes. Nothing else may run meanwhile. The tuner that is named runs campaigns
and servers; TUNER_ORT_LIBRARY names ONNX Runtime.
"""

import fcntl
import json
import math
import os
import pty
import re
import select
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.request

PAIRS = 8
STUDENT = 2.365  # 97.5 % quantile of Student's t with 7 degrees of freedom (8 pairs)
TICK = os.sysconf("SC_CLK_TCK")


def cpu(pid):
    """CPU time of a process without its children, s."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def interval(values):
    """Mean and both ends of its 95 % interval."""
    mean = statistics.fmean(values)
    half = STUDENT * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def ratio(name, with_it, without):
    """Prints the mean ratio of pairs, with its interval, from the logarithms."""
    logs = [math.log(a / b) for a, b in zip(with_it, without)]
    mean, lo, hi = (math.exp(v) for v in interval(logs))
    print(f"{name}: ratio {mean:.4f} [{lo:.4f}, {hi:.4f}] in {len(logs)} pairs", flush=True)


def own_terminal():
    """Makes the terminal at stdin the process's own, as a shell does."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def campaign(tuner, model, form, load, window, trials):
    """Runs a campaign on a terminal of 80 × 24.

    It returns the windows, and the CPU time that tuner used until the campaign's end, s, with the wall time.
    """
    folder = tempfile.mkdtemp()
    with open(f"{folder}/profile.yaml", "w", encoding="utf-8") as profile:
        profile.write(
            f"model: {os.path.abspath(model)}\noutput: {folder}/out\n"
            f"search: {{strategy: grid, budget: {{trials: {trials}}}, window: {window}s}}\n"
            f"space: {{instance_count: [1, 2], intra_op_threads: [1], max_batch_size: [1, 2, 4, 8]}}\nload: {load}\n"
        )
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [tuner, "profile", f"{folder}/profile.yaml", "--ui", form]
    run = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, preexec_fn=own_terminal)
    os.close(child)
    begun, used, took, text, page, path = time.monotonic(), 0.0, 0.0, b"", None, f"{folder}/out/journal.jsonl"
    while True:
        ready, _, _ = select.select([parent], [], [], 0.2)
        try:
            if ready:
                text = (text + os.read(parent, 65536))[-65536:]
        except OSError:
            break
        if not has_ended(path):  # what comes then, such as the page's report, is no part of a campaign
            used, took = cpu(run.pid), time.monotonic() - begun
        found = re.search(rb"http://127\.0\.0\.1:\d+/\?token=[A-Z2-7]+", text)
        if found and page is None:
            page = threading.Thread(target=watch, args=(found.group().decode(),), daemon=True)
            page.start()
    os.close(parent)
    if run.wait() != 0:
        sys.exit(text.decode(errors="replace"))
    windows = []
    with open(path, encoding="utf-8") as journal:
        for line in journal:
            record = json.loads(line)
            if record["kind"] == "trial":
                windows += record["data"]["measurement"].get("windows", [])
    return windows, used, took


def has_ended(path):
    """Whether a journal has its last record."""
    try:
        with open(path, "rb") as journal:
            return b'"kind":"end"' in journal.read()
    except OSError:
        return False


def watch(url):
    """Reads the events of a page, as a browser does."""
    try:
        with urllib.request.urlopen(url.replace("/?", "/events?"), timeout=120) as events:
            while events.read1(65536):
                pass
    except OSError:
        pass


def view(tuner, model, form):
    # An open loop of few requests: the load generator, which is in the same process, takes little and
    # always the same.
    used, took = {form: [], "none": []}, []
    for i in range(4):
        for which in (form, "none") if i % 2 else ("none", form):
            _, seconds, wall = campaign(tuner, model, which, "{request_rate: [20]}", 2, 5)
            used[which].append(seconds)
            took.append(wall)
    extra = [100 * (a - b) / statistics.fmean(took) for a, b in zip(used[form], used["none"])]
    print(
        f"--ui {form}: {statistics.fmean(used[form]):.2f} s of CPU time in campaigns of {statistics.fmean(took):.1f} s, none {statistics.fmean(used['none']):.2f} s; "
        f"the view takes {statistics.fmean(extra):.2f} % of a core (pairs: {', '.join(f'{e:.2f}' for e in extra)})",
        flush=True,
    )


def windows(tuner, model):
    rates = {"live": [], "none": []}
    for i in range(PAIRS):
        for which in ("live", "none") if i % 2 else ("none", "live"):
            measured, _, _ = campaign(tuner, model, which, "{concurrency: [8]}", 5, 1)
            rates[which].append(sum(w["inferences"] for w in measured) / sum(w["duration"] for w in measured))
    ratio("throughput with --ui live over none", rates["live"], rates["none"])


def serve(tuner, repository, flags):
    """Starts a server, and returns its process and its port of gRPC."""
    read, write = os.pipe()
    command = [tuner, "serve", "--model-repository", repository, "--http-port=0", "--grpc-port=0", "--metrics-port=0", f"--announce-fd={write}", *flags]
    server = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as announced:
        return server, json.loads(announced.readline())


def summaries(tuner, model):
    repository = tempfile.mkdtemp()
    os.makedirs(f"{repository}/m/1")
    shutil.copy(model, f"{repository}/m/1/model.onnx")
    results = {True: [], False: []}
    for i in range(PAIRS):
        for has in (True, False) if i % 2 else (False, True):
            server, at = serve(tuner, repository, ["--metrics-config=summary_latencies=true"] if has else [])
            address = at["grpc"]
            perf = [tuner, "perf", "-m", "m", "-i", "grpc", "-u", address, "--concurrency-range", "8", "--format", "json"]
            subprocess.run([*perf, "--request-count", "20000"], check=True, capture_output=True)  # warm
            before = cpu(server.pid)
            out = subprocess.run([*perf, "--request-count", "100000"], check=True, capture_output=True).stdout
            level = json.loads(out)["levels"][0]
            results[has].append((level["throughput"]["value"], (cpu(server.pid) - before) / level["requests"]))
            server.terminate()
            server.wait()
    ratio("throughput with summaries over without", [r[0] for r in results[True]], [r[0] for r in results[False]])
    ratio("CPU time of the server for a request, with over without", [r[1] for r in results[True]], [r[1] for r in results[False]])
    print(f"CPU time for a request: {1e6 * statistics.fmean(r[1] for r in results[False]):.1f} µs without")


if __name__ == "__main__":
    parts = {"live": lambda *of: view(*of, "live"), "web": lambda *of: view(*of, "web"), "windows": windows, "summaries": summaries}
    parts[sys.argv[2]](sys.argv[1], sys.argv[3])
