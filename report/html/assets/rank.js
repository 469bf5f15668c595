// Which configuration is the best. Within the report's own limits that is what the report says. Within limits that the reader tries
// out, the configurations are ranked again from the same figures by the rules of package analyze (rank.go, servers.go, topmean.go), whose
// functions have the same names here; docs/formats/results.md says what they are. Only what a strategy believes is left out: it takes the
// strategy to say what that would be. `make conformance` compares both rankings.

const weights = raw.objective.reduce((sum, t) => sum + t.weight, 0);
const tieMargin = Math.log(1.01) * weights;
const topLoads = 3;
const isTopMean = raw.ranked_by === "top3-mean";

function ascending(a, b) { return a < b ? -1 : a > b ? 1 : 0; }

// violationOf is the relative amount by which a value misses a limit, 1 of one that is not known, 0 of one that keeps it.
function violationOf(c, v) {
  if (v === null) return 1;
  if (c.max !== undefined && v > c.max) return v / c.max - 1;
  return c.min !== undefined && v < c.min ? 1 - v / c.min : 0;
}

// unscored are the terms of the objective that leave a point without a score.
function unscored(point) { return raw.objective.filter((t) => !(point.value(t.metric) > 0)); }

// violation is the summed relative amount by which a point misses limits, and 1 for each term that leaves it without a score; 0 for one that
// keeps all.
function violation(point, constraints) {
  const sum = constraints.reduce((sum, c) => sum + violationOf(c, point.value(c.metric)), 0);
  return sum + unscored(point).length + (point.excess || 0); // what the search had measured has no excess
}

// missesText says by how much a point misses limits.
function missesText(point, constraints) {
  const parts = [];
  for (const c of constraints) {
    const metric = metricOf(c.metric), v = point.value(c.metric), share = `${(100 * violationOf(c, v)).toFixed(0)} %`;
    if (v === null) parts.push(`${metric.label} is unknown`);
    else if (c.max !== undefined && v > c.max) parts.push(`${metric.label} is ${format(metric, v)}, ${share} above ${limitText(metric, c.max)}`);
    else if (c.min !== undefined && v < c.min) parts.push(`${metric.label} is ${format(metric, v)}, ${share} below ${limitText(metric, c.min)}`);
  }
  for (const { metric } of unscored(point)) {
    const v = point.value(metric);
    parts.push(`${metricOf(metric).label} is ${v === null ? "unknown" : `${format(metricOf(metric), v)}, which has no score`}`);
  }
  if (point.refused) parts.push("more than 1 % of the requests failed");
  return parts.join("; ");
}

// isCompared reports whether a point is at the load that all are compared at, where there is one.
function isCompared(point) {
  return !raw.at || (point.load.concurrency === raw.at.concurrency && point.load.request_rate === raw.at.request_rate);
}

// confirmedPoints are the points that a configuration is ranked by: where finals ran on another server, those of its finals.
function confirmedPoints(config) {
  const isFinalist = raw.two_servers && config.points.some((p) => p.confirmed);
  return config.points.filter((p) => p.confirmed || !isFinalist);
}

// isTooHigh reports whether a load misses limits that no higher load keeps.
function isTooHigh(point, constraints) {
  const missed = constraints.filter((c) => violationOf(c, point.value(c.metric)) > 0);
  const needsMore = (c) => {
    const v = point.value(c.metric), metric = metricOf(c.metric), isAbove = c.max !== undefined && v > c.max;
    return v !== null && !metric.name.endsWith("memory") && isAbove === Boolean(metric.falls_with_load);
  };
  return violation(point, constraints) > 0 && (point.refused || unscored(point).length > 0 || !missed.every(needsMore));
}

// unrefuted leaves out the points that only the search measured at a higher load than one that is too high on fresh launches; none of the
// default's, whose best is never understated.
function unrefuted(config, points, constraints) {
  if (config.isDefault) return points;
  const tooHigh = points.filter((q) => q.confirmed && isTooHigh(q, constraints));
  return points.filter((p) => p.confirmed || !tooHigh.some((q) => q.load.batch_size === p.load.batch_size && q.level < p.level));
}

// bestPoint is the point that a configuration is ranked by. A confirmed one goes before the others unless one of them is better beyond
// both intervals; not so for the default.
function bestPoint(config, constraints) {
  let best = null;
  const list = unrefuted(config, confirmedPoints(config).filter(isCompared), constraints).map((point) => ({ point, missed: violation(point, constraints) }));
  for (const p of list) {
    if (!best || p.missed < best.missed || (p.missed === best.missed && p.point.score.value > best.point.score.value)) best = p;
  }
  for (const p of config.isDefault ? [] : list) {
    if (best.point.confirmed || !p.point.confirmed || p.missed > 0) continue;
    if (best.point.score.lo <= p.point.score.hi) best = p;
  }
  return best;
}

