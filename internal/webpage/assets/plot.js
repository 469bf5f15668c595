// Elements, axes and pointing at marks, for all charts. Texts are inserted as text, never as
// markup.

const svgNamespace = "http://www.w3.org/2000/svg";

function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) element.setAttribute(name, value);
}

// svg makes an SVG element.
function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(svgNamespace, name);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

// html makes an HTML element.
function html(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

// linearTicks returns ticks up to most, from 0 or another least value. The step is 1, 2 or 5 times
// a power of ten.
function linearTicks(most, least = 0) {
  let step = 10 ** Math.floor(Math.log10((most - least) / 6));
  step *= [1, 2, 5, 10].find((f) => (most - least) / (step * f) <= 7);
  const first = Math.ceil(least / step * (1 - 1e-9)), last = Math.floor(most / step * (1 + 1e-9));
  return Array.from({ length: last - first + 1 }, (_, i) => tick((first + i) * step));
}

// decadeTicks returns round numbers of each power of ten. A short range has more of them.
function decadeTicks(least, most) {
  const steps = (...list) => {
    const ticks = [];
    for (let decade = 10 ** Math.floor(Math.log10(least)); decade <= most; decade *= 10) {
      for (const s of list) if (decade * s >= least && decade * s <= most) ticks.push(tick(decade * s));
    }
    return ticks;
  };
  const usual = steps(1, 2, 5);
  if (usual.length < 4) return steps(1, 1.5, 2, 3, 5, 7);
  return usual.length > 9 ? steps(1) : usual;
}

// doublingTicks returns the powers of two.
function doublingTicks(least, most) {
  const ticks = [];
  for (let v = 2 ** Math.ceil(Math.log2(least)); v <= most; v *= 2) ticks.push(tick(v));
  return ticks;
}

function tick(v) { return { value: v, label: short(v) }; }

// extremes returns the smallest and the largest positive value. Without any it returns 1 and 10.
function extremes(values) {
  let least = Infinity, most = -Infinity;
  for (const v of values) {
    if (!(v > 0)) continue;
    least = Math.min(least, v);
    most = Math.max(most, v);
  }
  return least > most ? [1, 10] : [least, most];
}

// linearAxis extends from 0 to a little more than the largest value.
function linearAxis(title, values) {
  const max = extremes(values)[1] * 1.14;
  return { title, min: 0, max, ticks: linearTicks(max), at: (v) => v / max };
}

// fittedAxis extends a little beyond the values on both sides. It does not begin at 0, so that a
// difference of a few per cent is visible.
function fittedAxis(title, values) {
  const [least, most] = extremes(values), room = 0.1 * (most > least ? most - least : most);
  const min = Math.max(0, least - room), max = most + room;
  return { title, ticks: linearTicks(max, min), at: (v) => (v - min) / (max - min) };
}

// logAxis leaves room on both sides of the values, and more around a narrow range. It has a place
// for every number. A value below a thousandth of its minimum, also 0 or less, has the place of
// that thousandth. The end of a wide interval may be such a value.
function logAxis(title, values, ticksOf = decadeTicks) {
  const [least, most] = extremes(values);
  const room = Math.max(1.15, Math.sqrt(6 * least / most));
  const min = least / room, max = most * room;
  return { title, min, max, ticks: ticksOf(min, max), at: (v) => Math.log(Math.max(v / min, 1e-3)) / Math.log(max / min) };
}

// rowsAxis replaces the y axis of a picture with rows. room is the width of their names on the
// left.
function rowsAxis(room) { return { title: "", ticks: [], room, at: (v) => v }; }

// frame draws the axes of a picture. It returns the picture, its box, and the functions from values
// to coordinates. A tick of x may have a note below its label.
function frame(width, height, xAxis, yAxis) {
  const letters = Math.max(...yAxis.ticks.map((t) => t.label.length), 1), notes = xAxis.ticks.some((t) => t.note) ? 15 : 0;
  const box = { left: yAxis.room ?? 26 + 7 * letters, right: width - 12, top: 12, bottom: height - 42 - notes };
  const x = (v) => box.left + xAxis.at(v) * (box.right - box.left);
  const y = (v) => box.bottom - yAxis.at(v) * (box.bottom - box.top);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", tabindex: 0 });
  for (const t of yAxis.ticks) {
    picture.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y(t.value), y2: y(t.value) }),
      svg("text", { class: "tick", x: box.left - 6, y: y(t.value) + 4, "text-anchor": "end" }, t.label));
  }
  let end = -Infinity; // right end of the previous label, so that labels do not overlap
  for (const t of xAxis.ticks) {
    const half = 3.6 * Math.max(t.label.length, t.note ? t.note.length : 0);
    picture.append(svg("line", { class: "grid", x1: x(t.value), x2: x(t.value), y1: box.top, y2: box.bottom }));
    if (x(t.value) - half > end + 4 && x(t.value) + half < width) {
      picture.append(svg("text", { class: "tick", x: x(t.value), y: box.bottom + 17, "text-anchor": "middle" }, t.label));
      if (t.note) picture.append(svg("text", { class: "tick", x: x(t.value), y: box.bottom + 32, "text-anchor": "middle" }, t.note));
      end = x(t.value) + half;
    }
  }
  picture.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
    svg("text", { class: "title", x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, xAxis.title),
    svg("text", { class: "title", x: -(box.top + box.bottom) / 2, y: 12, transform: "rotate(-90)", "text-anchor": "middle" }, yAxis.title));
  return { picture, box, x, y };
}

