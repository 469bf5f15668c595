// The data that the page carries (docs/formats/report.md), as objects.

const dataText = document.getElementById("data").textContent;
const raw = JSON.parse(dataText);

const metrics = new Map(raw.metrics.map((m) => [m.name, m]));
raw.metrics.forEach((m, i) => { m.index = i; });
raw.metrics.filter((m) => m.interval).forEach((m, i) => { m.intervalIndex = i; });

// metricOf describes a metric, also one that no point has.
function metricOf(name) {
  return metrics.get(name) || { name, label: name.replaceAll("_", " "), unit: name.startsWith("latency") ? "s" : "", index: -1 };
}

// Sample is the figures of a configuration under a load, from one part of the campaign.
class Sample {
  constructor(values, intervals) {
    this.values = values;
    this.intervals = intervals;
  }

  // value is a metric's value, null where it is unknown.
  value(name) { return this.values[metricOf(name).index] ?? null; }

  // interval is a metric's 95 % interval, null where none is known.
  interval(name) {
    const i = metricOf(name).intervalIndex;
    if (i === undefined || this.intervals[2 * i] === null) return null;
    const [lo, hi] = this.intervals.slice(2 * i, 2 * i + 2);
    return lo < hi ? [lo, hi] : null;
  }

  // score is the objective on log scale, higher is better, with its interval (analyze's scoreOf); −∞ where a metric is missing.
  get score() {
    this.cachedScore ??= this.newScore();
    return this.cachedScore;
  }

  newScore() {
    let value = 0, half = 0;
    for (const { metric, weight } of raw.objective) {
      const v = this.value(metric), interval = this.interval(metric);
      if (!(v > 0)) return noScore;
      value += weight * Math.log(v) * (metricOf(metric).higher_better ? 1 : -1);
      if (interval) half += weight * (interval[1] - interval[0]) / 2 / v;
    }
    return scoreWithin(value, half);
  }
}

const noScore = { value: -Infinity, lo: -Infinity, hi: -Infinity };

function scoreWithin(value, half) { return { value, lo: value - half, hi: value + half }; }

// Point is one configuration under one load.
class Point extends Sample {
  constructor(config, row) {
    super(row[2], row[3]);
    this.config = config;
    this.loadIndex = row[0];
    this.confirmed = (row[1] & 1) !== 0;
    this.refused = (row[1] & 2) !== 0;
    [this.windows, this.launches, this.requests, this.errors, this.meanBatch, this.excess = 0, ...this.trialScores] = row[4];
    this.flags = (row[5] || []).map((i) => raw.flags[i]);
    this.searched = row[6] ? new Sample(...row[6]) : this;
  }

  get load() { return raw.loads[this.loadIndex]; }
  get level() { return this.load.concurrency || this.load.request_rate; }
}

// Config is one configuration.
class Config {
  constructor(row, index) {
    this.row = row;
    this.index = index;
    this.name = row.name;
    this.title = row.title;
    this.isDefault = Boolean(row.default);
    this.isCurveOnly = Boolean(row.curve_only);
    this.hasFailedFinals = Boolean(row.failed_finals);
    this.threads = row.threads;
    this.differences = row.differences;
    this.points = (row.points || []).map((p) => new Point(this, p));
    this.failures = (row.failures || []).map(([load, reason]) => ({ load: raw.loads[load], reason: raw.reasons[reason] }));
  }

  // short is the name without what all names begin with.
  get short() {
    if (this.isDefault) return "default";
    return this.name.startsWith(`${raw.model}_`) ? this.name.slice(raw.model.length + 1) : this.name;
  }

  // setting is the value of a knob by its number, null where the configuration leaves it alone.
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
const loadTitle = isRate ? "Request rate (requests/s)" : "Concurrency (requests in flight)";

// The metrics of charts and Pareto sets.
const throughputMetric = metricOf("throughput"), latencyMetric = metricOf(raw.latency), memoryMetric = metricOf("memory");