// standing is a configuration's place among the others; rank 0 is none.
function standing(config, constraints) {
  const best = bestPoint(config, constraints);
  return {
    config, point: best && best.point, missed: best ? best.missed : Infinity, satisfies: Boolean(best) && best.missed === 0,
    score: best ? best.point.score : noScore, rank: 0, tie: 0, gain: null,
  };
}

// highest are a configuration's points with the highest throughputs within limits, the highest first; at most three.
function highest(config, constraints) {
  const value = (p) => p.value("throughput");
  const points = unrefuted(config, confirmedPoints(config), constraints);
  return points.filter((p) => value(p) !== null && violation(p, constraints) === 0).sort((a, b) => value(b) - value(a)).slice(0, topLoads);
}

// meanScore is the logarithm of the mean of n throughputs, with the interval of independent errors.
function meanScore(list, n) {
  if (n === 0 || list.length < n) return noScore;
  let sum = 0, squares = 0;
  for (const p of list.slice(0, n)) {
    const [lo, hi] = p.interval("throughput") || [0, 0], half = (hi - lo) / 2;
    sum += p.value("throughput");
    squares += half * half;
  }
  return scoreWithin(Math.log(sum / n), Math.sqrt(squares) / sum);
}

// byServer takes those that are ranked by what the finals' server showed, which come first, apart from the others.
function byServer(standings) {
  if (!raw.two_servers) return [standings];
  const isConfirmed = (s) => Boolean(s.point) && s.point.confirmed;
  return [standings.filter(isConfirmed), standings.filter((s) => !isConfirmed(s))];
}

// scoreByTopMean gives those that keep the limits the mean of their best throughputs as their score, each server by itself.
function scoreByTopMean(standings, constraints) {
  for (const part of byServer(standings)) {
    const tops = new Map(part.map((s) => [s, highest(s.config, constraints)]));
    const most = part.reduce((n, s) => Math.max(n, tops.get(s).length), 0);
    for (const s of part) if (s.satisfies) Object.assign(s, { score: meanScore(tops.get(s), most), meanOf: most });
  }
}

// byName orders by the order of first trial.
function byName(a, b) {
  return b.isDefault - a.isDefault || a.name.length - b.name.length || ascending(a.name, b.name);
}

// byMerit orders by limits, by whether they failed on fresh launches, and by score.
function byMerit(a, b) {
  if (!a.point || !b.point) return !a.point - !b.point || byName(a.config, b.config);
  return ascending(a.missed, b.missed) || a.config.hasFailedFinals - b.config.hasFailedFinals || ascending(b.score.value, a.score.value) ||
    byName(a.config, b.config);
}

// areTied reports whether two that keep the limits cannot be told apart.
function areTied(a, b) {
  if (!a.satisfies || !b.satisfies || a.config.hasFailedFinals !== b.config.hasFailedFinals) return false;
  const x = a.score, y = b.score;
  return Math.abs(x.value - y.value) <= tieMargin && x.lo <= y.hi && y.lo <= x.hi;
}

// endOfTies is where those end that are tied with the one at begin.
function endOfTies(order, begin) {
  let end = begin + 1;
  while (end < order.length && areTied(order[begin], order[end])) end++;
  return end;
}

// byCost orders tied configurations.
function byCost(a, b) {
  const byKnown = (metric) => ascending(a.point.value(metric) ?? Infinity, b.point.value(metric) ?? Infinity);
  return a.config.isCurveOnly - b.config.isCurveOnly || b.point.confirmed - a.point.confirmed || byKnown("memory") || byKnown("latency_p99") ||
    a.config.threads - b.config.threads || a.config.differences - b.config.differences || byName(a.config, b.config);
}

// searchedFirst is confirmedFirst without what was measured for the curves alone, which takes its place behind those that are tied with
// the first.
function searchedFirst(order) {
  const searched = confirmedFirst(order.filter((s) => !s.config.isCurveOnly)), curves = order.filter((s) => s.config.isCurveOnly);
  if (searched.length === 0) return order;
  if (curves.length === 0) return searched;
  const end = endOfTies(searched, 0);
  return [...searched.slice(0, end), ...[...searched.slice(end), ...curves].sort(byMerit)];
}

// confirmedFirst puts the best confirmed one, and those tied with it, before what only the search saw and is not better beyond both
// intervals.
function confirmedFirst(order) {
  const first = order.findIndex((s) => s.satisfies && (s.point.confirmed || (s.config.isDefault && !s.config.hasFailedFinals)));
  if (first <= 0 || order[0].score.lo > order[first].score.hi) return order;
  const end = endOfTies(order, first);
  return [...order.slice(first, end), ...order.slice(0, first), ...order.slice(end)];
}

