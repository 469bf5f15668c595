// Marks, lines and intervals of charts, and when charts are drawn. A page has its own looks: of each the radius, the sides and the turn, in
// degrees, of a mark (no sides is a circle), so that none is told by its colour alone.

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

// mark is the shape of a point; the page says what a hollow one means.
function mark(look, x, y, isHollow = false) {
  return svg("path", { class: `mark look-${look}${isHollow ? " hollow" : ""}`, d: outline(look, x, y) });
}

// thumbOf is a mark in a legend: it stands for no figure.
function thumbOf(look, isHollow = false) {
  const thumb = mark(look, 15, 7, isHollow);
  thumb.classList.remove("mark");
  return thumb;
}

// curve joins places.
function curve(look, places) {
  return svg("path", { class: `curve look-${look}`, d: pathOf(places) });
}

function pathOf(places) { return places.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""); }

// whiskers are the intervals of a mark, along either axis; null where none is known.
function whiskers(look, x, y, alongX, alongY) {
  const line = (x1, x2, y1, y2) => svg("line", { class: `whisker look-${look}`, x1, x2, y1, y2 });
  const lines = [];
  if (alongX) lines.push(line(alongX[0], alongX[1], y, y));
  if (alongY) lines.push(line(x, x, alongY[0], alongY[1]));
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

// addChart draws a chart whenever its width or what the page shows changes. draw takes that and a width, and returns the picture with
// its words; null where there is nothing to draw.
function addChart(id, draw) {
  const figure = document.getElementById(id), plot = figure.querySelector(".plot");
  let width = 0, shown = null;
  const paint = () => {
    const drawn = draw(shown, Math.max(width, 260));
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
    if (shown) paint();
  });
  drawers.push((next) => {
    shown = next;
    if (!figure.hidden && plot.clientWidth) width = plot.clientWidth;
    paint();
  });
}
