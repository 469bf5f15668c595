// How configurations are drawn: a colour and a shape for each that the charts bring out, so that none is told by its colour alone. They
// are those of the pictures in plots/ (internal/plotstyle).

// looks have the radius, the sides and the turn, in degrees, of a mark; no sides is a circle.
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

// outline is the path of a mark's shape.
function outline(look, x, y) {
  const { radius: r, sides, turn = 0 } = looks[look];
  if (!sides) return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
  const corners = Array.from({ length: sides }, (_, i) => {
    const angle = (turn + 360 * i / sides - 90) * Math.PI / 180;
    return `${(x + r * Math.cos(angle)).toFixed(1)} ${(y + r * Math.sin(angle)).toFixed(1)}`;
  });
  return `M${corners.join("L")}Z`;
}

// mark is the shape of a point; hollow where it misses a limit.
function mark(look, x, y, isHollow = false) {
  return svg("path", { class: `mark look-${look}${isHollow ? " hollow" : ""}`, d: outline(look, x, y) });
}

// curve joins places.
function curve(look, places) {
  return svg("path", { class: `curve look-${look}`, d: pathOf(places) });
}

function pathOf(places) { return places.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""); }

// ring marks the best.
function ring(look, x, y, radius = 10) { return svg("circle", { class: `ring look-${look}`, cx: x, cy: y, r: radius }); }

// halo marks a point of the Pareto set.
function halo(x, y, radius = 7.5) { return svg("circle", { class: "pareto", cx: x, cy: y, r: radius }); }

// whiskers are the intervals of a mark, along either axis; null where none is known.
function whiskers(look, x, y, alongX, alongY) {
  const line = (x1, x2, y1, y2) => svg("line", { class: `whisker look-${look}`, x1, x2, y1, y2 });
  const lines = [];
  if (alongX) lines.push(line(alongX[0], alongX[1], y, y));
  if (alongY) lines.push(line(x, x, alongY[0], alongY[1]));
  return lines;
}

// keyOf is what a legend shows of a look.
function keyOf(look) {
  const list = look === "other" ? [] : [curve(look, [[1, 7], [29, 7]])];
  const thumb = mark(look, 15, 7);
  thumb.classList.remove("mark"); // it stands for no figure
  return [...list, thumb];
}

// nameOf names a configuration in legends and tooltips.
function nameOf(config) { return `${config.short}: ${config.title}`; }

// curveLegend names the configurations that a chart brings out, and the marks that occur. pareto says whether points of the Pareto set do;
// front is that of the chart's own metrics, if it has one.
function curveLegend(ranking, { others, hollow, pareto, front = noFront }) {
  const entries = ranking.shown.map((s) => [keyOf(lookOf(ranking, s.config)), nameOf(s.config)]);
  if (others > 0) entries.push([keyOf("other"), count(others, "other configuration")]);
  if (ranking.best) {
    const text = ranking.best.satisfies ? "best within the limits" : "nearest to the limits";
    entries.push([ring(lookOf(ranking, ranking.best.config), 15, 7, 5.5), ranking.constraints.length ? text : "best"]);
  }
  if (pareto) entries.push([[...keyOf("other"), halo(15, 7, 6)], `Pareto set: nothing beats it in ${paretoName(ranking.pareto)} at once`]);
  if (front.points.length > 0) entries.push([svg("path", { class: "front", d: "M1 12V7H15V2H29" }), `front: nothing beats it in ${paretoName(front)}`]);
  if (hollow) {
    const thumb = mark("1", 15, 7, true);
    thumb.setAttribute("class", "hollow look-plain");
    entries.push([thumb, "misses a limit"]);
  }
  return entries;
}

// pointLines is what a tooltip says of a point in a chart with a front.
function pointLines(point, ranking, front = noFront) {
  const { constraints, pareto } = ranking;
  const figure = (metric) => {
    const v = point.value(metric.name), interval = point.interval(metric.name);
    if (v === null) return [];
    return [`${metric.label} ${format(metric, v)}${interval ? ` [${format(metric, interval[0])}, ${format(metric, interval[1])}]` : ""}`];
  };
  const wanted = new Set([throughputMetric, latencyMetric, ...raw.objective.map((t) => metricOf(t.metric)), ...constraints.map((c) => metricOf(c.metric)), memoryMetric]);
  const lines = [nameOf(point.config), `at ${loadText(point.load)}${point.confirmed ? ", confirmed on fresh launches" : ""}`, ...[...wanted].flatMap(figure)];
  const misses = missesText(point, constraints);
  if (misses) lines.push(`misses: ${misses}`);
  if (pareto.has(point)) lines.push(`Pareto set of ${paretoName(pareto)}`);
  if (front.has(point)) lines.push(`front of ${paretoName(front)}`);
  return lines;
}

const drawers = []; // of all charts

// onWidth calls back when an element has another width: not when it is hidden, nor for its height alone.
function onWidth(element, changed) {
  let width = element.clientWidth;
  new ResizeObserver(() => {
    if (element.clientWidth === 0 || element.clientWidth === width) return;
    width = element.clientWidth;
    changed();
  }).observe(element);
}

// addChart draws a chart whenever its width or the ranking changes. draw takes the ranking and a width, and returns the picture with
// its words; null where there is nothing to draw.
function addChart(id, draw) {
  const figure = document.getElementById(id), plot = figure.querySelector(".plot");
  let width = 0, ranking = null;
  const paint = () => {
    const drawn = draw(ranking, Math.max(width, 260));
    figure.hidden = !drawn;
    if (!drawn) return;
    setAttributes(drawn.picture, { role: "application", "aria-label": `${drawn.title}. ${drawn.subtitle || ""}` });
    figure.querySelector("h3").textContent = drawn.title;
    figure.querySelector("figcaption p").textContent = drawn.subtitle || "";
    figure.querySelector(".note").textContent = drawn.note || "";
    plot.replaceChildren(drawn.picture);
    legend(figure, drawn.legend || []);
  };
  onWidth(plot, () => {
    width = plot.clientWidth;
    if (ranking) paint();
  });
  drawers.push((next) => {
    ranking = next;
    if (!figure.hidden && plot.clientWidth) width = plot.clientWidth;
    paint();
  });
}
