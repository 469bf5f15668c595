// The charts of limits, points, distributions and the campaign's trials. Each is a function of a
// view and a width.

const mostOthers = 1500; // limit of drawn points of configurations that are not highlighted
const mostCurves = 60; // with more configurations, their points are not connected

// thinned returns an evenly spaced part of a list, with at most the given number of elements.
function thinned(list, most) {
  if (list.length <= most) return list;
  return list.filter((_, i) => Math.floor(i * most / list.length) !== Math.floor((i - 1) * most / list.length));
}

function heightOf(width) { return Math.round(Math.min(430, Math.max(270, width * 0.56))); }

// coordinate returns a metric's values in its axis's unit, and their intervals.
function coordinate(metric) {
  const { factor } = scaleOf(metric);
  return {
    of: (p) => { const v = p.value(metric.name); return v === null ? null : v * factor; },
    interval: (p) => { const i = p.interval(metric.name); return i && i.map((v) => v * factor); },
  };
}

const levels = { of: (p) => p.level, interval: () => null };

// titleOf names a metric at the beginning of a line: "Throughput", "p99 latency".
function titleOf(metric) {
  if (metric.name.startsWith("latency_p")) return `${metric.label} latency`;
  return metric.label[0].toUpperCase() + metric.label.slice(1);
}

function axisTitle(metric, isLog) { return `${titleOf(metric)} (${scaleOf(metric).unit})${isLog ? ", log scale" : ""}`; }

// limitsOf returns the limits of a metric, in its axis's unit.
function limitsOf(view, metric) {
  return view.limits.filter((l) => l.metric === metric.name && l.value > 0)
    .map((l) => ({ value: l.value * scaleOf(metric).factor, label: constraintText({ metric: l.metric, [l.side]: l.value }), isMax: l.side === "max" }));
}

// keptOf selects the points that a chart draws of the configurations that are not highlighted. It
// thins the Pareto set and the other points separately.
function keptOf(all, pareto) {
  return [...thinned(all.filter((p) => !pareto.has(p)), mostOthers), ...thinned(all.filter(pareto.has), mostOthers)];
}

// beside returns the points of a list that may be in one chart. These were measured on the answer's
// server.
function beside(view, list) { return view.best ? list.filter((p) => areComparable(view.best, p)) : list; }

// elsewhereNote returns a note about the points of the other server.
function elsewhereNote(view) {
  const left = points.length - beside(view, points).length;
  return left > 0 ? `${count(left, "point")} of the other server not drawn; the table has all.` : "";
}

// within returns the frame's functions from values to coordinates, limited to its box.
function within(f) {
  return {
    x: (v) => Math.min(Math.max(f.x(v), f.box.left), f.box.right),
    y: (v) => Math.min(Math.max(f.y(v), f.box.top), f.box.bottom),
  };
}

// drawPoints draws the points of all configurations in a frame, the best on top. It returns what
// the legend must explain. joins: a line connects a configuration's points. front: the front of the
// chart's own metrics, if it has one.
function drawPoints(f, view, x, y, { joins = true, front = noFront } = {}) {
  const here = new Set(beside(view, points)), isKnown = (p) => here.has(p) && x.of(p) > 0 && y.of(p) > 0;
  const place = (p) => [f.x(x.of(p)), f.y(y.of(p))], clipped = within(f);
  const others = configs.filter((c) => c.points.some(isKnown) && lookOf(view, c) === "other");
  const all = others.flatMap((c) => c.points.filter(isKnown)), kept = keptOf(all, view.pareto);
  const marks = [];
  let hollow = false, pareto = false;
  const join = (look, list) => { if (joins) f.picture.append(curve(look, list.map(place))); };
  const draw = (look, p) => {
    const [cx, cy] = place(p), isMissing = misses(view, p), isPareto = view.pareto.has(p);
    hollow ||= isMissing;
    pareto ||= isPareto;
    f.picture.append(mark(look, cx, cy, isMissing), ...(isPareto ? [halo(cx, cy)] : []));
    marks.push({ x: cx, y: cy, config: p.config, lines: () => pointLines(p, view, front) });
  };
  if (others.length <= mostCurves) for (const c of others) join("other", c.points.filter(isKnown));
  for (const p of kept) draw("other", p);
  for (const config of [...view.shown].reverse()) {
    const look = lookOf(view, config), known = config.points.filter(isKnown);
    join(look, known);
    for (const p of known) {
      const alongX = x.interval(p), alongY = y.interval(p), [cx, cy] = place(p);
      f.picture.append(...whiskers(look, cx, cy, alongX && alongX.map(clipped.x), alongY && alongY.map(clipped.y)));
      draw(look, p);
    }
  }
  for (const [p, name] of [[view.edge, "edge"], [view.best, "best"]]) {
    if (p && isKnown(p)) f.picture.append(ring(lookOf(view, p.config), ...place(p), name));
  }
  marks.sort((a, b) => a.x - b.x || b.y - a.y);
  pointing(f.picture, marks);
  return { others: others.length, hidden: all.length - kept.length, hollow, pareto, front };
}

