// Which configuration is the best. Within the report's own limits that is what the report says. Within limits that the reader tries
// out, the configurations are ranked again from the same measurements, by the same rules (docs/formats/results.md) but for one: what
// the search's own model of the server believes is left out.

const weights = raw.objective.reduce((sum, t) => sum + t.weight, 0);
const tieMargin = Math.log(1.01);

// violation is the summed relative amount by which a point misses limits; 0 for one that keeps all.
function violation(point, constraints) {
  let sum = point.refused ? 1 : 0;
  for (const c of constraints) {
    const v = point.value(c.metric);
    if (v === null) sum += 1;
    else if (c.max !== undefined && v > c.max) sum += v / c.max - 1;
    else if (c.min !== undefined && v < c.min) sum += 1 - v / c.min;
  }
  return sum;
}

// missesText says by how much a point misses limits.
function missesText(point, constraints) {
  const parts = [];
  for (const c of constraints) {
    const metric = metricOf(c.metric), v = point.value(c.metric);
    if (v === null) parts.push(`${metric.label} is unknown`);
    else if (c.max !== undefined && v > c.max) parts.push(`${metric.label} is ${format(metric, v)}, ${(100 * (v / c.max - 1)).toFixed(0)} % above ${limitText(metric, c.max)}`);
    else if (c.min !== undefined && v < c.min) parts.push(`${metric.label} is ${format(metric, v)}, ${(100 * (1 - v / c.min)).toFixed(0)} % below ${limitText(metric, c.min)}`);
  }
  if (point.refused) parts.push("more than 1 % of the requests failed");
  return parts.join("; ");
}

// bestPoint is the point that a configuration is ranked by. A confirmed one goes before the others unless one of them is better beyond
// both intervals; not so for the default.
function bestPoint(config, constraints) {
  let best = null;
  for (const point of config.points) {
    const missed = violation(point, constraints);
    if (!best || missed < best.missed || (missed === best.missed && point.score.value > best.point.score.value)) best = { point, missed };
  }
  for (const point of config.isDefault ? [] : config.points) {
    if (best.point.confirmed || !point.confirmed || violation(point, constraints) > 0) continue;
    if (best.point.score.lo <= point.score.hi) best = { point, missed: 0 };
  }
  return best;
}

// standing is a configuration's place among the others; rank 0 is none.
function standing(config, constraints) {
  const best = bestPoint(config, constraints);
  return { config, point: best && best.point, missed: best ? best.missed : Infinity, satisfies: Boolean(best) && best.missed === 0, rank: 0, tie: 0, gain: null };
}

function byMerit(a, b) {
  return a.missed - b.missed || (a.point && b.point ? b.point.score.value - a.point.score.value : 0) || a.config.index - b.config.index;
}

function areTied(a, b) {
  if (!a.satisfies || !b.satisfies) return false;
  const x = a.point.score, y = b.point.score;
  return Math.abs(x.value - y.value) <= tieMargin && x.lo <= y.hi && y.lo <= x.hi;
}

// byCost orders tied configurations.
function byCost(a, b) {
  const known = (s, metric) => s.point.value(metric) ?? Infinity;
  return a.config.isCurveOnly - b.config.isCurveOnly || b.point.confirmed - a.point.confirmed ||
    known(a, "memory") - known(b, "memory") || known(a, "latency_p99") - known(b, "latency_p99") || a.config.index - b.config.index;
}

// confirmedFirst lets one that was confirmed come first where another is not better beyond both intervals, and never one that was
// measured for the curves alone.
function confirmedFirst(order) {
  const isEligible = (s) => s.satisfies && !s.config.isCurveOnly;
  const confirmed = order.findIndex((s) => isEligible(s) && (s.point.confirmed || s.config.isDefault));
  const searched = order.findIndex(isEligible);
  if (searched < 0) return order;
  const isBeaten = confirmed < 0 || order[searched].point.score.lo > order[confirmed].point.score.hi;
  const [first] = order.splice(isBeaten ? searched : confirmed, 1);
  return [first, ...order];
}

function nameTies(order) {
  for (let begin = 0; begin < order.length;) {
    let end = begin + 1;
    while (end < order.length && areTied(order[begin], order[end])) end++;
    const group = order.slice(begin, end).sort((a, b) => (end - begin > 1 ? byCost(a, b) : 0));
    group.forEach((s, i) => {
      order[begin + i] = s;
      s.rank = s.point ? begin + i + 1 : 0;
      s.tie = group.length > 1 ? begin + 1 : 0;
    });
    begin = end;
  }
}

// gainOver is the factor by which the objective is better than the default's, with its interval; null unless both keep the limits.
function gainOver(s, standard) {
  if (!s.satisfies || !standard || !standard.satisfies) return null;
  if (s === standard) return [1, 1, 1];
  const x = s.point.score, y = standard.point.score;
  const difference = (x.value - y.value) / weights, half = Math.hypot(x.hi - x.value, y.hi - y.value) / weights;
  return [Math.exp(difference), Math.exp(difference - half), Math.exp(difference + half)];
}

// rankWithin ranks all configurations within limits.
function rankWithin(constraints) {
  const order = confirmedFirst(configs.map((c) => standing(c, constraints)).sort(byMerit));
  nameTies(order);
  const standard = order.find((s) => s.config.isDefault);
  for (const s of order) s.gain = gainOver(s, standard);
  return newRanking(order, constraints, false);
}

// ownRanking is the report's.
function ownRanking() {
  const order = configs.map((config) => {
    const row = config.row, point = row.best === undefined ? null : config.points[row.best];
    const missed = point ? violation(point, raw.constraints) : Infinity;
    return { config, point, missed, satisfies: missed === 0, rank: row.rank || 0, tie: row.tie || 0, gain: row.gain || null };
  });
  return newRanking(order, raw.constraints, true);
}

// newRanking is a ranking with what all parts of the page ask of it. shown are the configurations that the charts bring out: the best
// ones and the default.
function newRanking(order, constraints, isOwn) {
  const standings = new Map(order.map((s) => [s.config, s]));
  const best = order[0] && order[0].point ? order[0] : null;
  const top = order.filter((s) => s.point && !s.config.isDefault).slice(0, Math.min(raw.top || 5, 5));
  const standard = standings.get(base);
  const shown = standard && standard.point ? [...top, standard] : top;
  shown.sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const looks = new Map(top.map((s, i) => [s.config, i + 1]));
  return { order, constraints, isOwn, standings, best, standard, shown, looks };
}

// lookOf is how a configuration is drawn: "1" to "5", "default", or "other".
function lookOf(ranking, config) {
  if (config.isDefault) return "default";
  return String(ranking.looks.get(config) || "other");
}

// objectiveName is what gains are of.
const objectiveName = raw.objective.length === 1 ? metricOf(raw.objective[0].metric).label : "the objective";

// factorOf turns a gain into the ratio of the objective's own values: below 1 for a single metric of which less is better.
function factorOf(gain) {
  if (raw.objective.length !== 1 || metricOf(raw.objective[0].metric).higher_better) return gain;
  return [1 / gain[0], 1 / gain[2], 1 / gain[1]];
}
