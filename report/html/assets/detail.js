// The table's details of an opened configuration: its config.pbtxt compared with the default's, its
// figures at every load, and its failures.

// difference returns the shortest edit from one list of lines to another. It is a list of pairs of a
// sign ("+", "−" or a space) and a line.
function difference(from, to) {
  const common = Array.from({ length: from.length + 1 }, () => new Array(to.length + 1).fill(0)); // longest common subsequences of the remaining lines
  for (let i = from.length - 1; i >= 0; i--) {
    for (let j = to.length - 1; j >= 0; j--) common[i][j] = from[i] === to[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  }
  const list = [];
  let i = 0, j = 0;
  while (i < from.length || j < to.length) {
    if (i < from.length && j < to.length && from[i] === to[j]) {
      list.push([" ", to[j]]);
      i++;
      j++;
    } else if (j >= to.length || (i < from.length && common[i + 1][j] >= common[i][j + 1])) list.push(["−", from[i++]]);
    else list.push(["+", to[j++]]);
  }
  return list;
}

// diffLines returns the elements for the lines of a difference.
function diffLines(lines) {
  const classes = { "+": "added", "−": "removed", " ": null };
  return lines.map(([sign, line]) => html("span", { class: classes[sign] }, `${sign} ${line}\n`));
}

// configBlock shows a config.pbtxt, and marks the lines that differ from the default's.
function configBlock(config) {
  const isAlone = config.isDefault || !base; // an import may lack the default
  const lines = isAlone ? config.lines.map((l) => [" ", l]) : difference(base.lines, config.lines);
  const pre = html("pre", { tabindex: 0 }, ...diffLines(lines));
  const copy = html("button", { type: "button", class: "copy" }, "Copy");
  copy.addEventListener("click", () => copyText(`${config.lines.join("\n")}\n`, copy, pre));
  const title = isAlone ? "config.pbtxt" : "config.pbtxt, beside the default’s";
  return html("div", { class: "config" }, html("h4", {}, title), html("div", { class: "code" }, copy, pre));
}

const loadColumns = [throughputMetric, ...["latency_avg", "latency_p50", "latency_p90", "latency_p95", "latency_p99", "memory", "cpu"].map(metricOf)]
  .concat(raw.objective.map((t) => metricOf(t.metric)), raw.constraints.map((c) => metricOf(c.metric)))
  .filter((m, i, list) => m.index >= 0 && list.indexOf(m) === i);

// valueWithInterval prints a metric of a point and, if known, its interval. The parts may be one
// below the other.
function valueWithInterval(point, metric) {
  const v = point.value(metric.name), interval = point.interval(metric.name);
  if (v === null || !interval) return [format(metric, v)];
  return [format(metric, v), html("small", {}, `[${format(metric, interval[0])}, ${format(metric, interval[1])}]`)];
}

// remarksOf returns the remarks about a point.
function remarksOf(point, view) {
  const remarks = [];
  if (point.confirmed) remarks.push(point.again);
  remarks.push(...standingText(view, point));
  if (point.errors > 0) remarks.push(count(point.errors, "failed request"));
  return [...remarks, ...point.flags.map((f) => `less certain: ${f}`)].join("; ");
}

function loadsTable(config, view) {
  const head = (label, kind) => html("th", { scope: "col", class: kind }, label);
  const heads = [head("Load", "text"), ...loadColumns.map((m) => head(m.label, "number")), head("Rests on", "text"), head("Remarks", "text")];
  const badges = (p) => [...(p === config.best ? ["best load"] : []), ...(view.pareto.has(p) ? ["Pareto set"] : [])];
  const rows = config.points.map((p) => html("tr", { class: p === config.best ? "best" : null },
    html("td", { class: "text" }, `${loadText(p.load)} `, ...badges(p).map((b) => html("span", { class: "badge" }, b))),
    ...loadColumns.map((m) => html("td", { class: "number" }, ...valueWithInterval(p, m))),
    html("td", { class: "text" }, raw.recorded ? "" : `${count(p.windows, "window")}, ${count(p.requests, "request")}${p.meanBatch > 0 ? `, mean batch ${short(Number(p.meanBatch.toPrecision(3)))}` : ""}`),
    html("td", { class: "text remarks" }, remarksOf(p, view))));
  return html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Figures by load" }, html("table", {}, html("thead", {}, html("tr", {}, ...heads)), html("tbody", {}, ...rows)));
}

// detail shows all that is known of a configuration.
function detail(config, view) {
  const parts = [html("p", { class: "title" }, `${config.name}: ${config.title}`)];
  if (config.row.tie) {
    const tied = configs.filter((o) => o.row.tie === config.row.tie && o !== config).slice(0, 10).map((o) => o.short);
    parts.push(html("p", { class: "note" }, `Tied with ${tied.join(", ")}: they differ by no more than 1 %.`));
  }
  if (config.points.length > 0) parts.push(loadsTable(config, view));
  for (const f of config.failures) parts.push(html("p", { class: "failure" }, `Failed at ${loadText(f.load)}, ${f.reason}`));
  parts.push(configBlock(config));
  return html("div", { class: "details" }, ...parts);
}