function hiddenNote(hidden) { return hidden > 0 ? `${count(hidden, "point")} of other configurations not drawn, evenly thinned out; the table has all.` : ""; }

function notes(view, hidden) { return [elsewhereNote(view), hiddenNote(hidden)].filter(Boolean).join(" "); }

// stairs returns the line of a front. Between two of its points the line has the worse throughput
// of the two.
function stairs(places) {
  return places.flatMap(([x, y], i) => (i > 0 ? [[places[i - 1][0], y], [x, y]] : [[x, y]]));
}

// tradeoff draws the throughput against the latency, and the front of the two.
function tradeoff(view, width) {
  const x = coordinate(latencyMetric), y = coordinate(throughputMetric), height = heightOf(width);
  const known = beside(view, points).filter((p) => x.of(p) > 0 && y.of(p) > 0);
  if (known.length === 0) return null;
  const vertical = limitsOf(view, latencyMetric), horizontal = limitsOf(view, throughputMetric);
  const f = frame(width, height, logAxis(axisTitle(latencyMetric, true), [...known.map(x.of), ...near(vertical, known.map(x.of))]),
    linearAxis(axisTitle(throughputMetric), [...known.map(y.of), ...near(horizontal, known.map(y.of))]));
  for (const l of vertical) verticalLimit(f, l.value, l.label, l.isMax);
  for (const l of horizontal) horizontalLimit(f, l.value, l.label);
  const front = frontOf(view, throughputMetric, latencyMetric);
  f.picture.append(svg("path", { class: "front", d: pathOf(stairs(front.points.map((p) => [f.x(x.of(p)), f.y(y.of(p))]))) }));
  const drawn = drawPoints(f, view, x, y, { joins: false, front });
  return {
    picture: f.picture, title: "Throughput against latency", note: notes(view, drawn.hidden),
    subtitle: "Each mark is a configuration under one load. Up and to the left is better.", legend: curveLegend(view, drawn),
  };
}

// againstLoad draws a metric against the load.
function againstLoad(metric, isLog) {
  return (view, width) => {
    const y = coordinate(metric), height = heightOf(width);
    const known = beside(view, points).filter((p) => y.of(p) > 0);
    if (known.length === 0) return null;
    const horizontal = limitsOf(view, metric), values = [...known.map(y.of), ...near(horizontal, known.map(y.of))];
    const yAxis = isLog ? logAxis(axisTitle(metric, true), values) : linearAxis(axisTitle(metric), values);
    const f = frame(width, height, logAxis(`${loadTitle}, log scale`, known.map((p) => p.level), doublingTicks), yAxis);
    for (const l of horizontal) horizontalLimit(f, l.value, l.label);
    const drawn = drawPoints(f, view, levels, y);
    return { picture: f.picture, title: `${titleOf(metric)} against load`, note: notes(view, drawn.hidden), legend: curveLegend(view, drawn) };
  };
}

// nothing stands for a chart that several models do not have.
function nothing() { return null; }

const mostUsed = 200; // per cent of a limit, the top of the chart

