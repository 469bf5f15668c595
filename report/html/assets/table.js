// The table of all configurations: sorted, filtered, in pages, so that ten thousand are no more work than ten.

const pageSize = 25;
const mostKnobColumns = 8;

const table = { ranking: null, rows: [], page: 0, sort: null, descending: false, words: [], status: "all", opened: new Set() };

// statusOf says in a word how a configuration stands.
function statusOf(s) {
  if (!s.point) return s.config.points.length > 0 ? "not measured at this load" : "failed";
  if (!s.satisfies) return "misses a limit";
  return s.point.confirmed ? "confirmed" : "satisfies";
}

// chanceOf is the probability that the limits hold at the point that a configuration is ranked by; 0 where its figures miss one, null
// without figures.
function chanceOf(s) {
  if (!s.point) return null;
  return s.satisfies ? probability(s.point, table.ranking.constraints) : 0;
}

function chanceCell(s) {
  if (!s.point) return unknown;
  if (!s.satisfies) return "no";
  return table.ranking.constraints.length > 0 ? chanceText(chanceOf(s)) : "yes";
}

// isPareto reports whether a configuration is in the Pareto set at some load.
function isPareto(s) { return s.config.points.some(table.ranking.pareto.has); }

const statusFilters = {
  all: ["All", () => true],
  satisfies: ["Within the limits", (s) => s.satisfies],
  pareto: ["Pareto set only", isPareto],
  confirmed: ["Confirmed", (s) => s.satisfies && s.point.confirmed],
  misses: ["Misses a limit", (s) => s.point && !s.satisfies],
  failed: ["Failed", (s) => !s.point || s.config.failures.length > 0],
};

// knobColumns are the knobs in which configurations differ.
const knobColumns = raw.knobs.map((knob, n) => ({
  title: knob.name, isText: true,
  cell: (s) => valueText(knob.name, s.config.setting(n)),
  key: (s) => {
    const v = s.config.setting(n), number = Number.parseFloat(v);
    return Number.isNaN(number) ? v : number;
  },
})).slice(0, mostKnobColumns);

// valueColumn shows a metric at a configuration's best load, with half of its interval in the objective's.
function valueColumn(metric) {
  const { factor, unit } = scaleOf(metric), digits = unit === "MB" ? 0 : unit === "ms" ? 2 : 1;
  return {
    title: `${metric.label} (${unit})`,
    isMissed: (s) => Boolean(s.point) && table.ranking.constraints.some((c) => c.metric === metric.name && violationOf(c, s.point.value(metric.name)) > 0),
    key: (s) => s.point && s.point.value(metric.name),
    cell: (s) => {
      const v = s.point && s.point.value(metric.name), interval = s.point && s.point.interval(metric.name);
      if (v === null) return unknown;
      const half = interval && metric.name === "throughput" ? ` ±${((interval[1] - interval[0]) / 2 * factor).toFixed(digits)}` : "";
      return `${unit === "ms" || unit === "MB" || unit === "infer/s" ? (v * factor).toFixed(digits) : significant(v * factor)}${half}`;
    },
  };
}

function gainCell(s) {
  if (!s.gain) return unknown;
  return s.config.isDefault ? "1" : `${s.gain[0].toFixed(2)} ±${((s.gain[2] - s.gain[1]) / 2).toFixed(2)}`;
}

// columns have a title, what it means where that needs saying, a cell's text, whether it misses a limit, and the key that they sort by; null
// is unknown.
const columns = [
  { title: "#", hint: "=1: tied with others of the same number, within 1 % and with overlapping intervals", cell: (s) => (s.tie ? `=${s.tie}` : s.rank ? String(s.rank) : unknown), key: (s) => s.rank || null },
  { title: "Configuration", isText: true, isName: true, cell: (s) => s.config.short, key: (s) => s.config.name },
  ...knobColumns,
  { title: isRate ? "Rate" : "Load", hint: "the configuration’s best load, of which the figures are", cell: (s) => (s.point ? short(s.point.level) : unknown), key: (s) => s.point && s.point.level },
  ...[throughputMetric, latencyMetric, ...raw.objective.map((t) => metricOf(t.metric)), ...raw.constraints.map((c) => metricOf(c.metric)), memoryMetric]
    .filter((m, i, list) => m.index >= 0 && list.indexOf(m) === i).map(valueColumn),
  { title: "× default", hint: `gain in ${isTopMean ? "the mean of the best loads" : objectiveName} over the default, with half of its 95 % interval`, cell: gainCell, key: (s) => s.gain && s.gain[0] },
  { title: "OK", hint: "probability that the limits hold, by the intervals of the figures", cell: chanceCell, key: chanceOf },
  { title: "Status", isText: true, cell: statusOf, key: statusOf },
];

