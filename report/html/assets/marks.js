// The looks of configurations. Each highlighted one has its own colour and shape, as in the
// pictures in plots/ (internal/plotstyle).

const looks = {
  1: { radius: 4.6 },
  2: { radius: 5.4, sides: 4 },
  3: { radius: 5.6, sides: 3 },
  4: { radius: 5.6, sides: 3, turn: 180 },
  5: { radius: 5.4, sides: 4, turn: 45 },
  default: { radius: 5.4, sides: 4, turn: 45 },
  other: { radius: 2.4 },
  final: { radius: 5.4, sides: 4 }, // of trials
  curve: { radius: 3, sides: 3 },
};

// ring marks the answer ("best") or the configuration at its edge ("edge").
function ring(look, x, y, name, radius = 10) { return svg("circle", { class: `ring ${name} look-${look}`, cx: x, cy: y, r: radius }); }

// halo marks a point of the Pareto set.
function halo(x, y, radius = 7.5) { return svg("circle", { class: "pareto", cx: x, cy: y, r: radius }); }

// keyOf returns the symbol of a look for a legend.
function keyOf(look) {
  const list = look === "other" ? [] : [curve(look, [[1, 7], [29, 7]])];
  return [...list, thumbOf(look)];
}

// nameOf names a configuration in legends and tooltips.
function nameOf(config) { return `${config.short}: ${config.title}`; }

// curveLegend explains the highlighted configurations and the marks of a chart. pareto: some points
// are in the Pareto set. front: the front of the chart's own metrics, if it has one.
function curveLegend(view, { others, hollow, pareto, front = noFront }) {
  const entries = view.shown.map((c) => [keyOf(lookOf(view, c)), nameOf(c)]);
  if (others > 0) entries.push([keyOf("other"), count(others, "other configuration")]);
  if (view.best) {
    const as = ["recommended", "edge", "nearest"].find((r) => view.roles.has(r));
    entries.push([ring(lookOf(view, view.best.config), 15, 7, "best", 5.5), { recommended: "recommended", edge: "at the edge", nearest: "nearest to the limits" }[as] || "best"]);
  }
  if (view.edge) entries.push([ring(lookOf(view, view.edge.config), 15, 7, "edge", 5.5), "at the edge"]);
  if (pareto) entries.push([[...keyOf("other"), halo(15, 7, 6)], `Pareto set: nothing beats it in ${paretoName(view.pareto)} at once`]);
  if (front.points.length > 0) entries.push([svg("path", { class: "front", d: "M1 12V7H15V2H29" }), `Pareto front: nothing beats it in ${paretoName(front)}`]);
  if (hollow) {
    const thumb = mark("1", 15, 7, true);
    thumb.setAttribute("class", "hollow look-plain");
    entries.push([thumb, "misses a limit"]);
  }
  return entries;
}

// standingText describes whether a point keeps the limits at the sliders' position.
function standingText(view, point) {
  if (view.limits.length === 0) return [];
  if (view.isOwn && point.chance) return [`limits kept: ${point.chance}`];
  return [{ 2: "keeps the limits with the required probability", 1: "is likely to keep the limits", 0: "misses a limit" }[view.standings[point.choice]] || (misses(view, point) ? "misses a limit" : "keeps the limits")];
}

// pointLines returns the lines of a point's tooltip, in a chart with a front.
function pointLines(point, view, front = noFront) {
  const figure = (metric) => {
    const v = point.value(metric.name), interval = point.interval(metric.name);
    if (v === null) return [];
    return [`${metric.label} ${format(metric, v)}${interval ? ` [${format(metric, interval[0])}, ${format(metric, interval[1])}]` : ""}`];
  };
  const wanted = new Set([...(isScale ? [] : [throughputMetric]), latencyMetric, ...raw.objective.map((t) => metricOf(t.metric)), ...view.limits.map((l) => metricOf(l.metric)), memoryMetric]);
  const lines = [nameOf(point.config), `at ${loadText(point.load)}${point.confirmed ? `, ${point.again}` : ""}`, ...[...wanted].flatMap(figure), ...standingText(view, point)];
  if (view.pareto.has(point)) lines.push(`Pareto set of ${paretoName(view.pareto)}`);
  if (front.has(point)) lines.push(`Pareto front of ${paretoName(front)}`);
  return lines;
}
