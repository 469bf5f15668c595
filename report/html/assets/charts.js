// The charts of points, distributions and the campaign's course. Each is a function of a ranking and a width.

const mostOthers = 1500; // points of configurations that are not brought out
const mostCurves = 60; // above it their points are not joined

// thinned keeps an evenly spaced part of a list.
function thinned(list, most) {
  if (list.length <= most) return list;
  return list.filter((_, i) => Math.floor(i * most / list.length) !== Math.floor((i - 1) * most / list.length));
}

function heightOf(width) { return Math.round(Math.min(430, Math.max(270, width * 0.56))); }

// coordinate is a metric along an axis: its values, in the axis's unit, and their intervals.
function coordinate(metric) {
  const { factor } = scaleOf(metric);
  return {
    of: (p) => { const v = p.value(metric.name); return v === null ? null : v * factor; },
    interval: (p) => { const i = p.interval(metric.name); return i && i.map((v) => v * factor); },
  };
}

const levels = { of: (p) => p.level, interval: () => null };

// titleOf names a metric at the begin of a line: "Throughput", "p99 latency".
function titleOf(metric) {
  if (metric.name.startsWith("latency_p")) return `${metric.label} latency`;
  return metric.label[0].toUpperCase() + metric.label.slice(1);
}

function axisTitle(metric, isLog) { return `${titleOf(metric)} (${scaleOf(metric).unit})${isLog ? ", log scale" : ""}`; }

// limitsOf are the bounds of a metric, in its axis's unit.
function limitsOf(ranking, metric) {
  const list = [];
  for (const c of ranking.constraints.filter((c) => c.metric === metric.name)) {
    for (const side of ["min", "max"]) {
      if (c[side] > 0) list.push({ value: c[side] * scaleOf(metric).factor, label: constraintText({ metric: c.metric, [side]: c[side] }), isMax: side === "max" });
    }
  }
  return list;
}

// keptOf are the points that a chart draws of those that are not brought out: an evenly spaced part, and all of the Pareto set.
function keptOf(all, pareto) {
  return [...thinned(all.filter((p) => !pareto.has(p)), mostOthers), ...thinned(all.filter(pareto.has), mostOthers)];
}

// beside are those of a list's points that a chart may hold beside each other: what was measured on the best one's server.
function beside(ranking, list) {
  const best = ranking.best && ranking.best.point;
  return best ? list.filter((p) => areComparable(best, p)) : list;
}

// elsewhereNote says what a chart leaves out for that.
function elsewhereNote(ranking) {
  const left = points.length - beside(ranking, points).length;
  return left > 0 ? `${count(left, "point")} of the other server not drawn; the table has all.` : "";
}

// drawPoints draws all configurations' points in a frame, the best on top, and returns what there is to explain. joins says whether a line
// joins a configuration's points; front is that of the chart's own metrics, if it has one.
function drawPoints(f, ranking, x, y, { joins = true, front = noFront } = {}) {
  const here = new Set(beside(ranking, points)), isKnown = (p) => here.has(p) && x.of(p) > 0 && y.of(p) > 0;
  const place = (p) => [f.x(x.of(p)), f.y(y.of(p))];
  const withinX = (v) => Math.min(Math.max(f.x(v), f.box.left), f.box.right), withinY = (v) => Math.min(Math.max(f.y(v), f.box.top), f.box.bottom);
  const others = configs.filter((c) => c.points.some(isKnown) && lookOf(ranking, c) === "other");
  const all = others.flatMap((c) => c.points.filter(isKnown)), kept = keptOf(all, ranking.pareto);
  const marks = [];
  let hollow = false, pareto = false;
  const join = (look, list) => { if (joins) f.picture.append(curve(look, list.map(place))); };
  const draw = (look, p) => {
    const [cx, cy] = place(p), misses = violation(p, ranking.constraints) > 0, isPareto = ranking.pareto.has(p);
    hollow ||= misses;
    pareto ||= isPareto;
    f.picture.append(mark(look, cx, cy, misses), ...(isPareto ? [halo(cx, cy)] : []));
    marks.push({ x: cx, y: cy, config: p.config, lines: () => pointLines(p, ranking, front) });
  };
  if (others.length <= mostCurves) for (const c of others) join("other", c.points.filter(isKnown));
  for (const p of kept) draw("other", p);
  for (const s of [...ranking.shown].reverse()) {
    const look = lookOf(ranking, s.config), known = s.config.points.filter(isKnown);
    join(look, known);
    for (const p of known) {
      const alongX = x.interval(p), alongY = y.interval(p), [cx, cy] = place(p);
      f.picture.append(...whiskers(look, cx, cy, alongX && alongX.map(withinX), alongY && alongY.map(withinY)));
      draw(look, p);
    }
  }
  const best = ranking.best && ranking.best.point;
  if (best && isKnown(best)) f.picture.append(ring(lookOf(ranking, best.config), ...place(best)));
  marks.sort((a, b) => a.x - b.x || b.y - a.y);
  pointing(f.picture, marks);
  return { others: others.length, hidden: all.length - kept.length, hollow, pareto, front };
}