// haystack is what the filter's words are looked for in.
function haystack(s) {
  s.config.haystack ??= `${s.config.name} ${s.config.title} ${raw.knobs.map((k, n) => `${k.name}=${s.config.setting(n) ?? "default"}`).join(" ")}`.toLowerCase();
  return s.config.haystack;
}

// compare orders keys; unknown ones come last either way.
function compare(a, b, isDescending) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = a < b ? -1 : a > b ? 1 : 0;
  return isDescending ? -order : order;
}

// selectRows filters and sorts.
function selectRows() {
  const [, keeps] = statusFilters[table.status];
  table.rows = table.ranking.order.filter((s) => keeps(s) && table.words.every((w) => haystack(s).includes(w)));
  const column = columns[table.sort];
  if (!column) return;
  const keys = new Map(table.rows.map((s) => [s, column.key(s)]));
  table.rows.sort((a, b) => compare(keys.get(a), keys.get(b), table.descending));
}

function badgesOf(s) {
  const badges = [];
  if (table.ranking.best === s) badges.push(s.satisfies ? "best" : "nearest");
  if (isPareto(s)) badges.push("Pareto set");
  if (s.config.failures.length > 0) badges.push("failed trials");
  return badges.map((b) => html("span", { class: `badge${b === "best" ? " best" : ""}` }, b));
}

// nameCell opens and closes a configuration.
function nameCell(s) {
  const isOpen = table.opened.has(s.config);
  const link = html("a", { href: `#config=${encodeURIComponent(s.config.name)}`, "aria-expanded": String(isOpen), title: s.config.title }, s.config.short);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    if (isOpen) table.opened.delete(s.config);
    else table.opened.add(s.config);
    drawRows();
    document.querySelector(`#table tr[data-index="${s.config.index}"] a`).focus();
  });
  return html("td", { class: "named" }, link, " ", ...badgesOf(s));
}

function rowOf(s) {
  const look = lookOf(table.ranking, s.config);
  const kind = (c) => (c.isText ? "text" : c.isMissed && c.isMissed(s) ? "number missed" : "number");
  const cells = columns.map((c) => (c.isName ? nameCell(s) : html("td", { class: kind(c) }, c.cell(s))));
  cells[0].prepend(svg("svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" }, mark(look, 7, 7)));
  const row = html("tr", { "data-index": s.config.index, class: table.ranking.best === s ? "best" : null }, ...cells);
  if (!table.opened.has(s.config)) return [row];
  return [row, html("tr", { class: "detail" }, html("td", { colspan: columns.length }, detail(s, table.ranking)))];
}

// drawRows shows the present page.
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

// sortBy sorts by a column; once more the other way round, and then by rank again. Figures begin with their best end.
function sortBy(i) {
  const startsDescending = /infer\/s|× default|OK/.test(columns[i].title);
  if (table.sort !== i) [table.sort, table.descending] = [i, startsDescending];
  else if (table.descending === startsDescending) table.descending = !startsDescending;
  else table.sort = null;
  table.page = 0;
  refreshTable();
}

function headOf(column, i) {
  const button = html("button", { type: "button", title: column.hint }, column.title.replaceAll("_", "_\u200b")); // where it may break
  button.addEventListener("click", () => sortBy(i));
  return html("th", { scope: "col", class: column.isText ? "text" : "number", "aria-sort": "none" }, button);
}

// buildTable puts the table into the page, once.
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

drawers.push((ranking) => {
  table.ranking = ranking;
  refreshTable();
});

// openMark shows the configuration that a chart's mark is of.
function openMark(mark) { if (mark.config) openConfig(mark.config); }

// openConfig shows a configuration in the table, whatever the filter was.
function openConfig(config) {
  document.getElementById("filter").value = "";
  document.getElementById("status").value = "all";
  Object.assign(table, { words: [], status: "all" });
  table.opened.add(config);
  selectRows();
  table.page = Math.floor(table.rows.findIndex((s) => s.config === config) / pageSize);
  refreshTable();
  const row = document.querySelector(`#table tr[data-index="${config.index}"]`);
  row.scrollIntoView({ block: "start" });
  row.querySelector("a").focus({ preventScroll: true });
}
