// Draws each metric over the gates of the history, from the data in the page
// (docs/reference/gate.md).

const raw = JSON.parse(document.getElementById("data").textContent);

// looks has the shape of each verdict, as in trend.png.
const looks = {
  pass: { radius: 4.6 },
  fail: { radius: 6, sides: 4, turn: 45 },
  inconclusive: { radius: 6, sides: 3 },
};

const chartHeight = 320;

// pointsOf returns the gates that have a metric. at is a gate's index among all.
function pointsOf(metric) {
  return raw.gates.flatMap((gate, at) => {
    const figure = (gate.metrics || {})[metric.name];
    return figure ? [{ ...figure, gate, at, interval: intervalOf(figure), tolerated: toleratedOf(metric, figure) }] : [];
  });
}

// intervalOf returns the candidate's 95 % interval. For a comparison it is the interval of the
// change, applied to the baseline's value. For a limit it is the candidate's own. It returns null
// if none is known.
function intervalOf(f) {
  if (f.baseline !== undefined && f.lo !== undefined && f.hi !== undefined) return [f.baseline * (1 + f.lo), f.baseline * (1 + f.hi)];
  return f.candidate_lo !== undefined && f.candidate_hi !== undefined ? [f.candidate_lo, f.candidate_hi] : null;
}

// toleratedOf returns the worst value within the margin, and null without a margin.
function toleratedOf(metric, f) {
  if (f.baseline === undefined || f.margin === undefined) return null;
  return f.baseline * (metric.higher_better ? 1 - f.margin : 1 + f.margin);
}

// isElsewhere reports whether a gate was measured on another machine than the latest one. Figures
// of different machines cannot be compared.
function isElsewhere(gate) { return gate.machine_fingerprint !== raw.gates.at(-1).machine_fingerprint; }

// gatesAxis has a place for each gate. It labels as many as fit, including the latest, with the
// revision or number, and the day.
function gatesAxis(width) {
  const n = raw.gates.length, side = Math.min(0.4, 48 / width), every = Math.ceil(n * 84 / width);
  const ticks = raw.gates.map((gate, i) => ({ value: i, label: gate.label || `gate ${gate.number}`, note: gate.time.slice(0, 10) }));
  return {
    title: "Gates, the latest on the right", ticks: ticks.filter((t) => (n - 1 - t.value) % every === 0),
    at: (i) => (n === 1 ? 0.5 : side + (1 - 2 * side) * i / (n - 1)),
  };
}

// limitsOf returns the latest limits of a metric, in its axis's unit.
function limitsOf(metric, points) {
  return ["min", "max"].flatMap((side) => {
    const last = points.findLast((p) => p[side] !== undefined);
    if (!last) return [];
    return [{ side, value: last[side] * scaleOf(metric).factor, label: `at ${side === "min" ? "least" : "most"} ${limitText(metric, last[side])}` }];
  });
}

// axisValues returns the values that the axis must show. It cuts the ends of wide intervals, so
// that they do not hide the other values.
function axisValues(metric, points) {
  const { factor } = scaleOf(metric);
  const values = points.flatMap((p) => [p.candidate, p.baseline, p.tolerated]).filter((v) => v > 0).map((v) => v * factor);
  const [least, most] = extremes(values), reach = Math.max(most - least, 0.05 * most), intervals = points.flatMap((p) => p.interval || []);
  return [...values, ...intervals.map((v) => Math.min(Math.max(v * factor, least - reach), most + reach))];
}