function hiddenNote(hidden) { return hidden > 0 ? `${count(hidden, "point")} of other configurations not drawn, evenly thinned out; the table has all.` : ""; }

function notes(ranking, hidden) { return [elsewhereNote(ranking), hiddenNote(hidden)].filter(Boolean).join(" "); }

// stairs is the line of a front: between two of its points the worse one is the best there is.
function stairs(places) {
  return places.flatMap(([x, y], i) => (i > 0 ? [[places[i - 1][0], y], [x, y]] : [[x, y]]));
}

// throughputAgainst draws the throughput against a metric of which less is better, with the front of the two.
function throughputAgainst(metric, name, joins) {
  return (ranking, width) => {
    const x = coordinate(metric), y = coordinate(throughputMetric), height = heightOf(width);
    const known = beside(ranking, points).filter((p) => x.of(p) > 0 && y.of(p) > 0);
    if (known.length === 0) return null;
    const vertical = limitsOf(ranking, metric), horizontal = limitsOf(ranking, throughputMetric);
    const f = frame(width, height, logAxis(axisTitle(metric, true), [...known.map(x.of), ...near(vertical, known.map(x.of))]),
      linearAxis(axisTitle(throughputMetric), [...known.map(y.of), ...near(horizontal, known.map(y.of))]));
    for (const l of vertical) verticalLimit(f, l.value, l.label, l.isMax);
    for (const l of horizontal) horizontalLimit(f, l.value, l.label);
    const front = frontOf(ranking, throughputMetric, metric);
    f.picture.append(svg("path", { class: "front", d: pathOf(stairs(front.points.map((p) => [f.x(x.of(p)), f.y(y.of(p))]))) }));
    const drawn = drawPoints(f, ranking, x, y, { joins, front });
    return {
      picture: f.picture, title: `Throughput against ${name}`, note: notes(ranking, drawn.hidden),
      subtitle: "Each mark is a configuration under one load. Up and to the left is better.", legend: curveLegend(ranking, drawn),
    };
  };
}

// againstLoad draws a metric against the load.
function againstLoad(metric, isLog) {
  return (ranking, width) => {
    const y = coordinate(metric), height = heightOf(width);
    const known = beside(ranking, points).filter((p) => y.of(p) > 0);
    if (known.length === 0) return null;
    const horizontal = limitsOf(ranking, metric), values = [...known.map(y.of), ...near(horizontal, known.map(y.of))];
    const yAxis = isLog ? logAxis(axisTitle(metric, true), values) : linearAxis(axisTitle(metric), values);
    const f = frame(width, height, logAxis(`${loadTitle}, log scale`, known.map((p) => p.level), doublingTicks), yAxis);
    for (const l of horizontal) horizontalLimit(f, l.value, l.label);
    const drawn = drawPoints(f, ranking, levels, y);
    return { picture: f.picture, title: `${titleOf(metric)} against load`, note: notes(ranking, drawn.hidden), legend: curveLegend(ranking, drawn) };
  };
}

// ninesAxis stretches the tail of a distribution: 90 %, 99 % and 99.9 % are equally far apart.
function ninesAxis(title, most) {
  const nines = (v) => -Math.log10(1 - v);
  const ticks = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999].filter((v) => v <= most).map((v) => ({ value: v, label: `${short(100 * v)} %` }));
  return { title, ticks, at: (v) => nines(v) / (nines(most) * 1.06) };
}

function distribution(ranking, width) {
  if (raw.latencies.length === 0) return null;
  const all = raw.latencies.flatMap((l) => l.quantiles);
  const limits = raw.metrics.filter((m) => m.name.startsWith("latency_")).flatMap((m) => limitsOf(ranking, m)).filter((l) => l.isMax);
  const measured = all.map(([, s]) => s * 1e3);
  const xAxis = logAxis("Latency (ms), log scale", [...measured, ...near(limits, measured)]);
  const f = frame(width, heightOf(width), xAxis, ninesAxis("Share of requests, tail stretched", extremes(all.map(([q]) => q))[1]));
  for (const l of limits) verticalLimit(f, l.value, l.label, true);
  const marks = [], named = [0.5, 0.9, 0.99, 0.999, 0.9999];
  for (const l of [...raw.latencies].reverse()) {
    const config = configs[l.configuration], look = lookOf(ranking, config);
    const places = l.quantiles.map(([q, s]) => [f.x(s * 1e3), f.y(q)]);
    f.picture.append(curve(look, places));
    l.quantiles.forEach(([q, s], i) => {
      const [x, y] = places[i];
      if (named.includes(q)) f.picture.append(mark(look, x, y));
      marks.push({ x, y, config, lines: () => [nameOf(config), `at ${loadText(raw.loads[l.load])}`, `${short(100 * q)} % of ${count(l.requests, "request")} within ${formatSeconds(s)}`] });
    });
  }
  marks.sort((a, b) => a.x - b.x);
  pointing(f.picture, marks);
  return {
    picture: f.picture, title: "Latency distribution",
    subtitle: "The finalists and the default, each at its best load within the report’s own limits. Marks at 50, 90, 99, 99.9 %.",
    legend: raw.latencies.map((l) => [keyOf(lookOf(ranking, configs[l.configuration])), `${nameOf(configs[l.configuration])}, ${loadText(raw.loads[l.load])}`]),
  };
}