// shares draws, for each of several models, how much of the limit on its latency it uses over the scale: in
// the answer and in the default.
function shares(view, width) {
  const limits = view.limits.filter((l) => l.side === "max" && l.metric.includes(".") && metricOf(l.metric).unit === "s");
  const shown = [...new Set([view.best && view.best.config, base].filter(Boolean))];
  const used = (p, l) => { const v = p.value(l.metric); return v === null ? null : 100 * v / l.value; };
  const drawn = limits.flatMap((l, i) => shown.map((config) => ({ l, config, look: String(i % 5 + 1), points: config.points.filter((p) => used(p, l) > 0 && used(p, l) <= mostUsed) })))
    .filter((d) => d.points.length > 0);
  if (drawn.length === 0) return null;
  const f = frame(width, heightOf(width), logAxis(`${loadTitle}, log scale`, drawn.flatMap((d) => d.points.map((p) => p.level)), doublingTicks),
    linearAxis("Part of the limit that is used (%)", [100, ...drawn.flatMap((d) => d.points.map((p) => used(p, d.l)))]));
  horizontalLimit(f, 100, "limit");
  const marks = [];
  for (const d of drawn) {
    const places = d.points.map((p) => [f.x(p.level), f.y(used(p, d.l))]), line = curve(d.look, places);
    if (d.config.isDefault) line.setAttribute("stroke-dasharray", "6 3");
    f.picture.append(line);
    d.points.forEach((p, i) => {
      f.picture.append(mark(d.look, ...places[i], used(p, d.l) > 100));
      marks.push({ x: places[i][0], y: places[i][1], config: p.config, lines: () => [...pointLines(p, view), `${metricOf(d.l.metric).label}: ${short(Number(used(p, d.l).toPrecision(3)))} % of its limit`] });
    });
    const best = view.best && view.best.config === d.config && d.points.find((p) => p === view.best);
    if (best) f.picture.append(ring(d.look, f.x(best.level), f.y(used(best, d.l)), "best"));
  }
  marks.sort((a, b) => a.x - b.x);
  pointing(f.picture, marks);
  return {
    picture: f.picture, title: "How far the traffic can grow", subtitle: "Each curve is a model in one configuration. Below the line it keeps its limit. Dashed: the default.",
    legend: drawn.map((d) => [keyOf(d.look), `${metricOf(d.l.metric).label} in ${nameOf(d.config)}`]),
    note: drawn.some((d) => d.config.points.some((p) => used(p, d.l) > mostUsed)) ? `Points beyond ${mostUsed} % are not drawn; the table has them.` : "",
  };
}

// ninesAxis stretches the tail of a distribution: 90 %, 99 % and 99.9 % have equal distances.
function ninesAxis(title, most) {
  const nines = (v) => -Math.log10(1 - v);
  const ticks = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999].filter((v) => v <= most).map((v) => ({ value: v, label: `${short(100 * v)} %` }));
  return { title, ticks, at: (v) => nines(v) / (nines(most) * 1.06) };
}

function distribution(view, width) {
  if (raw.latencies.length === 0) return null;
  const all = raw.latencies.flatMap((l) => l.quantiles);
  const limits = raw.metrics.filter((m) => m.name.startsWith("latency_")).flatMap((m) => limitsOf(view, m)).filter((l) => l.isMax);
  const measured = all.map(([, s]) => s * 1e3);
  const xAxis = logAxis("Latency (ms), log scale", [...measured, ...near(limits, measured)]);
  const f = frame(width, heightOf(width), xAxis, ninesAxis("Share of requests, tail stretched", extremes(all.map(([q]) => q))[1]));
  for (const l of limits) verticalLimit(f, l.value, l.label, true);
  const marks = [], named = [0.5, 0.9, 0.99, 0.999, 0.9999];
  for (const l of [...raw.latencies].reverse()) {
    const config = configs[l.configuration], look = lookOf(view, config);
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
    legend: raw.latencies.map((l) => [keyOf(lookOf(view, configs[l.configuration])), `${nameOf(configs[l.configuration])}, ${loadText(raw.loads[l.load])}`]),
  };
}

// service draws the time of a batch against its size, for the explained configurations' engine
// processes.
function service(view, width) {
  const list = raw.services.filter((s) => s.sizes.length > 1);
  if (list.length === 0) return null;
  const ms = (v) => v * 1e3, all = list.flatMap((s) => [...s.alone, ...(s.crowded || [])]).filter((v) => v !== null).map(ms);
  const f = frame(width, heightOf(width), logAxis("Batch size, log scale", list.flatMap((s) => s.sizes), doublingTicks), logAxis("One batch (ms), log scale", all));
  const marks = [], legendOf = [];
  for (const s of list) {
    const config = configs[s.configuration], look = lookOf(view, config), places = (times) => s.sizes.map((n, i) => [f.x(n), f.y(ms(times[i]))]);
    const draw = (times, isHollow, text) => {
      f.picture.append(curve(look, places(times)));
      places(times).forEach(([x, y], i) => {
        f.picture.append(mark(look, x, y, isHollow));
        marks.push({ x, y, config, lines: () => [nameOf(config), `a batch of ${s.sizes[i]} takes ${formatSeconds(times[i])}`, text] });
      });
    };
    if (s.crowded) draw(s.crowded, true, "while all instances are busy");
    draw(s.alone, false, "while the other instances are idle");
    legendOf.push([keyOf(look), nameOf(config)]);
  }
  marks.sort((a, b) => a.x - b.x);
  pointing(f.picture, marks);
  const hasCrowded = list.some((s) => s.crowded);
  return { picture: f.picture, title: "What a batch takes", subtitle: `Measured in each engine process alone.${hasCrowded ? " Hollow: while all instances are busy." : ""}`, legend: legendOf };
}

