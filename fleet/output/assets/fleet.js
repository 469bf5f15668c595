// Draws the cost on each type of machine, with its intervals, from the data in the page. Without prices
// it draws the throughput.

const raw = JSON.parse(document.getElementById("data").textContent);

// looks has the shape of a type that may be the cheapest, of another one, and of a single machine.
const looks = {
  tied: { radius: 5.4 },
  dearer: { radius: 5.4, sides: 4 },
  machine: { radius: 3, sides: 4, turn: 45 },
  disturbed: { radius: 4, sides: 3 },
};

const typeRoom = 46; // height of a type: its name, its mark, and its machines

// figureText prints a value with its interval.
function figureText(i, unit) { return `${significant(i.value)}${unit} [${significant(i.lo)}, ${significant(i.hi)}]`; }

// axisOf fits the axis to the intervals. Costs that differ by more than 4 × have a log scale.
function axisOf(model) {
  const values = model.types.flatMap((t) => [t.figure.value, t.figure.lo, t.figure.hi, ...(t.next ? [t.next.lo, t.next.hi] : []), ...t.machines.map((m) => m.figure.value)]);
  const [least, most] = extremes(values), isLog = most > 4 * least;
  const title = `${model.by_cost ? "Cost of a million inferences" : "Throughput (infer/s)"}${isLog ? ", log scale" : ""}`;
  return isLog ? logAxis(title, values) : fittedAxis(title, values);
}

function typesChart(model) {
  return (_, width) => {
    if (model.types.length === 0) return null;
    const f = frame(width, typeRoom * model.types.length + 58, axisOf(model), rowsAxis(8)), marks = [];
    const x = (v) => Math.min(Math.max(f.x(v), f.box.left), f.box.right), unit = model.by_cost ? "" : " infer/s";
    model.types.forEach((t, i) => {
      const top = f.box.top + typeRoom * i, y = top + 26, look = t.is_tied ? "tied" : "dearer";
      f.picture.append(svg("text", { class: "row", x: f.box.left + 4, y: top + 12 }, `${t.machine}: ${t.setup}`.slice(0, Math.max(12, Math.floor((width - 24) / 6.6)))));
      if (t.next) f.picture.append(svg("rect", { class: `next look-${look}`, x: x(t.next.lo), y: y - 6, width: Math.max(1, x(t.next.hi) - x(t.next.lo)), height: 12 }));
      f.picture.append(...whiskers(look, x(t.figure.value), y, [x(t.figure.lo), x(t.figure.hi)], null), mark(look, x(t.figure.value), y));
      marks.push({ x: x(t.figure.value), y, lines: () => [t.machine, t.setup, figureText(t.figure, unit), ...(t.next ? [`another machine: ${significant(t.next.lo)} to ${significant(t.next.hi)}`] : []), ...(t.to_best ? [`${t.to_best} × the best`] : [])] });
      for (const m of t.machines) {
        const own = m.is_disturbed ? "disturbed" : "machine";
        f.picture.append(mark(own, x(m.figure.value), y + 13));
        marks.push({ x: x(m.figure.value), y: y + 13, lines: () => [m.node, `its own best: ${figureText(m.figure, unit)}`, `${(100 * m.disturbed).toFixed(0)} % of its windows were disturbed`] });
      }
    });
    pointing(f.picture, marks);
    return {
      picture: f.picture, title: model.by_cost ? "Cost by type of machine" : "Throughput by type of machine",
      subtitle: `Each mark is a type with its configuration. ${model.by_cost ? "To the left is better." : "To the right is better."}`, legend: legendOf(model),
    };
  };
}

// legendOf explains the marks that occur.
function legendOf(model) {
  const all = model.types.flatMap((t) => t.machines), name = model.by_cost ? "cheapest" : "fastest", entries = [[thumbOf("tied"), `${name}, or not to be told from it`]];
  if (model.types.some((t) => !t.is_tied)) entries.push([thumbOf("dearer"), `not the ${name}`]);
  entries.push([svg("line", { class: "whisker look-tied", x1: 1, x2: 29, y1: 7, y2: 7 }), "95 % interval"]);
  if (model.types.some((t) => t.next)) entries.push([svg("rect", { class: "next look-tied", x: 1, y: 2, width: 28, height: 10 }), "95 % interval of a machine that was not measured"]);
  if (all.some((m) => !m.is_disturbed)) entries.push([thumbOf("machine"), "a machine, at its own best"]);
  if (all.some((m) => m.is_disturbed)) entries.push([thumbOf("disturbed"), "a machine that others disturbed"]);
  return entries;
}

// openMark is called for a mark that a reader chooses. The tooltip has all there is.
function openMark() {}

document.documentElement.classList.add("js");
for (const model of raw) addChart(model.chart, typesChart(model));
for (const draw of drawers) draw(raw);
