// The table of all configurations, with sorting, a filter and pages. The pages keep ten thousand
// configurations as fast as ten.

const pageSize = 25;
const mostKnobColumns = 8;

const table = { view: null, rows: [], page: 0, sort: null, descending: false, words: [], status: "all", opened: new Set() };

const missesOwn = (c) => (c.best.state & 2) !== 0;

// statusOf returns a short text about a configuration within the report's own limits.
function statusOf(c) {
  if (!c.best) return c.points.length > 0 ? "not compared" : "failed";
  if (missesOwn(c)) return "misses a limit";
  return c.best.confirmed ? "measured again" : "satisfies";
}

// isPareto reports whether a configuration is in the Pareto set at one of its loads.
function isPareto(c) { return c.points.some(table.view.pareto.has); }

const statusFilters = {
  all: ["All", () => true],
  satisfies: ["Within the limits", (c) => c.best && !missesOwn(c)],
  pareto: ["Pareto set only", isPareto],
  confirmed: ["Measured again", (c) => c.best && !missesOwn(c) && c.best.confirmed],
  misses: ["Misses a limit", (c) => c.best && missesOwn(c)],
  failed: ["Failed", (c) => !c.best || c.failures.length > 0],
};

// knobColumns has a column for each knob in which configurations differ.
const knobColumns = raw.knobs.map((knob, n) => ({
  title: knob.name, isText: true,
  cell: (c) => valueText(knob.name, c.setting(n)),
  key: (c) => {
    const v = c.setting(n), number = Number.parseFloat(v);
    return Number.isNaN(number) ? v : number;
  },
})).slice(0, mostKnobColumns);

// valueColumn shows a metric at a configuration's best load. For the throughput it adds half of the
// interval, as stats.Estimate.Half does: the upper end of a rate may be cut off.
function valueColumn(metric) {
  const { factor, unit } = scaleOf(metric);
  return {
    title: `${metric.label} (${unit})`, descends: unit === "infer/s",
    isMissed: (c) => (c.row.missed || []).includes(metric.index),
    key: (c) => c.best && c.best.value(metric.name),
    cell: (c) => {
      const v = c.best && c.best.value(metric.name), interval = c.best && c.best.interval(metric.name);
      if (v === null) return unknown;
      const digits = unit === "MB" ? 0 : unit === "ms" ? 2 : throughputDecimals(v, 1);
      const half = interval && metric.name === "throughput" ? ` ±${(Math.max((interval[1] - interval[0]) / 2, v - interval[0]) * factor).toFixed(digits)}` : "";
      return `${unit === "ms" || unit === "MB" || unit === "infer/s" ? (v * factor).toFixed(digits) : significant(v * factor)}${half}`;
    },
  };
}

function gainCell(c) {
  const gain = c.row.gain;
  if (!gain) return unknown;
  if (c.isDefault) return "1";
  return gain[0].toFixed(2) + (gain[1] < gain[2] ? ` ±${((gain[2] - gain[1]) / 2).toFixed(2)}` : "");
}

function chanceCell(c) { return c.best ? c.best.chance || "yes" : unknown; }

// chanceKey sorts ">99 %" first and "<1 %" last.
function chanceKey(c) {
  if (!c.best) return null;
  const shares = { ">99 %": 100, "<1 %": 0 }, text = c.best.chance;
  return shares[text] ?? (Number.parseFloat(text) || null);
}

// A column has a title, a hint if the title needs an explanation, the text of a cell, and isMissed
// for values that miss a limit. It sorts by key; null means unknown. If more is better, it descends.
const columns = [
  { title: "#", hint: "=1: cannot be told from others of the same number, and differs from them by no more than 1 %", cell: (c) => (c.row.tie ? `=${c.row.tie}` : c.row.rank ? String(c.row.rank) : unknown), key: (c) => c.row.rank || null },
  { title: "Configuration", isText: true, isName: true, cell: (c) => c.short, key: (c) => c.name },
  ...knobColumns,
  { title: isScale ? "Scale" : isRate ? "Rate" : "Load", hint: "the configuration’s best load; the figures hold at this load", cell: (c) => (c.best ? short(c.best.level) : unknown), key: (c) => c.best && c.best.level },
  ...[...(isScale ? [] : [throughputMetric, latencyMetric]), ...raw.objective.map((t) => metricOf(t.metric)), ...raw.constraints.map((c) => metricOf(c.metric)), memoryMetric]
    .filter((m, i, list) => m.index >= 0 && m.name !== "scale" && list.indexOf(m) === i).map(valueColumn),
  { title: "× default", hint: `${objective.name} as a multiple of the default’s, with half of its 95 % interval`, descends: !objective.falls, cell: gainCell, key: (c) => (c.row.gain ? c.row.gain[0] : null) },
  { title: "Limits kept", hint: "probability that the configuration keeps all limits at this load", descends: true, cell: chanceCell, key: chanceKey },
  { title: "Status", isText: true, cell: statusOf, key: statusOf },
];

// haystack returns the text that the filter searches.
function haystack(c) {
  c.haystack ??= `${c.name} ${c.title} ${raw.knobs.map((k, n) => `${k.name}=${c.setting(n) ?? "default"}`).join(" ")}`.toLowerCase();
  return c.haystack;
}

// compare orders keys. Unknown keys are last in both directions.
function compare(a, b, isDescending) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = a < b ? -1 : a > b ? 1 : 0;
  return isDescending ? -order : order;
}

function selectRows() {
  const [, keeps] = statusFilters[table.status];
  table.rows = configs.filter((c) => keeps(c) && table.words.every((w) => haystack(c).includes(w)));
  const column = columns[table.sort];
  if (!column) return;
  const keys = new Map(table.rows.map((c) => [c, column.key(c)]));
  table.rows.sort((a, b) => compare(keys.get(a), keys.get(b), table.descending));
}