// near returns the values of the limits that an axis must show. Limits far from the measurements
// are left out, since they would compress the rest.
function near(limits, values) {
  const [least, most] = extremes(values);
  return limits.map((l) => l.value).filter((v) => v > least / 2.5 && v < most * 2.5);
}

// verticalLimit draws a limit of x, and shades the values that miss it. For a limit beyond the axis
// it draws only the label.
function verticalLimit(f, value, label, isMax) {
  const at = f.x(value);
  if (at > f.box.right + 1 || at < f.box.left - 1) {
    const isBelow = at < f.box.left;
    f.picture.append(svg("text", { class: "limit", x: isBelow ? f.box.left + 5 : f.box.right - 5, y: f.box.bottom - 7, "text-anchor": isBelow ? "start" : "end" }, isBelow ? `← ${label}` : `${label} →`));
    return;
  }
  const isRight = at > (f.box.left + f.box.right) / 2;
  f.picture.append(
    svg("rect", { class: "beyond", x: isMax ? at : f.box.left, y: f.box.top, width: isMax ? f.box.right - at : at - f.box.left, height: f.box.bottom - f.box.top }),
    svg("line", { class: "limit", x1: at, x2: at, y1: f.box.top, y2: f.box.bottom }),
    svg("text", { class: "limit", x: at + (isRight ? -5 : 5), y: f.box.top + 11, "text-anchor": isRight ? "end" : "start" }, label));
}

// horizontalLimit draws a limit of y.
function horizontalLimit(f, value, label) {
  const at = f.y(value);
  if (at < f.box.top - 1 || at > f.box.bottom + 1) {
    const isAbove = at < f.box.top;
    f.picture.append(svg("text", { class: "limit", x: f.box.left + 5, y: isAbove ? f.box.top + 9 : f.box.bottom - 6 }, `${isAbove ? "↑" : "↓"} ${label}`));
    return;
  }
  f.picture.append(svg("line", { class: "limit", x1: f.box.left, x2: f.box.right, y1: at, y2: at }),
    svg("text", { class: "limit", x: f.box.left + 5, y: at - 5 }, label));
}

const tooltip = document.getElementById("tooltip");

function showTooltip(lines, left, top) {
  tooltip.replaceChildren(...lines.map((line, i) => html(i === 0 ? "strong" : "span", {}, line)));
  tooltip.hidden = false;
  const room = document.documentElement.clientWidth - tooltip.offsetWidth - 8;
  tooltip.style.left = `${Math.max(8, Math.min(left + 14, room)) + window.scrollX}px`;
  const below = top + 16 + tooltip.offsetHeight < window.innerHeight;
  tooltip.style.top = `${(below ? top + 16 : Math.max(8, top - 12 - tooltip.offsetHeight)) + window.scrollY}px`;
}

function hideTooltip() {
  tooltip.hidden = true;
}

// pointing shows a tooltip for the mark under a mouse, a finger or the arrow keys. A mark has its
// place (x, y, in the picture's units), its lines of text, and what the page's openMark needs.
function pointing(picture, marks, reach = 30) {
  if (marks.length === 0) return;
  const ring = svg("circle", { class: "pointed", r: 9, visibility: "hidden" });
  picture.append(ring);
  let current = -1;
  const show = (i) => {
    current = i;
    const mark = marks[i], box = picture.getBoundingClientRect(), scale = box.width / picture.viewBox.baseVal.width;
    setAttributes(ring, { cx: mark.x, cy: mark.y, visibility: "visible" });
    showTooltip(mark.lines(), box.left + mark.x * scale, box.top + mark.y * scale);
  };
  const hide = () => {
    current = -1;
    ring.setAttribute("visibility", "hidden");
    hideTooltip();
  };
  const open = () => { if (current >= 0) openMark(marks[current]); };
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect(), scale = picture.viewBox.baseVal.width / box.width;
    const nearest = nearestMark(marks, (event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
    if (nearest.distance <= reach) show(nearest.index);
    else hide();
  });
  picture.addEventListener("pointerleave", hide);
  picture.addEventListener("blur", hide);
  picture.addEventListener("click", open);
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (step) show((Math.max(current, step > 0 ? -1 : 0) + step + marks.length) % marks.length);
    else if (event.key === "Escape") hide();
    else if (event.key === "Enter") open();
    else return;
    event.preventDefault();
  });
}

function nearestMark(marks, x, y) {
  const nearest = { index: -1, distance: Infinity };
  marks.forEach((mark, index) => {
    const distance = Math.hypot(mark.x - x, mark.y - y);
    if (distance < nearest.distance) Object.assign(nearest, { index, distance });
  });
  return nearest;
}

// legend explains a chart's colours and shapes: pairs of a mark and a text.
function legend(figure, entries) {
  figure.querySelector(".legend").replaceChildren(...entries.map(([mark, label]) => {
    return html("li", {}, svg("svg", { width: 30, height: 14, viewBox: "0 0 30 14", "aria-hidden": "true" }, ...[mark].flat()), label);
  }));
}
