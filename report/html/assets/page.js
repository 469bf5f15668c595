// Puts the parts together.

document.documentElement.classList.add("js");

// copyText copies, also where the page may not use the clipboard: then the text is marked for the reader to copy.
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
addChart("tradeoff", throughputAgainst(latencyMetric, "latency", true));
addChart("memory", throughputAgainst(memoryMetric, "memory", false)); // which hardly depends on the load
addChart("knobs", knobs);
addChart("throughput", againstLoad(throughputMetric, false));
addChart("latency", againstLoad(latencyMetric, true));
addChart("breakdown", breakdown);
addChart("distribution", distribution);
addChart("progress", progress);
drawers.push(drawVerdict, drawTiles, drawGain);

let ranking = ownRanking(), isDue = false;

// redraw draws all parts within the present limits, once before the next picture however many changes there were.
function redraw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    const constraints = constraintsNow();
    ranking = constraints === raw.constraints ? ownRanking() : rankWithin(constraints);
    hideTooltip();
    for (const draw of drawers) draw(ranking);
  });
}

for (const draw of drawers) draw(ranking);
buildWhatIf(redraw);
onWidth(document.getElementById("gain"), () => drawGain(ranking));

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
    return name; // a link that was cut
  }
}

addEventListener("hashchange", followHash);
followHash();
