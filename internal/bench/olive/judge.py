"""Measures sessions in turn: judge.py < JOB.

JOB is JSON: rows (an .npz file), rounds, window_seconds and settings, a list of model, intra_op_threads, inter_op_threads,
parallel, graph_optimization, memory_arena, memory_pattern, entries; what is absent stays as ONNX Runtime has it. Prints
JSON: for each setting the mean seconds of a run at batch 1 in every round, and the mean cosine of its outputs with those of
the first setting, of the output where it is least.
"""

import json
import sys
import time

import numpy as np
import onnxruntime as ort

LEVELS = {
    "disable": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
COMPARED = 32  # rows whose outputs are compared
REST = 0.1  # seconds; the threads of the session before spin for some 35 ms of CPU time


def session(setting):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = setting.get("intra_op_threads", 0)
    options.inter_op_num_threads = setting.get("inter_op_threads", 0)
    if setting.get("parallel"):
        options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    if "graph_optimization" in setting:
        options.graph_optimization_level = LEVELS[setting["graph_optimization"]]
    options.enable_cpu_mem_arena = setting.get("memory_arena", True)
    options.enable_mem_pattern = setting.get("memory_pattern", True)
    for key, value in setting.get("entries", {}).items():
        options.add_session_config_entry(key, value)
    return ort.InferenceSession(setting["model"], options, providers=["CPUExecutionProvider"])


def seconds(served, row, window):
    """The mean time of a run over a window, after a fifth of it as warm-up."""
    time.sleep(REST)
    end = time.perf_counter() + window / 5
    while time.perf_counter() < end:
        served.run(None, row)
    runs, begin = 0, time.perf_counter()
    while (passed := time.perf_counter() - begin) < window:
        served.run(None, row)
        runs += 1
    return passed / runs


def cosine(want, got):
    """The mean cosine over the rows, of the output where it is least."""
    least = 1.0
    for a, b in zip(want, got):
        a, b = a.reshape(len(a), -1).astype(np.float64), b.reshape(len(b), -1).astype(np.float64)
        norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        least = min(least, float(np.mean((a * b).sum(axis=1) / np.maximum(norms, 1e-30))))
    return least


def main():
    job = json.load(sys.stdin)
    with np.load(job["rows"]) as archive:
        rows = dict(archive)
    first = {name: values[:1] for name, values in rows.items()}
    some = {name: values[:COMPARED] for name, values in rows.items()}
    sessions = [session(s) for s in job["settings"]]
    outputs = [s.run(None, some) for s in sessions]
    figures = [[] for _ in sessions]
    for turn in range(job["rounds"]):
        order = list(range(len(sessions)))
        for i in order if turn % 2 == 0 else reversed(order):
            figures[i].append(seconds(sessions[i], first, job["window_seconds"]))
    json.dump({"seconds": figures, "cosine": [cosine(outputs[0], o) for o in outputs]}, sys.stdout)


main()
