"""Reads the tables of an output folder with pyarrow and pandas, and compares them with result.json.

usage: tables.py OUT
"""
import json
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

out = sys.argv[1]
result = json.load(open(f"{out}/result.json"))


def both(name):
    """The rows of a table as pandas reads them from CSV and from Parquet: the same in both."""
    parquet = pq.read_table(f"{out}/results/{name}.parquet")
    allowed = {pa.string(), pa.int64(), pa.float64(), pa.bool_()}
    assert {f.type for f in parquet.schema} <= allowed, parquet.schema
    from_parquet = parquet.to_pylist()
    from_csv = pd.read_csv(f"{out}/results/{name}.csv")
    assert list(from_csv.columns) == parquet.schema.names
    assert len(from_csv) == len(from_parquet)
    for i, row in enumerate(from_parquet):
        for column, value in row.items():
            cell = from_csv[column][i]
            if value is None:
                assert pd.isna(cell), (name, i, column, cell)
            else:
                assert cell == value, (name, i, column, cell, value)
    return from_parquet


def check(row, configuration, load, sample, phase):
    """Compares a row with a sample of result.json, column by column."""
    assert row["configuration"] == configuration["name"] and row["phase"] == phase, row
    assert row["default"] == configuration["default"] and row["rank"] == configuration.get("rank")
    assert row["satisfies"] == sample["satisfies"]
    for name in ("concurrency", "request_rate", "batch_size"):
        assert row[name] == load.get(name), (name, row[name], load)
    for name in ("windows", "launches", "requests", "errors", "mean_batch"):
        assert row[name] == sample.get(name), (name, row[name])
    assert (row["flags"] or "").split("; ") == (sample.get("flags") or [""])
    setup = configuration["setup"]
    for knob, name in {"precision": "precision", "runtime": "runtime", "execution_provider": "execution_provider",
                       "instance_count": "instance_count", "max_batch_size": "max_batch_size"}.items():
        assert row["knob_" + knob] == setup.get(name), (knob, row["knob_" + knob], setup)
    metrics = [c for c in row if c + "_lo" in row]
    assert set(sample["values"]) <= set(metrics)
    for metric in metrics:
        value, ends = row[metric], (row[metric + "_lo"], row[metric + "_hi"])
        if metric not in sample["values"]:
            assert value is None and ends == (None, None), (metric, value, ends)
            continue
        e = sample["values"][metric]
        assert value == e["value"], (metric, value, e)
        assert ends == ((None, None) if e["lo"] == e["value"] == e["hi"] else (e["lo"], e["hi"])), (metric, ends, e)


points = iter(both("points"))
for c in result["configurations"]:
    for p in c["points"]:
        check(next(points), c, p["load"], p, "final" if p["confirmed"] else "search")
        if "searched" in p:
            check(next(points), c, p["load"], p["searched"], "search")
assert next(points, None) is None, "points.parquet has more rows than result.json has points"

trials = both("trials")
names = {c["name"] for c in result["configurations"]}
assert len(trials) == (0 if "recorded" in result else result["trials"]), (len(trials), result["trials"])
assert [t["trial"] for t in trials] == list(range(1, len(trials) + 1))
for t in trials:
    assert t["configuration"] in names
    assert (t["failure"] is None) == (t["throughput"] is not None), t
assert sum(t["failure"] is not None for t in trials) == len(result["failures"])
print(f"{sum(len(c['points']) for c in result['configurations'])} points, {len(trials)} trials")
