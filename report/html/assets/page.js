// Connects the parts of the page.

document.documentElement.classList.add("js");

// copyText copies a text. If the page may not use the clipboard, it selects the text, so that the
// reader can copy it.
async function copyText(text, button, shown) {
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren(shown);
    said = "Marked: press Ctrl+C";
  }
  const before = button.textContent;
  button.textContent = said;
  setTimeout(() => { button.textContent = before; }, 1500);
}

for (const button of document.querySelectorAll(".copy")) {
  const shown = button.parentElement.querySelector("pre");
  button.addEventListener("click", () => copyText(shown.textContent, button, shown));
}

document.getElementById("download").addEventListener("click", () => {
  const address = URL.createObjectURL(new Blob([dataText], { type: "application/json" }));
  html("a", { href: address, download: `${raw.model.replace(/[^\w.-]+/g, "_")}-report.json` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
});

buildTable();
addChart("answers", answers);
if (document.getElementById("why")) { // an import has no explanation
  addChart("breakdown", breakdown);
  addChart("knobs", knobs);
}
if (isScale) addChart("shares", shares);
addChart("tradeoff", isScale ? nothing : tradeoff);
addChart("throughput", isScale ? nothing : againstLoad(throughputMetric, false));
addChart("latency", isScale ? nothing : againstLoad(latencyMetric, true));
addChart("distribution", distribution);
addChart("service", service);
addChart("progress", progress);
drawers.push(drawVerdict, drawFour);

let isDue = false;

// redraw draws all parts for the sliders' position. Several calls before the next frame cause only
// one drawing.
function redraw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    const view = newView();
    hideTooltip();
    for (const draw of drawers) draw(view);
  });
}

const firstView = newView();
for (const draw of drawers) draw(firstView);
buildLimits(redraw);
drawChanges();

// A link to #config=NAME opens that configuration.
function followHash() {
  const [, name] = location.hash.match(/^#config=(.*)$/) || [];
  const config = name === undefined ? undefined : configsByName.get(decodeName(name));
  if (config) openConfig(config);
}

function decodeName(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // a link that was cut off
  }
}

addEventListener("hashchange", followHash);
followHash();
