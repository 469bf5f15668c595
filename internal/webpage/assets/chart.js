// Marks, lines and intervals of charts, and when charts are drawn. A page defines its own looks. A
// look has the radius, the number of sides and the turn in degrees of a mark; without sides it is a
// circle. Shapes differ so that colour is not the only difference.

// outline returns the path of a mark's shape.
function outline(look, x, y) {
  const { radius: r, sides, turn = 0 } = looks[look];
  if (!sides) return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
  const corners = Array.from({ length: sides }, (_, i) => {
    const angle = (turn + 360 * i / sides - 90) * Math.PI / 180;
    return `${(x + r * Math.cos(angle)).toFixed(1)} ${(y + r * Math.sin(angle)).toFixed(1)}`;
  });
  return `M${corners.join("L")}Z`;
}

// mark returns the shape of a point. The page explains hollow ones.
function mark(look, x, y, isHollow = false) {
  return svg("path", { class: `mark look-${look}${isHollow ? " hollow" : ""}`, d: outline(look, x, y) });
}

// thumbOf returns a mark for a legend.
function thumbOf(look, isHollow = false) {
  const thumb = mark(look, 15, 7, isHollow);
  thumb.classList.remove("mark");
  return thumb;
}

// curve connects places with a line.
function curve(look, places) {
  return svg("path", { class: `curve look-${look}`, d: pathOf(places) });
}

function pathOf(places) { return places.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""); }

// whiskers returns the intervals of a mark, along x and y; null means that none is known.
function whiskers(look, x, y, alongX, alongY) {
  const line = (x1, x2, y1, y2) => svg("line", { class: `whisker look-${look}`, x1, x2, y1, y2 });
  const lines = [];
  if (alongX) lines.push(line(alongX[0], alongX[1], y, y));
  if (alongY) lines.push(line(x, x, alongY[0], alongY[1]));
  return lines;
}

const drawers = []; // a function for each chart

// onWidth calls changed when the width of an element changes. It ignores changes of the height, and
// hidden elements.
function onWidth(element, changed) {
  let width = element.clientWidth;
  new ResizeObserver(() => {
    if (element.clientWidth === 0 || element.clientWidth === width) return;
    width = element.clientWidth;
    changed();
  }).observe(element);
}

// addChart draws a chart again if its width or the page's state changes. draw gets the state and
// the width, and returns the picture with its texts, or null if there is nothing to draw.
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