// trials has the campaign's trials in their order. Each has the objective by its own windows, and
// null if it failed.
const trials = raw.trials.map(([elapsed, configuration, load, phase, value]) => {
  const config = configs[configuration];
  return { elapsed, config, load: raw.loads[load], phase: raw.phases[phase], value, point: config.points.find((p) => p.loadIndex === load) };
});

const phaseLooks = { default: "default", search: "other", final: "final", curve: "curve" };

// answerBand draws the answer's figure and its interval across a picture of the objective.
function answerBand(f, view) {
  const role = view.roles.get("recommended") || view.roles.get("edge");
  if (!role) return false;
  const [value, lo, hi] = role.objective.map((v) => within(f).y(v * objective.factor));
  f.picture.append(svg("rect", { class: "band", x: f.box.left, y: hi, width: f.box.right - f.box.left, height: Math.max(1, Math.abs(lo - hi)) }),
    svg("line", { class: "answer", x1: f.box.left, x2: f.box.right, y1: value, y2: value }));
  return true;
}

function progress(view, width) {
  const measured = trials.filter((t) => t.value > 0), failed = trials.filter((t) => !(t.value > 0));
  if (measured.length === 0) return null;
  const end = trials.at(-1).elapsed, isLong = end > 300, time = isLong ? 60 : 1, of = (t) => t.value * objective.factor;
  const f = frame(width, heightOf(width), linearAxis(`Campaign time (${isLong ? "min" : "s"})`, [end / time]), linearAxis(objective.title, measured.map(of)));
  const hasBand = answerBand(f, view), marks = [], kept = thinned(measured, 2 * mostOthers);
  const add = (x, v, t, text) => marks.push({ x, y: v, config: t.config, lines: () => [nameOf(t.config), `at ${loadText(t.load)}`, `${t.phase}, after ${t.elapsed.toFixed(1)} s: ${text}`] });
  for (const t of kept) {
    const x = f.x(t.elapsed / time), v = f.y(of(t)), isMissing = Boolean(t.point) && misses(view, t.point);
    f.picture.append(mark(phaseLooks[t.phase] || "other", x, v, isMissing));
    add(x, v, t, `${short(Number(of(t).toPrecision(4)))} (${objective.title}) by its own windows${isMissing ? "; its configuration misses a limit there" : ""}`);
  }
  for (const t of failed) {
    const x = f.x(t.elapsed / time), v = f.box.bottom - 6;
    f.picture.append(svg("path", { class: "mark failed", d: `M${x - 4} ${v - 4}l8 8m0 -8l-8 8` }));
    add(x, v, t, "failed");
  }
  marks.sort((a, b) => a.x - b.x);
  pointing(f.picture, marks);
  return {
    picture: f.picture, title: "Every trial", subtitle: "Each mark is a trial. Its height is the value in its own windows.",
    legend: progressLegend(failed.length, hasBand), note: kept.length < measured.length ? `${count(measured.length - kept.length, "trial")} not drawn, evenly thinned out.` : "",
  };
}

function progressLegend(failed, hasBand) {
  const present = new Set(trials.map((t) => t.phase));
  const names = { default: "the default, measured first", search: "search", final: "measured again, after the search", curve: "further loads for the curves" };
  const entries = Object.keys(names).filter((p) => present.has(p)).map((p) => [keyOf(phaseLooks[p]).at(-1), names[p]]);
  if (hasBand) entries.push([[svg("rect", { class: "band", x: 1, y: 2, width: 28, height: 10 }), svg("line", { class: "answer", x1: 1, x2: 29, y1: 7, y2: 7 })], "the answer, by all trials together, and its 95 % interval"]);
  if (failed > 0) entries.push([svg("path", { class: "failed", d: "M11 3l8 8m0 -8l-8 8" }), "failed"]);
  return entries;
}

// stepsOf returns the horizontal pieces of a role's objective along the first limit: start, end,
// value, lo and hi. keeps reports whether the role counts in an answer.
function stepsOf(row, as, end, keeps) {
  const list = [];
  row.places.forEach((p, i) => {
    const answer = raw.answers[p.answer], role = rolesOf(answer).find((r) => r.as === as), next = row.places[i + 1];
    if (p.limit === null || !role || !keeps(answer, role)) return;
    const choice = raw.choices[role.choice];
    list.push({ i, from: p.limit, to: next && next.limit !== null ? next.limit : end, choice, role, objective: choice.objective });
  });
  return list;
}

