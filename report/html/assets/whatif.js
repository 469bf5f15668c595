// What if a limit were another one: the sliders, and the answer in the page's first lines.

const sliderSteps = 200;

// limits are the bounds that can be tried out: the report's own, and where it has none of latency and memory, these too. own is the
// report's, value the present one; null is none.
const limits = (() => {
  const list = [];
  for (const c of raw.constraints) {
    for (const side of ["min", "max"]) if (c[side] !== undefined && metricOf(c.metric).index >= 0) list.push({ metric: metricOf(c.metric), side, own: c[side], value: c[side] });
  }
  for (const metric of [latencyMetric, memoryMetric]) {
    if (metric.index >= 0 && !list.some((l) => l.metric === metric && l.side === "max")) list.push({ metric, side: "max", own: null, value: null });
  }
  for (const l of list) {
    const [least, most] = extremes([...points.map((p) => p.value(l.metric.name)), ...(l.own ? [l.own] : [])]);
    Object.assign(l, { least: least * 0.9, most: most * 1.1 });
  }
  return list;
})();

// constraintsNow are the limits as a goal's constraints: the report's own in their order, then others. One has both bounds of its metric.
function constraintsNow() {
  if (limits.every((l) => l.value === l.own)) return raw.constraints;
  const bounds = new Map(raw.constraints.map((c) => [c.metric, { ...c }]));
  for (const l of limits) {
    const c = bounds.get(l.metric.name) || { metric: l.metric.name };
    if (l.value === null) delete c[l.side];
    else c[l.side] = l.value;
    bounds.set(l.metric.name, c);
  }
  return [...bounds.values()].filter((c) => c.min !== undefined || c.max !== undefined);
}

// positionOf is a limit's place on its slider, on log scale. The end that bounds nothing is no limit.
function positionOf(l) {
  if (l.value === null) return l.side === "max" ? sliderSteps : 0;
  const at = Math.log(l.value / l.least) / Math.log(l.most / l.least) * sliderSteps;
  return l.side === "max" ? Math.min(Math.max(at, 0), sliderSteps - 1) : Math.min(Math.max(at, 1), sliderSteps);
}

function valueAt(l, position) {
  if (position === (l.side === "max" ? sliderSteps : 0)) return null;
  return Number((l.least * (l.most / l.least) ** (position / sliderSteps)).toPrecision(3));
}

// control is one limit's slider and field.
function control(l, i, changed) {
  const { factor, unit } = scaleOf(l.metric), sign = l.side === "max" ? "≤" : "≥", name = `${l.metric.label} ${sign}`;
  const slider = html("input", { type: "range", id: `limit-${i}`, min: 0, max: sliderSteps, step: 1, "aria-label": name });
  const field = html("input", { type: "number", min: 0, step: "any", placeholder: "no limit", "aria-label": `${name} (${unit})` });
  const showSlider = () => {
    slider.value = positionOf(l);
    slider.setAttribute("aria-valuetext", l.value === null ? "no limit" : limitText(l.metric, l.value));
  };
  const showField = () => { field.value = l.value === null ? "" : short(l.value * factor); };
  const show = () => {
    showSlider();
    showField();
  };
  slider.addEventListener("input", () => { // it stays where it was put: the limit is rounded
    l.value = valueAt(l, Number(slider.value));
    slider.setAttribute("aria-valuetext", l.value === null ? "no limit" : limitText(l.metric, l.value));
    showField();
    changed();
  });
  field.addEventListener("input", () => {
    const v = Number.parseFloat(field.value);
    l.value = v > 0 ? Number((v / factor).toPrecision(12)) : null;
    showSlider();
    changed();
  });
  show();
  return { show, element: html("div", { class: "bound" }, html("label", { for: `limit-${i}` }, name), slider, field, html("span", {}, unit)) };
}