// badgesOf returns the labels of a configuration, such as its role in the answer at the sliders'
// position.
function badgesOf(c) {
  const badges = [];
  for (const [as, title] of [["recommended", "recommended"], ["edge", "at the edge"], ["nearest", "nearest"]]) {
    if (table.view.roles.has(as) && configs[table.view.roles.get(as).configuration] === c) badges.push(title);
  }
  if (isPareto(c)) badges.push("Pareto set");
  if (c.failures.length > 0) badges.push("failed trials");
  return badges.map((b) => html("span", { class: `badge${b === "recommended" ? " best" : ""}` }, b));
}

// nameCell returns the name as a link that opens and closes the details.
function nameCell(c) {
  const isOpen = table.opened.has(c);
  const link = html("a", { href: `#config=${encodeURIComponent(c.name)}`, "aria-expanded": String(isOpen), title: c.title }, c.short);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    if (isOpen) table.opened.delete(c);
    else table.opened.add(c);
    drawRows();
    document.querySelector(`#table tr[data-index="${c.index}"] a`).focus();
  });
  return html("td", { class: "named" }, link, " ", ...badgesOf(c));
}

function rowOf(c) {
  const isBest = table.view.best && table.view.best.config === c;
  const kind = (column) => (column.isText ? "text" : column.isMissed && column.isMissed(c) ? "number missed" : "number");
  const cells = columns.map((column) => (column.isName ? nameCell(c) : html("td", { class: kind(column) }, column.cell(c))));
  cells[0].prepend(svg("svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" }, mark(lookOf(table.view, c), 7, 7)));
  const row = html("tr", { "data-index": c.index, class: isBest ? "best" : null }, ...cells);
  if (!table.opened.has(c)) return [row];
  return [row, html("tr", { class: "detail" }, html("td", { colspan: columns.length }, detail(c, table.view)))];
}

// drawRows shows the current page.
function drawRows() {
  const last = Math.max(0, Math.ceil(table.rows.length / pageSize) - 1);
  table.page = Math.min(table.page, last);
  const from = table.page * pageSize, shown = table.rows.slice(from, from + pageSize);
  document.querySelector("#table tbody").replaceChildren(...shown.flatMap(rowOf));
  const status = document.querySelector("#table .pages span"), [back, forth] = document.querySelectorAll("#table .pages button");
  status.textContent = shown.length ? `${(from + 1).toLocaleString("en")} to ${(from + shown.length).toLocaleString("en")} of ${count(table.rows.length, "configuration")}` : "No configuration fits the filter.";
  back.hidden = forth.hidden = last === 0;
  back.disabled = table.page === 0;
  forth.disabled = table.page === last;
}

function refreshTable() {
  selectRows();
  drawRows();
  document.querySelectorAll("#table thead th").forEach((th, i) => {
    th.setAttribute("aria-sort", table.sort !== i ? "none" : table.descending ? "descending" : "ascending");
  });
}

// sortBy sorts by a column, best values first. A second call reverses the order, and a third one
// restores the order by rank.
function sortBy(i) {
  const startsDescending = Boolean(columns[i].descends);
  if (table.sort !== i) [table.sort, table.descending] = [i, startsDescending];
  else if (table.descending === startsDescending) table.descending = !startsDescending;
  else table.sort = null;
  table.page = 0;
  refreshTable();
}

function headOf(column, i) {
  const button = html("button", { type: "button", title: column.hint }, column.title.replaceAll("_", "_\u200b")); // allows line breaks after _
  button.addEventListener("click", () => sortBy(i));
  return html("th", { scope: "col", class: column.isText ? "text" : "number", "aria-sort": "none" }, button);
}

// buildTable adds the table to the page.
function buildTable() {
  const search = html("input", { type: "search", id: "filter", placeholder: "Filter: name, knob=value …", "aria-label": "Filter configurations" });
  search.addEventListener("input", () => {
    table.words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    table.page = 0;
    refreshTable();
  });
  const status = html("select", { id: "status", "aria-label": "Which configurations" }, ...Object.entries(statusFilters).map(([value, [label]]) => html("option", { value }, label)));
  status.addEventListener("change", () => {
    table.status = status.value;
    table.page = 0;
    refreshTable();
  });
  const turn = (label, step) => {
    const button = html("button", { type: "button" }, label);
    button.addEventListener("click", () => { table.page += step; drawRows(); });
    return button;
  };
  document.getElementById("table").replaceChildren(
    html("div", { class: "controls" }, search, status),
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All configurations" },
      html("table", {}, html("thead", {}, html("tr", {}, ...columns.map(headOf))), html("tbody"))),
    html("div", { class: "pages" }, turn("Previous", -1), html("span", { role: "status" }), turn("Next", 1)));
}

drawers.push((view) => {
  table.view = view;
  refreshTable();
});

// openMark runs the action of a chart's mark, or else shows its configuration.
function openMark(mark) {
  if (mark.open) mark.open();
  else if (mark.config) openConfig(mark.config);
}

// openConfig shows a configuration in the table. It resets the filter.
function openConfig(config) {
  document.getElementById("filter").value = "";
  document.getElementById("status").value = "all";
  Object.assign(table, { words: [], status: "all" });
  table.opened.add(config);
  selectRows();
  table.page = Math.floor(table.rows.indexOf(config) / pageSize);
  refreshTable();
  const row = document.querySelector(`#table tr[data-index="${config.index}"]`);
  row.scrollIntoView({ block: "start" });
  row.querySelector("a").focus({ preventScroll: true });
}
