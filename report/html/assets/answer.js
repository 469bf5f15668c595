// The answer as a function of the limits. The page has an answer for every limit at which it
// changes, as the program computed it (report/html/limits.go). This file looks answers up and
// computes nothing.

const limitMetrics = raw.limits.map((l) => metricOf(l.metric));
const isLeast = raw.limits.length > 0 && raw.limits[0].side === "min";

// at has the positions of the sliders. row is a value of the second limit, and place a value of the
// first one in that row.
const ownRow = Math.max(0, raw.rows.findIndex((r) => r.own));
const ownPlace = raw.rows.length > 0 ? Math.max(0, raw.rows[ownRow].places.findIndex((p) => p.own)) : 0;
const at = { row: ownRow, place: ownPlace };

// roleTitles has the titles of the choices in an answer.
const roleTitles = { recommended: "Recommended", edge: "At the edge", nearest: "Nearest", lightest: "Least memory", default: "Default" };

const noAnswer = { roles: [], standing: -1 };

function rolesOf(answer) { return answer.roles.map((n) => raw.roles[n]); }

// newView returns the answer at the sliders' position, with the facts that all parts of the page
// need. shown has the configurations that the charts highlight: the best ones within the report's
// own limits, and the default.
function newView() {
  const row = raw.rows[at.row], place = row && row.places[at.place];
  const answer = place ? raw.answers[place.answer] : noAnswer, isOwn = !place || place.own === true;
  const roles = new Map(rolesOf(answer).map((r) => [r.as, { ...r, title: roleTitles[r.as], ...raw.choices[r.choice] }]));
  const pointOf = (as) => {
    const c = roles.get(as), config = c && configs[c.configuration];
    return config ? config.points[c.point] : null;
  };
  const own = configs[0] && configs[0].best;
  const best = pointOf("recommended") || pointOf("edge") || pointOf("nearest") || (isOwn && roles.size === 0 ? own : null);
  const top = configs.filter((c) => c.best && !c.isDefault).slice(0, Math.min(raw.top || 5, 5));
  const shown = configs.filter((c) => c.best && (c.isDefault || top.includes(c)));
  return {
    row, place, answer, isOwn, roles, best, edge: roles.has("recommended") ? pointOf("edge") : null, shown,
    looks: new Map(top.map((c, i) => [c, i + 1])), pareto: isOwn && ownFronts[0] ? ownFronts[0] : noFront,
    standings: raw.standings[answer.standing] || "", limits: limitsAt(row, place, isOwn),
  };
}

// limitsAt returns the limits at the sliders' position, and the report's others.
function limitsAt(row, place, isOwn) {
  const all = (c) => ["min", "max"].filter((side) => c[side] !== undefined).map((side) => ({ metric: c.metric, side, value: c[side] }));
  if (isOwn) return raw.constraints.flatMap(all);
  const moved = raw.limits.map((l, i) => ({ metric: l.metric, side: l.side, value: [place.limit, row.limit][i] }));
  return [...moved, ...raw.constraints.filter((c) => !moved.some((m) => m.metric === c.metric)).flatMap(all)].filter((l) => l.value !== null);
}

// misses reports whether a point probably misses a limit at the sliders' position.
function misses(view, point) {
  const digit = point.choice < 0 ? "" : view.standings[point.choice];
  return digit ? digit === "0" : (point.state & 2) !== 0;
}

// newFront makes a Pareto set of the report: its metrics, its points, and whether a point is in it.
function newFront(names, list) {
  const members = new Set(list);
  return { metrics: names.map(metricOf), points: list, has: (p) => members.has(p) };
}

const noFront = newFront([], []);
const ownFronts = raw.pareto.map((f) => newFront(f.metrics, f.points.map(([config, point]) => configs[config].points[point])));

// frontOf returns the front of the metrics, within the report's own limits.
function frontOf(view, ...metrics) {
  if (!view.isOwn) return noFront;
  return ownFronts.find((f) => f.metrics.length === metrics.length && f.metrics.every((m, i) => m.name === metrics[i].name)) || noFront;
}

// paretoName names the metrics of a Pareto set: "throughput, p99 and memory".
function paretoName(front) {
  const labels = front.metrics.map((m) => m.label);
  return `${labels.slice(0, -1).join(", ")} and ${labels.at(-1)}`;
}

// lookOf returns the look of a configuration: "1" to "5", "default", or "other".
function lookOf(view, config) {
  if (config.isDefault) return "default";
  return String(view.looks.get(config) || "other");
}

// areComparable reports whether two points were measured on the same server.
function areComparable(a, b) { return !raw.two_servers || a.confirmed === b.confirmed; }

// objective describes the axis of the objective. For one metric it shows the metric. For several it
// shows the factor over the default. It falls where less of the metric is better.
const objective = (() => {
  if (raw.objective.length !== 1) return { factor: 1, title: "Objective (× default)", name: "the objective", falls: false };
  const metric = metricOf(raw.objective[0].metric);
  return { factor: scaleOf(metric).factor, title: axisTitle(metric), name: metric.label, falls: !metric.higher_better };
})();

// sliderOf makes the slider of a limit. Its positions are the limits at which the answer changes.
function sliderOf(i, changed) {
  const metric = limitMetrics[i], sign = raw.limits[i].side === "max" ? "≤" : "≥", name = `${metric.label} ${sign}`;
  const list = () => (i === 0 ? raw.rows[at.row].places : raw.rows), key = i === 0 ? "place" : "row";
  const text = (l) => (l.limit === null ? "no limit" : limitText(metric, l.limit));
  const slider = html("input", { type: "range", id: `limit-${i}`, min: 0, step: 1, "aria-label": name }), said = html("output", { for: `limit-${i}` });
  const show = () => {
    slider.max = list().length - 1;
    slider.value = at[key];
    slider.setAttribute("aria-valuetext", text(list()[at[key]]));
    said.textContent = `${text(list()[at[key]])}${list()[at[key]].own ? ", the report’s" : ""}`;
  };
  slider.addEventListener("input", () => {
    if (i === 0) at.place = Number(slider.value);
    else moveToRow(Number(slider.value));
    changed();
  });
  return { show, element: html("div", { class: "bound" }, html("label", { for: `limit-${i}` }, name), slider, said) };
}