// trials are those of the campaign, in their order, with what was measured; null of one that failed.
const trials = raw.trials.map(([elapsed, configuration, load, phase, failed]) => {
  const config = configs[configuration], point = config.points.find((p) => p.loadIndex === load), name = raw.phases[phase];
  return { elapsed, config, load: raw.loads[load], phase: name, sample: failed || !point ? null : name === "final" ? point : point.searched, refused: Boolean(point && point.refused) };
});

// objectiveCoordinate is the objective along an axis: its metric, or of several the gain over the default.
function objectiveCoordinate(ranking) {
  if (raw.objective.length === 1) {
    const metric = metricOf(raw.objective[0].metric);
    return { ...coordinate(metric), title: axisTitle(metric), higherBetter: metric.higher_better };
  }
  const from = (ranking.standard && ranking.standard.point ? ranking.standard.point : points[0]).score.value;
  return { of: (sample) => Math.exp((sample.score.value - from) / weights), title: "Objective (× default)", higherBetter: true };
}

// bestSoFar is the line of the best that the campaign knew within the limits, on the search's server.
function bestSoFar(measured, y, constraints) {
  const steps = [];
  let best = null;
  for (const t of measured) {
    const v = y.of(t.sample), keeps = !t.refused && violation(t.sample, constraints) === 0;
    if (!keeps || t.phase === "curve" || (raw.two_servers && t.phase === "final") || !(v > 0) || (best !== null && (y.higherBetter ? v <= best : v >= best))) continue;
    if (best !== null) steps.push([t.elapsed, best]);
    best = v;
    steps.push([t.elapsed, best]);
  }
  if (best !== null) steps.push([measured.at(-1).elapsed, best]);
  return steps;
}

const phaseLooks = { default: "default", search: "other", final: "final", curve: "curve" };

function progress(ranking, width) {
  const y = trials.length && points.length ? objectiveCoordinate(ranking) : null;
  const measured = trials.filter((t) => t.sample && y && y.of(t.sample) > 0), failed = trials.filter((t) => !t.sample);
  if (measured.length === 0) return null;
  const end = trials.at(-1).elapsed, isLong = end > 300, time = isLong ? 60 : 1;
  const f = frame(width, heightOf(width), linearAxis(`Campaign time (${isLong ? "min" : "s"})`, [end / time]), linearAxis(y.title, measured.map((t) => y.of(t.sample))));
  const line = bestSoFar(measured, y, ranking.constraints).map(([t, v]) => [f.x(t / time), f.y(v)]);
  if (line.length) f.picture.append(svg("path", { class: "sofar", d: pathOf(line) }));
  const marks = [], kept = thinned(measured, 2 * mostOthers);
  const add = (x, v, t, text) => marks.push({ x, y: v, config: t.config, lines: () => [nameOf(t.config), `at ${loadText(t.load)}`, `${t.phase}, after ${t.elapsed.toFixed(1)} s: ${text}`] });
  for (const t of kept) {
    const x = f.x(t.elapsed / time), v = f.y(y.of(t.sample)), misses = t.refused || violation(t.sample, ranking.constraints) > 0;
    f.picture.append(mark(phaseLooks[t.phase] || "other", x, v, misses));
    add(x, v, t, misses ? "misses a limit" : `${short(Number(y.of(t.sample).toPrecision(4)))} (${y.title})`);
  }
  for (const t of failed) {
    const x = f.x(t.elapsed / time), v = f.box.bottom - 6;
    f.picture.append(svg("path", { class: "mark failed", d: `M${x - 4} ${v - 4}l8 8m0 -8l-8 8` }));
    add(x, v, t, "failed");
  }
  marks.sort((a, b) => a.x - b.x);
  pointing(f.picture, marks);
  return { picture: f.picture, title: "Search progress", subtitle: "Each mark is a trial; the line is the best within the limits so far.", legend: progressLegend(failed.length), note: kept.length < measured.length ? `${count(measured.length - kept.length, "trial")} not drawn, evenly thinned out.` : "" };
}

function progressLegend(failed) {
  const present = new Set(trials.map((t) => t.phase));
  const names = { default: "the default, measured first", search: "search", final: "confirmation on fresh launches", curve: "further loads for the curves" };
  const entries = Object.keys(names).filter((p) => present.has(p)).map((p) => [keyOf(phaseLooks[p]).at(-1), names[p]]);
  entries.push([svg("path", { class: "sofar", d: "M1 11H12V4H29" }), "best so far"]);
  if (failed > 0) entries.push([svg("path", { class: "failed", d: "M11 3l8 8m0 -8l-8 8" }), "failed"]);
  return entries;
}
