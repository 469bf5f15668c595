// Checks report.html in a real browser: an ordinary one against result.json beside it, its rankings within limits that are tried out
// against expected.json.
// usage: node report.mjs BROWSER_FOLDER PAGE_FOLDER ordinary|ranked|hostile|baseless|large NAME
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { frame, launch } from "./page.mjs";

const [browserFolder, folder, kind, name] = process.argv.slice(2);
const result = kind === "ordinary" ? JSON.parse(readFileSync(path.join(folder, "result.json"), "utf8")) : null;
const { browser, address, open, check, checkTheme, checkWidth, takePictures, finish } = await launch(browserFolder, path.join(folder, "report.html"));
const pictures = process.env.TUNER_PICTURES;

const marks = (page, id) => page.locator(`#${id} .plot .mark`).count();
const rows = (page) => page.locator("#table tbody tr:not(.detail)");
const cells = (page, column) => page.locator(`#table tbody tr:not(.detail) td:nth-child(${column + 1})`).allTextContents();
const heads = (page) => page.locator("#table thead button").allTextContents();
const rowName = (c) => (c.default ? "default" : c.name.slice(result.model.length + 1));
const shownNames = (page) => page.locator("#table tbody td.named a").allTextContents();
const value = (p, metric) => p.values[metric]?.value;
const allPoints = (result?.configurations ?? []).flatMap((c) => c.points.map((p) => ({ ...p, config: c })));

// setLimit types a limit, in ms, into a field.
async function setLimit(page, ms) {
  await page.locator("#whatif input[type=number]").first().fill(String(ms));
  await frame(page);
}

// tableRows reads the rows of the table as it is.
const tableRows = (page) => page.evaluate(() => {
  const heads = [...document.querySelectorAll("#table thead button")].map((b) => b.textContent.replaceAll("\u200b", ""));
  const load = heads.findIndex((h) => h === "Load" || h === "Rate"), gain = heads.indexOf("× default"), ok = heads.indexOf("OK");
  return [...document.querySelectorAll("#table tbody tr:not(.detail)")].map((tr) => {
    const cell = (i) => tr.children[i].textContent.trim();
    return { rank: cell(0), name: tr.querySelector("td.named a").textContent, load: cell(load), gain: cell(gain), ok: cell(ok) };
  });
});

// pointsOf walks over a chart's marks with the keyboard, and names the points of which the tooltip says something that begins so.
const pointsOf = (page, id, beginning) => page.evaluate(([id, beginning]) => {
  const picture = document.querySelector(`#${id} .plot svg`), found = [];
  for (let i = picture.querySelectorAll(".mark").length; i > 0; i--) {
    picture.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
    const lines = [...document.getElementById("tooltip").children].map((c) => c.textContent);
    if (lines.some((l) => l.startsWith(beginning))) found.push(`${lines[0].split(": ")[0]} ${lines[1].split(",")[0]}`);
  }
  picture.dispatchEvent(new Event("blur"));
  return found.sort();
}, [id, beginning]);

// corners counts those of a front's line: one for each point, and one between two of them.
const corners = async (page, id) => ((await page.locator(`#${id} .plot .front`).getAttribute("d")).match(/[ML]/g) || []).length;
const cornersOf = (front) => Math.max(0, 2 * front.length - 1);

// checkFronts compares Pareto set and fronts, in charts and table, with lists of points: "config_1 at concurrency 8".
async function checkFronts(page, { pareto, latency_front, memory_front }) {
  for (const id of ["tradeoff", "memory"]) {
    assert.deepEqual(await pointsOf(page, id, "Pareto set of throughput, "), pareto, `Pareto set in ${id}`);
    assert.equal(await page.locator(`#${id} .plot .pareto`).count(), pareto.length, `marks of the Pareto set in ${id}`);
  }
  assert.deepEqual(await pointsOf(page, "tradeoff", "front of throughput"), latency_front, "front of throughput and latency");
  assert.deepEqual(await pointsOf(page, "memory", "front of throughput"), memory_front, "front of throughput and memory");
  assert.equal(await corners(page, "tradeoff"), cornersOf(latency_front), "line of throughput and latency");
  assert.equal(await corners(page, "memory"), cornersOf(memory_front), "line of throughput and memory");
  const names = [...new Set(pareto.map((p) => p.split(" at ")[0]))].sort();
  await page.selectOption("#status", { label: "Pareto set only" });
  assert.deepEqual((await shownNames(page)).toSorted(), names, "the table's Pareto set");
  await page.selectOption("#status", { label: "All" });
}