// answers draws the recommendation as a function of the first limit, for the chosen second limit.
function answers(view, width) {
  if (raw.limits.length === 0 || !view.row) return null;
  const metric = limitMetrics[0], { factor } = scaleOf(metric), finite = raw.rows.flatMap((r) => r.places.map((p) => p.limit)).filter((l) => l !== null);
  const xAxis = logAxis(`Limit: ${axisTitle(metric, true)}`, finite.map((l) => l * factor)), end = (isLeast ? xAxis.min : xAxis.max) / factor;
  const isSafe = (answer, role) => {
    const c = raw.choices[role.choice], config = configs[c.configuration], choice = config ? config.points[c.point].choice : -1;
    return choice >= 0 && raw.standings[answer.standing][choice] === "2";
  };
  const best = stepsOf(view.row, "recommended", end, () => true), standard = stepsOf(view.row, "default", end, isSafe);
  if (best.length === 0) return null;
  const f = frame(width, Math.round(heightOf(width) * 0.7), xAxis, linearAxis(objective.title, [...best, ...standard].map((s) => s.objective[2] * objective.factor)));
  const x = (l) => within(f).x(l * factor), y = (v) => within(f).y(v * objective.factor);
  for (const s of best) {
    const [left, right] = [x(s.from), x(s.to)].toSorted((a, b) => a - b), [top, bottom] = [y(s.objective[2]), y(s.objective[1])];
    f.picture.append(svg("rect", { class: "band", x: left, y: top, width: right - left, height: Math.max(0, bottom - top) }));
  }
  const line = (list) => pathOf(list.flatMap((s) => [[x(s.from), y(s.objective[0])], [x(s.to), y(s.objective[0])]]));
  f.picture.append(svg("path", { class: "curve look-default", d: line(standard) }), svg("path", { class: "answer", d: line(best) }));
  const marks = best.map((s) => ({
    x: x(s.from), y: y(s.objective[0]), open: () => moveTo(s.i),
    lines: () => [`${constraintText({ metric: metric.name, [raw.limits[0].side]: s.from })}: ${s.choice.setup}`, `at ${s.choice.load}`, ...s.choice.figures.map((parts) => parts.join(" ")), ...(s.role.gain ? [`gain ${s.role.gain}`] : []), `limits kept: ${s.role.holds}`],
  }));
  for (const m of marks.filter((m, i) => i === 0 || m.y !== marks[i - 1].y)) f.picture.append(svg("circle", { class: "corner", cx: m.x, cy: m.y, r: 3.5 }));
  drawHandle(f, view, best, x(view.place.limit === null ? end : view.place.limit), y);
  pointing(f.picture, marks, 24);
  f.picture.addEventListener("pointermove", (event) => { if (event.buttons === 1) moveTo(placeAt(view.row, (l) => x(l), pictureX(f.picture, event))); });
  f.picture.addEventListener("pointerdown", (event) => moveTo(placeAt(view.row, (l) => x(l), pictureX(f.picture, event))));
  const others = view.limits.filter((l) => l.metric !== metric.name).map((l) => constraintText({ metric: l.metric, [l.side]: l.value }));
  return {
    picture: f.picture, title: `${objective.name[0].toUpperCase()}${objective.name.slice(1)} by the limit on ${metric.label}`,
    subtitle: `The recommended configuration at each limit${others.length ? `, with ${others.join(", ")}` : ""}. Drag the handle, or move the sliders.`,
    legend: [[[svg("rect", { class: "band", x: 1, y: 2, width: 28, height: 10 }), svg("path", { class: "answer", d: "M1 7H29" })], "recommended, with its 95 % interval"],
      ...(standard.length ? [[curve("default", [[1, 7], [29, 7]]), "the default, at its best load"]] : [])],
  };
}

// drawHandle marks the position of the first limit, and the recommendation there.
function drawHandle(f, view, best, at, y) {
  const role = view.roles.get("recommended");
  f.picture.append(svg("line", { class: "handle", x1: at, x2: at, y1: f.box.top, y2: f.box.bottom }));
  f.picture.append(svg("circle", { class: "handle", cx: at, cy: role ? y(role.objective[0]) : f.box.bottom, r: 7 }));
}

function pictureX(picture, event) {
  const box = picture.getBoundingClientRect();
  return (event.clientX - box.left) * picture.viewBox.baseVal.width / box.width;
}

// placeAt returns the index of the place in a row that is nearest to a point of the axis.
function placeAt(row, x, at) {
  const distances = row.places.map((p) => (p.limit === null ? Infinity : Math.abs(x(p.limit) - at)));
  return distances.indexOf(Math.min(...distances));
}