// rank puts standings into their order, and joins those that are tied in groups.
function rank(standings) {
  const order = searchedFirst([...standings].sort(byMerit)), ranked = [];
  while (ranked.length < order.length) {
    const group = order.slice(ranked.length, endOfTies(order, ranked.length)).sort(byCost);
    if (group.length > 1) for (const s of group) s.group = group;
    ranked.push(...group);
  }
  return ranked;
}

// rankByServer is rank, of the finals' server first.
function rankByServer(standings) { return byServer(standings).flatMap((part) => rank(part)); }

// areComparable reports whether two points were measured on the same server.
function areComparable(a, b) { return !raw.two_servers || a.confirmed === b.confirmed; }

// scoreDifference is by how much one's score is above another's, and half the 95 % interval of that. Where each is ranked by one point
// the launches of these count too.
function scoreDifference(a, b) {
  const isOfPoint = (s) => ["value", "lo", "hi"].every((k) => s.score[k] === s.point.score[k]);
  const half = isOfPoint(a) && isOfPoint(b) ? differenceHalf(a.point, b.point) : Math.hypot(a.score.hi - a.score.value, b.score.hi - b.score.value);
  return { value: a.score.value - b.score.value, half };
}

// differenceHalf is half the 95 % interval of the difference of two points' scores, for several launches each at least Student's.
function differenceHalf(a, b) {
  const within = Math.hypot(a.score.hi - a.score.value, b.score.hi - b.score.value), n = a.trialScores.length, m = b.trialScores.length;
  if (!a.confirmed || !b.confirmed || n < 2 || m < 2) return within;
  const pooled = (squaredDeviations(a.trialScores) + squaredDeviations(b.trialScores)) / (n + m - 2);
  return Math.max(within, raw.student[n + m - 3] * Math.sqrt(pooled * (1 / n + 1 / m)));
}

function squaredDeviations(list) {
  const mean = list.reduce((sum, v) => sum + v, 0) / list.length;
  return list.reduce((sum, v) => sum + (v - mean) * (v - mean), 0);
}

// gainOver is the factor by which the objective is better than the default's, with its interval; null unless both keep the limits and
// were measured on one server, at loads enough.
function gainOver(s, standard) {
  if (!s.satisfies || !standard || !standard.satisfies || !areComparable(s.point, standard.point)) return null;
  if (!Number.isFinite(s.score.value) || !Number.isFinite(standard.score.value)) return null;
  if (s === standard) return [1, 1, 1];
  const { value, half } = scoreDifference(s, standard);
  return [value, value - half, value + half].map((d) => Math.exp(d / weights));
}

// rankWithin ranks all configurations within limits.
function rankWithin(constraints) {
  const standings = configs.map((c) => standing(c, constraints));
  if (isTopMean) scoreByTopMean(standings, constraints);
  const order = rankByServer(standings), standard = order.find((s) => s.config.isDefault);
  order.forEach((s, i) => { s.rank = s.point ? i + 1 : 0; });
  for (const s of order) {
    s.tie = s.group ? s.group[0].rank : 0;
    s.gain = gainOver(s, standard);
  }
  return newRanking(order, constraints, frontsWithin(constraints, order[0].point), false);
}

// ownRanking is the report's.
function ownRanking() {
  const order = configs.map((config) => {
    const row = config.row, point = row.best === undefined ? null : config.points[row.best];
    const missed = point ? violation(point, raw.constraints) : Infinity;
    return { config, point, missed, satisfies: missed === 0, score: point ? point.score : noScore, rank: row.rank || 0, tie: row.tie || 0, gain: row.gain || null };
  });
  if (isTopMean) scoreByTopMean(order, raw.constraints);
  return newRanking(order, raw.constraints, ownFronts, true);
}

// newRanking is a ranking with what all parts of the page ask of it. shown are the configurations that the charts bring out: the best
// ones and the default. pareto is the first of the fronts, that of all metrics that were measured.
function newRanking(order, constraints, fronts, isOwn) {
  const standings = new Map(order.map((s) => [s.config, s]));
  const best = order[0] && order[0].point ? order[0] : null;
  const top = order.filter((s) => s.point && !s.config.isDefault).slice(0, Math.min(raw.top || 5, 5));
  const standard = standings.get(base);
  const shown = standard && standard.point ? [...top, standard] : top;
  shown.sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const looks = new Map(top.map((s, i) => [s.config, i + 1]));
  return { order, constraints, isOwn, standings, best, standard, shown, looks, fronts, pareto: fronts[0] || noFront };
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