// checkRanked tries limits out, and compares what the page makes of them with what package analyze says.
async function checkRanked(page) {
  for (const wanted of JSON.parse(readFileSync(path.join(folder, "expected.json"), "utf8"))) {
    const limits = wanted.limits || [], what = limits.map((l) => `${l.label} ${l.text || "no limit"}`).join(", ") || "the report's own limits";
    await check(what, async () => {
      const reset = page.locator("#whatif button");
      if (await reset.isEnabled()) await reset.click();
      for (const l of limits) await page.getByLabel(l.label, { exact: true }).fill(l.text);
      await frame(page);
      assert.equal(await page.locator("html.trying").count(), limits.length > 0 ? 1 : 0, "trying");
      assert.deepEqual(await tableRows(page), wanted.rows);
      assert.equal(await marks(page, "tradeoff"), wanted.drawn, "points of one server");
      await checkFronts(page, wanted);
    });
  }
}

async function checkOrdinary(page) {
  const known = allPoints.filter((p) => value(p, "throughput") > 0 && value(p, "latency_p99") > 0).length;
  await check("the answer comes first", async () => {
    const figure = (await page.locator("h1 .figure").textContent()).trim();
    assert.ok(result.summary.startsWith(figure) || result.configurations[0].default, figure);
    assert.equal((await page.locator("#verdict .summary").textContent()).trim(), result.summary);
  });
  await check("every chart has its marks", async () => {
    for (const id of ["tradeoff", "throughput", "latency"]) assert.equal(await marks(page, id), known, id);
    assert.equal(await marks(page, "memory"), allPoints.filter((p) => value(p, "throughput") > 0 && value(p, "memory") > 0).length, "memory");
    assert.equal(await marks(page, "progress"), result.trials, "progress");
    assert.equal(await marks(page, "knobs"), result.explanation.knobs.flatMap((k) => k.others).filter((o) => o.change).length, "knobs");
    assert.equal(await page.locator("#distribution .plot .curve").count(), result.explanation.subjects.length, "distribution");
    assert.ok(await page.locator("#breakdown .plot .part-compute_infer").count() >= 2, "breakdown");
    assert.equal(await page.locator("#tradeoff .ring").count(), 2, "the best is marked, and the legend says so");
    assert.ok(await page.locator("#tradeoff .plot .whisker").count() > 0, "intervals are drawn");
  });
  await check("the Pareto sets are the report's", async () => {
    const pointsIn = (...metrics) => (result.pareto.find((f) => f.metrics.join() === metrics.join())?.points ?? [])
      .map((p) => `${rowName(result.configurations.find((c) => c.name === p.name))} at concurrency ${p.load.concurrency}`).sort();
    await checkFronts(page, {
      pareto: pointsIn("throughput", "latency_p99", "memory"), latency_front: pointsIn("throughput", "latency_p99"), memory_front: pointsIn("throughput", "memory"),
    });
  });
  await checkTable(page);
  await checkWhatIf(page);
  await checkKeys(page);
  await check("the data can be downloaded", async () => {
    const waiting = page.waitForEvent("download");
    await page.click("#download");
    const download = await waiting, data = JSON.parse(readFileSync(await download.path(), "utf8"));
    assert.equal(data.configurations.length, result.configurations.length);
    assert.match(download.suggestedFilename(), /^[\w.-]+-report\.json$/);
  });
  await checkTheme(page);
}

