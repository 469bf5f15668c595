"""Measures what a feature costs, by alternating pairs with and without it.

usage: cost.py TUNER live MODEL       CPU time of the live view (--ui live)
       cost.py TUNER web MODEL        CPU time of the page (--ui web)
       cost.py TUNER windows MODEL    windows beside the live view, and without it (bench/watch)
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

VIEW_PAIRS, SERVER_PAIRS = 6, 8
STUDENT = {6: 2.571, 8: 2.365}  # 97.5 % quantile of Student's t, by the number of pairs
TICK = os.sysconf("SC_CLK_TCK")


def cpu(pid):
    """CPU time of a process without its children, s."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def interval(values):
    """Mean and both ends of its 95 % interval."""
    mean = statistics.fmean(values)
    half = STUDENT[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def ratio(name, with_it, without):
    """Prints the mean ratio of pairs, with its interval, from the logarithms."""
    logs = [math.log(a / b) for a, b in zip(with_it, without)]
    mean, lo, hi = (math.exp(v) for v in interval(logs))
    print(f"{name}: ratio {mean:.4f} [{lo:.4f}, {hi:.4f}] in {len(logs)} pairs", flush=True)


def terminal():
    """Opens a terminal of 80 × 24: the side of its user, and that of a program."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    return parent, child


def own_terminal():
    """Makes the terminal at stdin the process's own, as a shell does."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def campaign(tuner, model, form):
    """Runs a campaign of five windows of 2 s on a terminal.

    It returns the CPU time that tuner used until the campaign's end, s, and the wall time. The load is an open loop
    of few requests: the load generator, which is in the same process, takes little and always the same.
    """
    folder = tempfile.mkdtemp()
    with open(f"{folder}/profile.yaml", "w", encoding="utf-8") as profile:
        profile.write(
            f"model: {os.path.abspath(model)}\noutput: {folder}/out\n"
            "search: {strategy: grid, budget: {trials: 5}, window: 2s}\n"
            "space: {instance_count: [1, 2], intra_op_threads: [1], max_batch_size: [1, 2, 4, 8]}\nload: {request_rate: [20]}\n"
        )
    parent, child = terminal()
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
    shutil.rmtree(folder)
    return used, took


def has_ended(path):
    """Whether a journal has its last record."""
    try:
        with open(path, "rb") as journal:
            return b'"kind":"end"' in journal.read()
    except OSError:
        return False


def watch(url):
    """Reads the events of a page, and its report at the end, as a browser does."""
    try:
        with urllib.request.urlopen(url.replace("/?", "/events?"), timeout=120) as events:
            while events.read1(65536):
                pass
        with urllib.request.urlopen(url, timeout=10) as report:
            report.read()
    except OSError:
        pass


def view(tuner, model, form):
    used, took = {form: [], "none": []}, []
    for i in range(VIEW_PAIRS):
        for which in (form, "none") if i % 2 else ("none", form):
            seconds, wall = campaign(tuner, model, which)
            used[which].append(seconds)
            took.append(wall)
    extra = [100 * (a - b) / statistics.fmean(took) for a, b in zip(used[form], used["none"])]
    mean, lo, hi = interval(extra)
    print(
        f"--ui {form}: {statistics.fmean(used[form]):.2f} s of CPU time in campaigns of {statistics.fmean(took):.1f} s, none {statistics.fmean(used['none']):.2f} s; "
        f"the view takes {mean:.2f} % of a core [{lo:.2f}, {hi:.2f}] (pairs: {', '.join(f'{e:.2f}' for e in extra)})",
        flush=True,
    )


def windows(tuner, model):
    folder = tempfile.mkdtemp()
    subprocess.run(["go", "build", "-o", f"{folder}/watch", "./bench/watch"], check=True)
    parent, child = terminal()
    command = [f"{folder}/watch", "-tuner", tuner, "-model", model]
    run = subprocess.Popen(command, stdin=child, preexec_fn=own_terminal)
    os.close(child)
    drawn = 0
    try:
        while text := os.read(parent, 65536):
            drawn += len(text)
    except OSError:  # the program has ended
        pass
    if run.wait() != 0:
        sys.exit(1)
    print(f"{drawn / 1000:.0f} kB were drawn", flush=True)


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
    for i in range(SERVER_PAIRS):
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