// moveToRow changes the second limit. It keeps the first limit, or takes the next stricter one at
// which the answer changes.
function moveToRow(row) {
  const before = raw.rows[at.row].places[at.place].limit, places = raw.rows[row].places;
  const isWithin = (p) => before === null || (p.limit !== null && (isLeast ? p.limit >= before : p.limit <= before));
  at.row = row;
  at.place = Math.max(0, places.findLastIndex(isWithin));
}

let controls = [];

// buildLimits adds the sliders to the page, and calls changed after each move.
function buildLimits(changed) {
  const section = document.getElementById("curve"), form = document.getElementById("limits");
  if (raw.limits.length === 0) {
    form.remove();
    if (raw.choices.length === 0) section.remove();
    return;
  }
  const reset = html("button", { type: "button", disabled: "" }, "Back to the report’s limits");
  const notify = () => {
    for (const c of controls) c.show();
    reset.disabled = at.row === ownRow && at.place === ownPlace;
    changed();
  };
  controls = raw.limits.map((_, i) => sliderOf(i, notify)).filter((_, i) => i === 0 || raw.rows.length > 1);
  reset.addEventListener("click", () => {
    Object.assign(at, { row: ownRow, place: ownPlace });
    notify();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.append(...controls.map((c) => c.element), reset);
  for (const c of controls) c.show();
  moveTo = (place) => {
    at.place = place;
    notify();
  };
}

let moveTo = () => {};

const ownVerdict = [...document.getElementById("verdict").childNodes];

// card makes a column of the verdict. It contains text if there is no choice.
function card(as, role, text) {
  if (!role) return html("article", { class: `card ${as}` }, html("h2", {}, roleTitles[as]), html("p", { class: "note" }, text));
  const pair = (name, ...value) => [html("dt", {}, name), html("dd", {}, ...value)];
  return html("article", { class: `card ${as}` }, html("h2", {}, role.title), html("p", { class: "setup" }, role.setup),
    html("dl", {}, ...pair("load", role.load), ...role.figures.flatMap(([label, value, interval]) => pair(label, `${value} `, html("small", {}, interval))),
      ...(role.gain ? pair("gain", role.gain) : []), ...pair("limits kept", role.holds)));
}

// drawVerdict shows the report's own text, or the answer at other limits.
function drawVerdict(view) {
  const verdict = document.getElementById("verdict"), a = view.answer;
  document.documentElement.classList.toggle("trying", !view.isOwn);
  if (view.isOwn) return verdict.replaceChildren(...ownVerdict);
  const nearest = view.roles.get("nearest");
  const cards = nearest ? [card("nearest", nearest)] : [
    card("recommended", view.roles.get("recommended"), "No measured configuration keeps these limits with the required probability."),
    card("edge", view.roles.get("edge"), "No measured configuration is better and likely to keep these limits.")];
  verdict.replaceChildren(html("p", { class: "eyebrow" }, "At the limits that you chose"),
    html("h1", {}, html("span", { class: "figure" }, a.figure), " ", html("span", { class: "claim" }, a.claim)),
    html("div", { class: "cards" }, ...cards));
}

// drawFour compares the recommended configuration with the one at the edge, the one with the least
// memory, and the default.
function drawFour(view) {
  const rows = [...view.roles.values()], place = document.getElementById("four");
  place.hidden = rows.length < 2;
  if (place.hidden) return;
  const labels = rows[0].figures.map(([label]) => label), first = rows[0];
  const cell = (text, isSame, kind = "number") => html("td", { class: kind }, isSame ? text : html("b", {}, text));
  place.replaceChildren(html("table", {},
    html("thead", {}, html("tr", {}, ...["", "Configuration", "Load"].map((t) => html("th", { scope: "col" }, t)),
      ...[...labels, "gain", "limits kept"].map((t) => html("th", { scope: "col", class: "number" }, t)))),
    html("tbody", {}, ...rows.map((r) => html("tr", { class: r === first ? "best" : null }, html("th", { scope: "row" }, r.title),
      cell(r.setup, r === first || r.setup === first.setup, "text"), cell(r.load, r === first || r.load === first.load, "text"),
      ...labels.map((label) => {
        const [, value, interval] = r.figures.find(([l]) => l === label) || [label, unknown, ""];
        return html("td", { class: "number" }, value, interval ? html("small", {}, interval) : "");
      }),
      html("td", { class: "number" }, r.gain ? `${r.same ? "= " : ""}${r.gain}` : unknown), html("td", { class: "number holds" }, r.holds))))),
    ...(rows.some((r) => r.same) ? [html("p", { class: "note" }, "= is not shown to be better or worse than the default.")] : []));
}

// drawChanges shows the lines in which the deployed configuration differs from the default's.
function drawChanges() {
  const place = document.getElementById("changes"), best = configs[0];
  if (!place || !best || !base || best.isDefault) return;
  const lines = difference(base.lines, best.lines).filter(([sign]) => sign !== " ");
  if (lines.length === 0) return;
  place.replaceChildren(html("p", {}, "What changes in the default’s config.pbtxt:"), html("div", { class: "code" }, html("pre", { tabindex: 0 }, ...diffLines(lines))));
}
