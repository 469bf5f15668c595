// Shows the newest frame that the server sends. At the end the page becomes the report: the server
// then has it at the same address.

document.documentElement.classList.add("js");

const looks = {
  missed: { radius: 3.6 },
  kept: { radius: 4.4 },
  best: { radius: 8, sides: 4, turn: 45 },
};

const byId = (id) => document.getElementById(id);

// openMark does nothing: no mark of this page leads anywhere.
function openMark() {}

// titleOf names a metric like the report: "Throughput", "p99 latency".
function titleOf(metric) {
  const { label } = metric;
  return /^p\d/.test(label) ? `${label} latency` : label[0].toUpperCase() + label.slice(1);
}

// chart draws all measurements. The server says what their looks mean.
function chart(state, width) {
  const points = state.points.filter((p) => p.x > 0 && p.y > 0);
  if (points.length === 0) return null;
  return (state.tradeoff ? tradeoff : course)(state, points, width, Math.round(Math.min(430, Math.max(270, width * 0.56))));
}

// tradeoff draws the metrics in the report's axes.
function tradeoff(state, points, width, height) {
  const x = scaleOf(state.y), y = scaleOf(state.x);
  const limits = state.limit > 0 ? [{ value: state.limit * x.factor }] : [];
  const across = points.map((p) => p.y * x.factor), up = points.map((p) => p.x * y.factor);
  const [xTitle, yTitle] = [titleOf(state.y), titleOf(state.x)];
  const f = frame(width, height, logAxis(`${xTitle} (${x.unit}), log scale`, [...across, ...near(limits, across)]), linearAxis(`${yTitle} (${y.unit})`, up));
  for (const l of limits) verticalLimit(f, l.value, `${state.y.label} ≤ ${limitText(state.y, state.limit)}`, true);
  const figures = (p) => `${state.x.label} ${format(state.x, p.x)}, ${state.y.label} ${format(state.y, p.y)}`;
  return {
    picture: f.picture, title: `${yTitle} against latency`, subtitle: "Each mark is a measurement. Up and to the left is better.",
    legend: plotted(f, state, points, across, up, figures),
  };
}

// wideRatio is the ratio of the largest to the smallest value from which on course has a logarithmic
// axis, as on the terminal.
const wideRatio = 8;

// course draws a metric in the order of the measurements.
function course(state, points, width, height) {
  const { factor, unit } = scaleOf(state.y), limits = state.limit > 0 ? [{ value: state.limit * factor }] : [];
  const across = points.map((p) => p.x), up = points.map((p) => p.y * factor);
  const values = [...up, ...near(limits, up)], [least, most] = extremes(values), title = `${state.y.label} (${unit}`;
  const y = most / least >= wideRatio ? logAxis(`${title}, log scale)`, values) : fittedAxis(`${title})`, values);
  const x = linearAxis(state.x.label + (state.x.unit && ` (${state.x.unit})`), across);
  if (!state.x.unit) x.ticks = x.ticks.filter((t) => Number.isInteger(t.value)); // what is counted is whole
  const f = frame(width, height, x, y);
  for (const l of limits) horizontalLimit(f, l.value, `at most ${limitText(state.y, state.limit)}`);
  return {
    picture: f.picture, title: `${state.y.label} over ${state.x.label}`, subtitle: "Each mark is a measurement.",
    legend: plotted(f, state, points, across, up, (p) => format(state.y, p.y)),
  };
}

// plotted draws the marks of points into a frame, and returns the legend's entries.
function plotted(f, state, points, across, up, figures) {
  const marks = [];
  for (const look of Object.keys(looks)) {
    points.forEach((p, i) => {
      if (p.look !== look) return;
      const cx = f.x(across[i]), cy = f.y(up[i]);
      f.picture.append(mark(look, cx, cy, look === "missed"));
      marks.push({ x: cx, y: cy, lines: () => [p.text, figures(p), state.marks[look]] });
    });
  }
  marks.sort((a, b) => a.x - b.x || b.y - a.y);
  pointing(f.picture, marks);
  const kinds = Object.keys(looks).reverse().filter((look) => points.some((p) => p.look === look));
  return kinds.map((look) => [thumbOf(look, look === "missed"), state.marks[look]]);
}

