// Two charts with rows: the parts of the latency, and the effect of each knob.

const latencyParts = [
  ["queue", "queue"], ["compute_input", "compute input"], ["compute_infer", "compute infer"], ["compute_output", "compute output"], ["outside", "client, wire, front end"],
];

// partsOf splits a point's mean latency into parts. It returns null without the server's
// statistics.
function partsOf(point) {
  const known = latencyParts.slice(0, -1).map(([name]) => point.value(name)), mean = point.value("latency_avg");
  if (mean === null || known[0] === null) return null;
  const inside = known.reduce((sum, v) => sum + (v || 0), 0);
  return [...known.map((v) => v || 0), Math.max(0, mean - inside)];
}

// cut shortens a label to a width.
function cut(label, width) {
  const most = Math.max(8, Math.floor(width / 6.6));
  return label.length <= most ? label : `${label.slice(0, most - 1)}…`;
}

function breakdown(view, width) {
  const rows = view.shown.map((config) => ({ config, point: config.best, parts: partsOf(config.best) })).filter((s) => s.parts);
  if (rows.length === 0) return null;
  const sums = rows.map((s) => s.parts.reduce((sum, v) => sum + v, 0) * 1e3);
  const height = 50 * rows.length + 46, f = frame(width, height, linearAxis("Mean latency (ms)", sums), rowsAxis(8));
  const marks = [];
  rows.forEach((s, i) => {
    const top = f.box.top + 50 * i;
    f.picture.append(mark(lookOf(view, s.config), f.box.left + 6, top + 8), svg("text", { class: "row", x: f.box.left + 17, y: top + 12 }, cut(`${nameOf(s.config)}, ${loadText(s.point.load)}`, width - 60)));
    let from = 0;
    s.parts.forEach((seconds, n) => {
      const x = f.x(from * 1e3), w = f.x((from + seconds) * 1e3) - x, [name, label] = latencyParts[n];
      from += seconds;
      if (w < 0.5) return;
      f.picture.append(svg("rect", { class: `part part-${name}`, x, y: top + 19, width: w, height: 20 }));
      if (w > 58) f.picture.append(svg("text", { class: "inside", x: x + w / 2, y: top + 33, "text-anchor": "middle" }, formatSeconds(seconds)));
      const share = `${(100 * seconds * 1e3 / sums[i]).toFixed(0)} % of ${formatSeconds(sums[i] / 1e3)}`;
      marks.push({ x: x + w / 2, y: top + 29, config: s.config, lines: () => [nameOf(s.config), `${label}: ${formatSeconds(seconds)}`, share] });
    });
  });
  pointing(f.picture, marks, 80);
  return {
    picture: f.picture, title: "Where the latency goes", subtitle: "Parts of the mean latency of a request, for each configuration at its best load.",
    legend: latencyParts.filter((_, n) => rows.some((s) => s.parts[n] > 0)).map(([name, label]) => [svg("rect", { class: `part-${name}`, x: 8, y: 1, width: 14, height: 12 }), label]),
  };
}

// ownEffects returns the report's effects, which the strategy predicted or the campaign measured.
function ownEffects() {
  return raw.effects.map((k) => ({ knob: k.knob, chosen: valueText(k.knob, k.chosen), others: k.others.map((o) => ({ ...o, value: valueText(k.knob, o.value) })) }));
}

// changeAxis returns a linear axis of shares around 0.
function changeAxis(effects) {
  const all = effects.flatMap((k) => k.others.flatMap((o) => o.change || []));
  const least = Math.max(-1, Math.min(-0.05, ...all)), most = Math.min(5, Math.max(0.02, ...all)), room = (most - least) * 0.06;
  const min = least - room, max = most + room;
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2].find((s) => (max - min) / s <= 6) || 5;
  const ticks = [];
  for (let i = Math.ceil(min / step); i * step <= max; i++) ticks.push({ value: i * step, label: percent(i * step) });
  return { title: `Change in ${objective.name} against the answer`, ticks, at: (v) => (Math.min(Math.max(v, min), max) - min) / (max - min) };
}

const rowHeight = 22;
const headRoom = 7; // space above each knob

function knobs(view, width) {
  const effects = ownEffects();
  if (effects.length === 0) return null;
  const rows = effects.reduce((sum, k) => sum + 1 + k.others.length, 0);
  const f = frame(width, rows * rowHeight + headRoom * effects.length + 58, changeAxis(effects), rowsAxis(100));
  f.picture.append(svg("line", { class: "zero", x1: f.x(0), x2: f.x(0), y1: f.box.top, y2: f.box.bottom }));
  const marks = [];
  let y = f.box.top + 12;
  for (const k of effects) {
    y += headRoom;
    f.picture.append(svg("text", { class: "row knob", x: 4, y }, cut(`${k.knob}, chosen ${k.chosen}`, width - 8)));
    y += rowHeight;
    for (const o of k.others) {
      drawEffect(f, k, o, y, marks);
      y += rowHeight;
    }
  }
  pointing(f.picture, marks, 60);
  const isBelieved = effects.some((k) => k.others.some((o) => o.basis === "predicted" || o.basis === "bound"));
  return {
    picture: f.picture, title: "What each knob did", subtitle: "Each mark compares the best configuration with another value to the answer, within the report’s own limits.",
    note: isBelieved ? "Hollow: predicted, or only a bound. All other knobs and the load may differ." : "Only measured configurations count. If they are few, other knobs may cause part of the change.",
    legend: [],
  };
}

// drawEffect draws one row: a value and its change with the interval, or the reason why there is
// none.
function drawEffect(f, knob, other, y, marks) {
  const label = svg("text", { class: "tick", x: f.box.left - 8, y: y + 4, "text-anchor": "end" }, cut(other.value, f.box.left - 14));
  const aside = (x, text, anchor = "start") => svg("text", { class: "row", x, y: y + 4, "text-anchor": anchor }, text);
  f.picture.append(label);
  if (!other.change) {
    const text = other.misses ? `misses: ${other.misses}` : "no figures";
    f.picture.append(aside(f.box.left + 4, cut(text, f.box.right - f.box.left)));
    marks.push({ x: f.box.left + 8, y, lines: () => [`${knob.knob} ${other.value}`, text] });
    return;
  }
  const [x, lo, hi] = other.change.map(f.x), isSure = other.basis === "measured";
  f.picture.append(...whiskers("1", x, y, [lo, hi], null), mark("1", x, y, !isSure));
  const text = other.basis === "bound" ? `at most ${percent(other.change[2])}` : percent(other.change[0]);
  const isRight = Math.max(x, hi) + 70 > f.box.right;
  f.picture.append(isRight ? aside(Math.min(x, lo) - 9, text, "end") : aside(Math.max(x, hi) + 9, text));
  marks.push({ x, y, lines: () => [`${knob.knob} ${other.value}`, `${text} in ${objective.name} [${percent(other.change[1])}, ${percent(other.change[2])}]`, other.basis] });
}
