// Pareto sets: the points within the limits than which no other one is at least as good in every metric and better in one. Within the
// report's own limits they are the report's; within others they are found anew by the rule of package analyze (pareto.go).

// newFront is a Pareto set: its metrics, its points, the best by the first metric first, and whether a point is in it.
function newFront(names, list) {
  const members = new Set(list);
  return { metrics: names.map(metricOf), points: list, has: (p) => members.has(p) };
}

const noFront = newFront([], []);

const ownFronts = raw.pareto.map((f) => newFront(f.metrics, f.points.map(([config, point]) => configs[config].points[point])));

// betterFirst orders two values of a metric, the better one first.
function betterFirst(metric, a, b) { return metric.higher_better ? b - a : a - b; }

// dominates reports whether a is at least as good as b in every metric and better in one.
function dominates(metrics, a, b) {
  let isBetter = false;
  for (let i = 0; i < metrics.length; i++) {
    const order = betterFirst(metrics[i], a[i], b[i]);
    if (order > 0) return false;
    if (order < 0) isBetter = true;
  }
  return isBetter;
}

// frontAmong is the Pareto set of points in some metrics. In the order in which they are looked at, none is dominated by a later one.
function frontAmong(list, names) {
  const metrics = names.map(metricOf);
  const candidates = list.map((point) => ({ point, values: names.map((name) => point.value(name)) })).filter((c) => !c.values.includes(null));
  const byValues = (a, b) => metrics.reduce((order, m, i) => order || betterFirst(m, a.values[i], b.values[i]), 0);
  const nameOrder = (a, b) => a.name.length - b.name.length || ascending(a.name, b.name);
  candidates.sort((a, b) => byValues(a, b) || nameOrder(a.point.config, b.point.config) || a.point.level - b.point.level);
  const front = [];
  for (const c of candidates) if (!front.some((f) => dominates(metrics, f.values, c.values))) front.push(c);
  return newFront(names, front.map((c) => c.point));
}

// frontsWithin are the Pareto sets that the page shows, within limits, of the best one's server; those without a point are left out.
function frontsWithin(constraints, best) {
  const isKeeping = (p) => isCompared(p) && areComparable(best, p) && violation(p, constraints) === 0;
  const keeping = best ? configs.filter((c) => !c.isCurveOnly).flatMap((c) => c.points.filter(isKeeping)) : [];
  const names = [["throughput", raw.latency, "memory"], ["throughput", raw.latency], ["throughput", "memory"]];
  return names.map((list) => frontAmong(keeping, list)).filter((f) => f.points.length > 0);
}

// frontOf is the front of two metrics in a ranking.
function frontOf(ranking, ...metrics) {
  return ranking.fronts.find((f) => f.metrics.length === metrics.length && f.metrics.every((m, i) => m.name === metrics[i].name)) || noFront;
}

// paretoName names the metrics of a Pareto set: "throughput, p99 and memory".
function paretoName(front) {
  const labels = front.metrics.map((m) => m.label);
  return `${labels.slice(0, -1).join(", ")} and ${labels.at(-1)}`;
}