// levels draws the history of the noise as bars. A full one is half of the machine.
function levels(history) {
  const most = 16, full = 0.5;
  const bars = history.map((share, i) => {
    const height = Math.max(1, 40 * Math.min(1, share / full));
    return svg("rect", { class: "level", x: 10 * (most - history.length + i), y: 40 - height, width: 8, height });
  });
  return svg("svg", { viewBox: `0 0 ${10 * most} 40`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...bars);
}

function showNoise(noise) {
  if (!noise) return;
  byId("noise").classList.toggle("spoilt", noise.spoilt.length > 0);
  byId("shares").replaceChildren(...noise.texts.map((text) => html("span", {}, text)));
  byId("spoilt").replaceChildren(...noise.spoilt.map((reason) => html("li", {}, reason)));
  byId("levels").replaceChildren(levels(noise.history));
}

// press asks the server to obey a key.
async function press(name, button) {
  button.disabled = true;
  try {
    const answer = await fetch(`press${location.search}`, { method: "POST", body: name });
    if (!answer.ok) byId("note").textContent = await answer.text();
  } catch {
    byId("note").textContent = "tuner does not answer.";
  }
  button.disabled = false;
}

let keysText = "";

function showKeys(keys) {
  const text = JSON.stringify(keys);
  if (text === keysText) return; // a button that is being pressed stays
  keysText = text;
  byId("keys").replaceChildren(...keys.map((key) => {
    const button = html("button", { type: "button" }, key.text);
    button.addEventListener("click", () => press(key.name, button));
    return button;
  }));
}

// setText changes a text only when it differs, since a screen reader reads changes aloud.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function showAnswer(sentences, isGood) {
  const verdict = byId("verdict");
  verdict.classList.toggle("good", isGood);
  while (verdict.children.length > sentences.length) verdict.lastChild.remove();
  sentences.forEach((sentence, i) => setText(verdict.children[i] ?? verdict.appendChild(html("p")), sentence));
}

// show shows a state.
function show(state) {
  document.title = `${state.title} – tuner`;
  setText(byId("name"), state.title);
  showAnswer(state.answer, state.good);
  setText(byId("now"), `Now: ${state.now}`);
  setText(byId("note"), state.note);
  showNoise(state.noise);
  showKeys(state.keys);
  document.querySelector("#recent thead tr").replaceChildren(...state.heads.map((text) => html("th", { scope: "col" }, text)));
  document.querySelector("#recent tbody").replaceChildren(...state.recent.map((e) => html("tr", { class: e.bad ? "bad" : null }, ...[e.head, e.text, e.outcome].map((text) => html("td", {}, text)))));
}

function clockText(seconds) {
  const s = Math.round(seconds), [h, m] = [Math.floor(s / 3600), Math.floor(s / 60) % 60];
  return `${h > 0 ? `${h}h` : ""}${h > 0 || m > 0 ? `${m}m` : ""}${s % 60}s`;
}

let newest = null; // the last message, and when it came
let shown = null, drawn = null; // the messages of which the page has the texts and the chart

// showTimes shows the times, which go on between two states.
function showTimes() {
  if (!newest || newest.frame.done) return;
  const since = (performance.now() - newest.at) / 1e3, spent = newest.spent + since;
  const left = newest.left === null ? null : Math.max(0, newest.left - since);
  byId("clock").textContent = clockText(spent) + (left === null ? "" : `, about ${clockText(left)} left`);
  byId("done").value = left === null ? 0 : spent / (spent + left);
}

// refresh shows the newest state. A page that nobody sees draws nothing: a browser on the measured
// machine takes CPU time from it.
function refresh() {
  if (!newest || document.hidden) return;
  if (shown !== newest) show(newest.frame);
  shown = newest;
  showTimes();
  if (drawn === newest || !tooltip.hidden) return; // somebody reads the figures of a mark
  for (const draw of drawers) draw(newest.frame);
  drawn = newest;
}

addChart("points", chart);
document.addEventListener("visibilitychange", refresh);
setInterval(refresh, 1000);

function lose(text) {
  byId("lost").textContent = text;
  byId("lost").hidden = text === "";
}

const source = new EventSource(`events${location.search}`);
source.addEventListener("open", () => lose(""));
source.addEventListener("error", () => {
  const isRefused = source.readyState === EventSource.CLOSED;
  lose(isRefused ? "tuner refuses this page: too many pages watch the run, or it is another one. Reload to try again." : "The connection to tuner is lost. It is tried again.");
});
source.addEventListener("frame", (event) => {
  newest = { ...JSON.parse(event.data), at: performance.now() };
  refresh();
});
source.addEventListener("report", () => {
  source.close();
  location.reload();
});
source.addEventListener("over", () => {
  source.close();
  lose("tuner has ended.");
});