async function checkTable(page) {
  await check("the table has all configurations, the best first", async () => {
    assert.deepEqual(await shownNames(page), result.configurations.slice(0, 25).map(rowName));
    assert.match(await rows(page).first().textContent(), /best/);
  });
  await check("the table sorts both ways, and back", async () => {
    const before = await shownNames(page), column = (await heads(page)).findIndex((h) => h.startsWith("throughput"));
    const sorted = async () => (await cells(page, column)).filter((t) => t !== "–").map(Number.parseFloat);
    const button = page.locator("#table thead button").nth(column);
    await button.click();
    const down = await sorted();
    assert.deepEqual(down, down.toSorted((a, b) => b - a));
    await button.click();
    assert.deepEqual(await sorted(), down.toReversed());
    await button.click();
    assert.deepEqual(await shownNames(page), before);
  });
  await check("the table can be filtered", async () => {
    const text = (s) => `${s.knob}=${s.value}`, wanted = text(result.configurations.find((c) => c.settings.length > 0).settings.at(-1));
    await page.fill("#filter", wanted);
    const want = result.configurations.filter((c) => c.settings.some((s) => text(s).startsWith(wanted)));
    assert.deepEqual(await shownNames(page), want.slice(0, 25).map(rowName));
    await page.fill("#filter", "nothing has this name");
    assert.equal(await rows(page).count(), 0);
    await page.fill("#filter", "");
  });
  await check("a configuration opens with its config.pbtxt", async () => {
    const first = page.locator("#table td.named a").first();
    await first.click();
    const lines = await page.locator("#table .detail pre span:not(.removed)").allTextContents();
    assert.equal(lines.map((l) => l.slice(2)).join(""), result.configurations[0].config);
    assert.equal(await page.locator("#table .detail tbody tr").count(), result.configurations[0].points.length);
    await first.click();
    assert.equal(await page.locator("#table .detail").count(), 0);
  });
}

async function checkWhatIf(page) {
  const own = result.goal.constraints.find((c) => c.metric === "latency_p99")?.max;
  const before = await page.locator("#verdict").textContent(), order = await shownNames(page);
  await check("a stricter limit has another answer", async () => {
    const latencies = allPoints.map((p) => value(p, "latency_p99")).toSorted((a, b) => a - b);
    const limit = Number((latencies[Math.floor(latencies.length / 3)] * 1.01).toPrecision(3));
    await setLimit(page, limit * 1e3);
    assert.equal(await page.locator("html.trying").count(), 1);
    assert.match(await page.locator("h1 .claim").textContent(), /p99 ≤/);
    const most = Math.max(...allPoints.filter((p) => value(p, "latency_p99") <= limit).map((p) => value(p, "throughput")));
    const said = Number.parseFloat(await page.locator("#tiles dd strong").first().textContent());
    assert.ok(said > 0.9 * most && said < 1.001 * most, `${said} infer/s of ${most}`);
    const missed = allPoints.filter((p) => value(p, "latency_p99") > limit).length;
    assert.equal(await page.locator("#tradeoff .plot .mark.hollow").count(), missed);
  });
  await check("a limit that nothing keeps", async () => {
    await setLimit(page, 0.001);
    assert.match(await page.locator("h1").textContent(), /None\s+satisfies p99 ≤ 1 µs/);
  });
  if (own) {
    await check("about the same limit ranks as the report does", async () => {
      await setLimit(page, own * 1e3 * 1.0001);
      assert.equal(await page.locator("html.trying").count(), 1);
      assert.deepEqual((await shownNames(page)).toSorted(), order.toSorted());
      if (name === "minilm") assert.deepEqual(await shownNames(page), order); // a guided campaign's own belief is left out
    });
  }
  await check("the slider moves the limit, and the button takes it back", async () => {
    const slider = page.locator("#whatif input[type=range]").first();
    await slider.focus();
    for (let i = 0; i < 5; i++) await page.keyboard.press("ArrowLeft");
    await frame(page);
    assert.equal(await page.locator("html.trying").count(), 1);
    await page.click("#whatif button");
    await frame(page);
    assert.equal(await page.locator("html.trying").count(), 0);
    assert.equal(await page.locator("#verdict").textContent(), before);
    assert.deepEqual(await shownNames(page), order);
  });
}

