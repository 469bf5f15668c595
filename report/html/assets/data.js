// The page's data (docs/reference/report.md) as objects.

const dataText = document.getElementById("data").textContent;
const raw = JSON.parse(dataText);

const metrics = new Map(raw.metrics.map((m) => [m.name, m]));
raw.metrics.forEach((m, i) => { m.index = i; });
raw.metrics.filter((m) => m.interval).forEach((m, i) => { m.intervalIndex = i; });

// metricOf describes a metric. It also accepts one that no point has.
function metricOf(name) {
  return metrics.get(name) || { name, label: name.replaceAll("_", " "), unit: name.startsWith("latency") ? "s" : "", index: -1 };
}

// Point is one configuration under one load.
class Point {
  constructor(config, n, row) {
    this.config = config;
    [this.loadIndex, this.state, this.values, this.intervals] = row;
    [this.windows, this.launches, this.requests, this.errors, this.meanBatch] = row[4];
    this.chance = raw.chances[row[5]];
    this.flags = (row[6] || []).map((i) => raw.flags[i]);
    this.choice = config.row.choices ? config.row.choices[n] : -1; // index into an answer's standings; -1 if it has none
  }

  get load() { return raw.loads[this.loadIndex]; }
  get level() { return this.load.concurrency || this.load.request_rate || this.load.scale; }
  get confirmed() { return (this.state & 1) !== 0; }
  get again() { return raw.again[this.launches - 1]; } // how it was measured again, if it is confirmed

  // value returns a metric's value, and null if it is unknown.
  value(name) { return this.values[metricOf(name).index] ?? null; }

  // interval returns a metric's 95 % interval, and null if it is unknown.
  interval(name) {
    const i = metricOf(name).intervalIndex;
    if (i === undefined || this.intervals[2 * i] === null) return null;
    const [lo, hi] = this.intervals.slice(2 * i, 2 * i + 2);
    return lo < hi ? [lo, hi] : null;
  }
}

// Config is one configuration.
class Config {
  constructor(row, index) {
    this.row = row;
    this.index = index;
    this.name = row.name;
    this.title = row.title;
    this.isDefault = Boolean(row.default);
    this.points = (row.points || []).map((p, n) => new Point(this, n, p));
    this.best = row.best === undefined ? null : this.points[row.best]; // the point by which it is ranked
    this.failures = (row.failures || []).map(([load, reason]) => ({ load: raw.loads[load], reason: raw.reasons[reason] }));
  }

  // short returns the name without the model's name at the beginning.
  get short() {
    if (this.isDefault) return "default";
    return this.name.startsWith(`${raw.model}_`) ? this.name.slice(raw.model.length + 1) : this.name;
  }

  // setting returns the value of a knob by its index, and null if the configuration does not set
  // it.
  setting(knob) {
    const i = this.row.settings[knob];
    return i < 0 ? null : raw.knobs[knob].values[i];
  }

  get lines() { return this.row.config.map((i) => raw.lines[i]); }
}

const configs = raw.configurations.map((row, i) => new Config(row, i));
const configsByName = new Map(configs.map((c) => [c.name, c]));
const base = configs.find((c) => c.isDefault);
const points = configs.flatMap((c) => c.points);
const isRate = points.some((p) => p.load.request_rate);
const isScale = points.some((p) => p.load.scale); // several models
const loadTitle = isScale ? "Scale of the traffic (×)" : isRate ? "Request rate (requests/s)" : "Concurrency (requests in flight)";

// metrics of charts and Pareto sets
const throughputMetric = metricOf("throughput"), latencyMetric = metricOf(raw.latency), memoryMetric = metricOf("memory");