function trend(metric) {
  return (_, width) => {
    const points = pointsOf(metric), limits = limitsOf(metric, points);
    if (points.length === 0) return null;
    const { factor, unit } = scaleOf(metric), values = axisValues(metric, points), latest = points.at(-1);
    const f = frame(width, chartHeight, gatesAxis(width), fittedAxis(`${metric.name} (${unit})`, [...values, ...near(limits, values)]));
    const spacing = raw.gates.length > 1 ? f.x(1) - f.x(0) : 40, half = Math.min(9, spacing * 0.4);
    const y = (v) => Math.min(Math.max(f.y(v * factor), f.box.top), f.box.bottom);
    const dash = (name, p, v) => f.picture.append(svg("line", { class: name, x1: f.x(p.at) - half, x2: f.x(p.at) + half, y1: y(v), y2: y(v) }));
    for (const l of limits) horizontalLimit(f, l.value, l.label);
    f.picture.append(curve("way", points.map((p) => [f.x(p.at), y(p.candidate)])));
    for (const p of points) {
      if (p.baseline !== undefined) dash("baseline", p, p.baseline);
      if (p.tolerated !== null) dash("tolerated", p, p.tolerated);
    }
    const marks = points.map((p) => ({ x: f.x(p.at), y: y(p.candidate), gate: p.gate, lines: () => linesOf(metric, p) }));
    points.forEach((p, i) => {
      f.picture.append(...whiskers(p.verdict, marks[i].x, marks[i].y, null, p.interval && p.interval.map(y)), mark(p.verdict, marks[i].x, marks[i].y, isElsewhere(p.gate)));
    });
    pointing(f.picture, marks);
    return { picture: f.picture, title: metric.name, subtitle: `The latest: ${[latest.verdict, ...linesOf(metric, latest).slice(2)].join("; ")}.`, legend: legendOf(points), note: noteOf(limits, points) };
  };
}

// linesOf returns the lines of a tooltip about a metric in a gate.
function linesOf(metric, p) {
  const g = p.gate, day = `${g.time.slice(0, 10)} ${g.time.slice(11, 16)} UTC`;
  const verdict = p.verdict === g.verdict ? p.verdict : `${p.verdict} (the gate as a whole: ${g.verdict})`;
  const lines = [`gate ${g.number}: ${verdict}`, g.revision ? `${day}, ${g.revision}` : day, format(metric, p.candidate)];
  if (p.candidate_lo !== undefined && p.candidate_hi !== undefined) lines[2] += ` [${format(metric, p.candidate_lo)}, ${format(metric, p.candidate_hi)}]`;
  if (p.baseline !== undefined) lines.push(`baseline ${format(metric, p.baseline)}`);
  if (p.change !== undefined && p.lo !== undefined && p.hi !== undefined) lines.push(`change ${percent(p.change)} [${percent(p.lo)}, ${percent(p.hi)}]`);
  if (p.margin !== undefined) lines.push(`${short(100 * p.margin)} % ${metric.higher_better ? "lower" : "higher"} is allowed`);
  if (p.min !== undefined) lines.push(`at least ${limitText(metric, p.min)} is allowed`);
  if (p.max !== undefined) lines.push(`at most ${limitText(metric, p.max)} is allowed`);
  if (isElsewhere(g)) lines.push("on another machine than the latest");
  return lines;
}

// legendOf explains the kinds of marks and lines that occur among the points.
function legendOf(points) {
  const entries = Object.keys(looks).filter((v) => points.some((p) => p.verdict === v)).map((v) => [thumbOf(v), v]);
  const line = (name) => svg("line", { class: name, x1: 6, x2: 24, y1: 7, y2: 7 });
  if (points.some((p) => isElsewhere(p.gate))) entries.push([thumbOf("pass", true), "hollow: on another machine than the latest, whose figures do not compare"]);
  if (points.some((p) => p.interval)) entries.push([svg("line", { class: "whisker look-pass", x1: 15, x2: 15, y1: 0, y2: 14 }), "95 % interval"]);
  if (points.some((p) => p.baseline !== undefined)) entries.push([line("baseline"), "baseline"]);
  if (points.some((p) => p.tolerated !== null)) entries.push([line("tolerated"), "the worst that the margin tolerates"]);
  return entries;
}

// noteOf returns a note if earlier gates had another limit than the drawn one.
function noteOf(limits, points) {
  const hasChanged = limits.some(({ side }) => new Set(points.map((p) => p[side]).filter((v) => v !== undefined)).size > 1);
  return hasChanged ? "The line is the limit of the latest gate. Earlier gates had another limit, which their marks show." : "";
}

// openMark scrolls to a gate in the table.
function openMark(mark) {
  const row = document.getElementById(`gate-${mark.gate.number}`);
  row.scrollIntoView({ block: "center" });
  row.focus({ preventScroll: true });
}

document.documentElement.classList.add("js");
for (const metric of raw.metrics) addChart(metric.name, trend(metric));
for (const draw of drawers) draw(raw);