async function checkKeys(page) {
  await check("a chart's marks are reached with the keyboard and the mouse", async () => {
    const picture = page.locator("#tradeoff .plot svg");
    await picture.focus();
    await page.keyboard.press("ArrowRight");
    assert.match(await page.locator("#tooltip").textContent(), /infer\/s/);
    await page.keyboard.press("Enter");
    assert.ok(await page.locator("#table .detail").count() >= 1);
    await page.evaluate(() => document.activeElement.blur());
    assert.ok(await page.locator("#tooltip").isHidden());
    await page.locator("#tradeoff .plot .mark").last().hover({ force: true });
    assert.match(await page.locator("#tooltip").textContent(), /p99 .* ms/);
  });
}

async function checkForms() {
  await checkWidth();
  await check("a link opens a configuration", async () => {
    const wanted = result.configurations.at(-1);
    const page = await open({}, `#config=${encodeURIComponent(wanted.name)}`);
    assert.match(await page.locator("#table .detail").textContent(), /config\.pbtxt/);
    await page.context().close();
  });
  await check("printed it has no controls", async () => {
    const page = await open();
    await page.emulateMedia({ media: "print" });
    assert.ok(await page.locator("#whatif").isHidden());
    assert.ok(await page.locator("h1").isVisible());
    if (pictures) await page.pdf({ path: path.join(pictures, `${name}.pdf`), format: "A4" });
    await page.context().close();
  });
  await check("without JavaScript the answer is there", async () => {
    const page = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
    await page.goto(address);
    assert.ok((await page.locator("body").textContent()).includes(result.summary));
    assert.ok(await page.locator("#table tbody tr").count() > 0);
    assert.ok(await page.locator("#whatif").isHidden());
    await page.context().close();
  });
}

async function checkHostile(page) {
  await check("names are text", async () => {
    await setLimit(page, 20);
    await page.locator("#table td.named a").first().click();
    await page.locator("#tradeoff .plot svg").focus();
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator("img").count(), 0);
    assert.equal(await page.locator("script").count(), 2);
    assert.ok((await page.locator("#tooltip").textContent()).includes("</script>"));
  });
}

// checkBaseless opens what an import without the default has: nothing is beside it.
async function checkBaseless(page) {
  await check("a configuration is opened where there is no default", async () => {
    await page.locator("#table td.named a").first().click();
    assert.equal(await page.locator("#table .detail h4").first().textContent(), "config.pbtxt");
    assert.ok(await page.locator("#table .detail pre span").count() > 0);
    assert.equal(await page.locator("#table .detail pre span.added, #table .detail pre span.removed").count(), 0);
  });
  await check("limits are tried out where there is no default", async () => {
    await setLimit(page, 1000);
    assert.match(await page.locator("#verdict").textContent(), /The default was not recorded\./);
  });
}

async function checkLarge(page) {
  await check("ten thousand configurations are thinned out, paged, sorted and filtered", async () => {
    const count = await marks(page, "tradeoff");
    assert.ok(count > 1000 && count < 2000, `${count} marks`);
    assert.match(await page.locator("#tradeoff .note").textContent(), /points of other configurations not drawn/);
    assert.equal(await rows(page).count(), 25);
    await page.locator(".pages button").last().click();
    assert.match(await page.locator(".pages span").textContent(), /^26 to 50 of 10,001 configurations$/);
    await page.fill("#filter", "config_9999");
    assert.equal(await rows(page).count(), 1);
    await page.fill("#filter", "");
    await setLimit(page, 10);
    assert.match(await page.locator("h1").textContent(), /p99 ≤ 10 ms/);
  });
}

const page = await open();
if (await page.locator("html.js").count() === 0) { // it would only wait for what never comes
  await check("the page's script runs", () => assert.fail("it does not"));
  await finish();
}
await { ordinary: checkOrdinary, ranked: checkRanked, hostile: checkHostile, baseless: checkBaseless, large: checkLarge }[kind](page);
if (kind === "ordinary") await checkForms();
if (pictures && (kind === "ordinary" || kind === "ranked")) await takePictures(pictures, name);
await finish();