// buildWhatIf puts the sliders into the page, and calls changed after each change.
function buildWhatIf(changed) {
  const form = document.getElementById("whatif");
  if (points.length === 0 || limits.length === 0) return form.remove();
  const reset = html("button", { type: "button", disabled: "" }, "Back to the report’s limits");
  const notify = () => {
    reset.disabled = limits.every((l) => l.value === l.own);
    changed();
  };
  const controls = limits.map((l, i) => control(l, i, notify));
  reset.addEventListener("click", () => {
    for (const l of limits) l.value = l.own;
    for (const c of controls) c.show();
    notify();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  const head = html("div", { class: "head" }, html("h2", {}, "What if"), html("p", { class: "note" }, "Try other limits: answer, charts and table follow, from the same measurements."));
  form.append(head, ...controls.map((c) => c.element), reset);
}

// figuresText prints the objective's figures at the point that a configuration is ranked by.
function figuresText(s) { return raw.objective.map((t) => format(metricOf(t.metric), s.point.value(t.metric))).join(", "); }

// comparedText says what is compared, of the best and of the default.
function comparedText(s) {
  if (isTopMean) return `${format(throughputMetric, Math.exp(s.score.value))} in the mean of its ${count(s.meanOf, "best load")}`;
  return `${figuresText(s)} at ${loadText(s.point.load)}`;
}

// defaultMiss says why there is no gain over the default.
function defaultMiss(standard, best, constraints) {
  if (!standard) return "The default was not recorded.";
  if (!standard.point) return standard.config.points.length > 0 ? "The default was not measured at this load." : "The default was not measured.";
  if (!areComparable(standard.point, best.point)) return "The default was measured on another server.";
  if (standard.satisfies) return "The default was measured at too few loads for a mean.";
  return `The default does not satisfy the limits: nearest at ${loadText(standard.point.load)}, ${missesText(standard.point, constraints)}.`;
}

// missedText names the limits that configurations miss at the points that they are ranked by.
function missedText(r) {
  const ranked = r.order.filter((s) => s.point).map((s) => s.point);
  const limits = r.constraints.filter((c) => ranked.some((p) => violationOf(c, p.value(c.metric)) > 0)).map(constraintText);
  const scores = raw.objective.filter((t) => ranked.some((p) => unscored(p).includes(t))).map((t) => `${metricOf(t.metric).label} > 0`);
  return [...limits, ...scores, ...(ranked.some((p) => p.refused) ? ["error rate ≤ 1 %"] : [])].join(", ");
}

// confirmation says whether the figures of the best stand on more than the search.
function confirmation(best) {
  if (raw.recorded) return "Another program’s figures, without intervals: how sure they are is not known.";
  if (best.point.confirmed) return "Confirmed on fresh launches.";
  if (best.config.hasFailedFinals) return "Not confirmed, since its finals failed: the figures are the search’s own, and it may not serve.";
  return "Not confirmed at this load on fresh launches: the figures are the search’s own, and may flatter.";
}

// verdictOf is the answer within limits that are tried out, in the report's own words: figure, claim, certainty, best, summary.
function verdictOf(r) {
  const within = withinText(r.constraints), best = r.best, standard = r.standard;
  if (!best) return { figure: "Nothing", claim: "was measured" };
  if (!best.satisfies) {
    return { figure: "None", claim: `satisfies ${missedText(r)}`, best: `Nearest: ${nameOf(best.config)} at ${loadText(best.point.load)}: ${missesText(best.point, r.constraints)}.` };
  }
  const name = `Best: ${nameOf(best.config)}. ${confirmation(best)}`;
  if (best.config.isDefault) return { figure: "1 ×", claim: `the default is the best that was found${within}`, best: name, summary: `${comparedText(best)}.` };
  if (!best.gain) return { figure: figuresText(best), claim: `at its best load${within}`, best: name, summary: `${comparedText(best)}. ${defaultMiss(standard, best, r.constraints)}` };
  const [factor, a, b] = factorOf(best.gain), lo = Math.min(a, b), hi = Math.max(a, b);
  const of = raw.objective.length === 1 ? `the default’s ${objectiveName}` : "better than the default in the objective";
  const open = best.gain[1] <= 1 ? " The interval holds 1: it is not shown to be better than the default." : "";
  return {
    figure: `${factor.toFixed(2)} ×`, claim: `${of}${within}`, certainty: raw.recorded ? "" : `95 % interval ${lo.toFixed(2)} to ${hi.toFixed(2)}, ± ${((hi - lo) / 2 / factor * 100).toFixed(1)} %`,
    best: name, summary: `${comparedText(best)}, against ${comparedText(standard)}.${open}`,
  };
}

// whatIfNote says what the answer rests on, and what it leaves out.
function whatIfNote() {
  const left = raw.believes ? " What the search’s own model of the server believes has a say in the report’s ranking, and none here." : "";
  return `Ranked again from the same measurements, by the rules of the report. Nothing is measured anew: what lies between two loads is not known.${left}`;
}

const ownVerdict = [...document.getElementById("verdict").childNodes];

// drawVerdict shows the report's own words, or what would be the best within other limits.
function drawVerdict(ranking) {
  const verdict = document.getElementById("verdict");
  document.documentElement.classList.toggle("trying", !ranking.isOwn);
  if (ranking.isOwn) return verdict.replaceChildren(...ownVerdict);
  const v = verdictOf(ranking);
  verdict.replaceChildren(html("p", { class: "eyebrow" }, "What if: limits that you try out"),
    html("h1", {}, html("span", { class: "figure" }, v.figure), " ", html("span", { class: "claim" }, v.claim)),
    ...["certainty", "best", "summary"].filter((k) => v[k]).map((k) => html("p", { class: k }, v[k])), html("p", { class: "note" }, whatIfNote()));
}

// drawTiles puts the best beside the default in a few figures.
function drawTiles(ranking) {
  const best = ranking.best && ranking.best.point, standard = ranking.standard && ranking.standard.point;
  const areAlike = best && standard && ranking.best.satisfies === ranking.standard.satisfies; // else a change says nothing
  const tiles = [throughputMetric, latencyMetric, ...raw.objective.map((t) => metricOf(t.metric)), memoryMetric].filter((m, i, list) => list.indexOf(m) === i && best && best.value(m.name) !== null);
  document.getElementById("tiles").replaceChildren(...tiles.map((m) => {
    const v = best.value(m.name), interval = best.interval(m.name), isOther = standard && standard !== best && areComparable(standard, best);
    const other = isOther ? standard.value(m.name) : null;
    const lines = [html("dt", {}, titleOf(m)), html("dd", {}, html("strong", {}, format(m, v)), interval ? html("span", {}, `${format(m, interval[0])} to ${format(m, interval[1])}`) : "")];
    if (other !== null) {
      const isBetter = m.higher_better ? v > other : v < other, change = Math.abs(v / other - 1) < 0.005 ? "the same" : percent(v / other - 1);
      const said = html("b", { class: change === "the same" ? null : isBetter ? "better" : "worse" }, change);
      lines.push(html("dd", { class: "other" }, ...(areAlike ? [`default ${format(m, other)} `, said] : [`default, beyond the limits, ${format(m, other)}`])));
    }
    return html("div", {}, ...lines);
  }));
}

// barOf is a configuration's objective as a bar shows it: its value, its interval (null unknown), and its text.
function barOf(s, y) {
  if (isTopMean) {
    const [value, lo, hi] = [s.score.value, s.score.lo, s.score.hi].map(Math.exp);
    return { value, interval: [lo, hi], text: format(throughputMetric, value) };
  }
  const value = y.of(s.point);
  return { value, interval: (y.interval && y.interval(s.point)) || null, text: raw.objective.length === 1 ? figuresText(s) : `${value.toFixed(2)} ×` };
}

// drawGain draws the default, the first stage and the best as bars of the objective, with their intervals. The first stage is the report's:
// within other limits it may be another one.
function drawGain(ranking) {
  const place = document.getElementById("gain"), y = points.length ? objectiveCoordinate(ranking) : null;
  const first = ranking.isOwn && raw.first_stage !== undefined ? ranking.standings.get(configs[raw.first_stage]) : null;
  const rows = [["default", ranking.standard], ["after stage 1", first], ["best", ranking.best]]
    .filter(([, s], i, list) => s && s.satisfies && areComparable(s.point, ranking.best.point) && list.findIndex(([, o]) => o === s) === i)
    .map(([name, s]) => ({ name, s, ...barOf(s, y) })).filter((r) => r.value > 0);
  place.hidden = rows.length < 2;
  if (place.hidden) return;
  const most = extremes(rows.flatMap((r) => [r.value, ...(r.interval || [])]))[1], width = Math.max(260, place.clientWidth);
  const left = 84, right = 12 + 7 * Math.max(...rows.map((r) => r.text.length)), at = (v) => left + (width - left - right) * v / most;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${rows.length * 30 + 4}`, width: "100%", role: "img", "aria-label": `${y.title}: ${rows.map((r) => `${r.name} ${r.text}`).join(", ")}` });
  rows.forEach(({ name, s, value, interval, text }, i) => {
    const top = 30 * i + 3;
    picture.append(svg("text", { class: "row", x: left - 8, y: top + 16, "text-anchor": "end" }, name),
      svg("rect", { class: `bar look-${lookOf(ranking, s.config)}`, x: left, y: top, width: at(value) - left, height: 22, rx: 2 }),
      ...whiskers("plain", 0, top + 11, interval && interval.map(at), null),
      svg("text", { class: "row", x: Math.max(at(value), interval ? at(interval[1]) : 0) + 7, y: top + 16 }, text));
  });
  const hasStage = rows.some((r) => r.name === "after stage 1");
  const note = "Stage 1 changes what serves the model alone: precision, runtime, execution provider and session options. The best changes instances and batching, too.";
  place.replaceChildren(picture, ...(hasStage ? [html("p", { class: "note" }, note)] : []));
}
