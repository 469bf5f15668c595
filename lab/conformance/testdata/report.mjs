// Checks report.html in a real browser: an ordinary one against result.json beside it, its answers at every place of its sliders against
// expected.json.
// usage: node report.mjs BROWSER_FOLDER PAGE_FOLDER ordinary|ranked|hostile|baseless|undecided|large NAME
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

// move puts a slider at a position, as a reader would.
async function move(page, i, position) {
  await page.locator(`#limit-${i}`).evaluate((slider, v) => {
    slider.value = v;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }, position);
  await frame(page);
}

// data is what the page carries.
const data = (page) => page.evaluate(() => JSON.parse(document.getElementById("data").textContent));

// ownPlace is where the sliders stand at first.
const ownPlace = (d) => {
  const row = Math.max(0, d.rows.findIndex((r) => r.own));
  return [row, d.rows[row].places.findIndex((p) => p.own)];
};

// cardsOf reads the verdict's columns: of each its lines by their names, without intervals of figures.
const cardsOf = (page) => page.evaluate(() => Object.fromEntries([...document.querySelectorAll("#verdict .card")].map((card) => {
  const lines = [...card.querySelectorAll("dt")].map((dt) => [dt.textContent, (dt.nextElementSibling.firstChild || dt.nextElementSibling).textContent.trim()]);
  return [[...card.classList].find((c) => c !== "card"), Object.fromEntries(lines)];
})));

// numbersAreSound looks for attributes of pictures that are no numbers.
const unsoundNumbers = (page) => page.evaluate(() => [...document.querySelectorAll("svg *")].filter((e) => [...e.attributes].some((a) => /NaN|Infinity|undefined/.test(a.value))).map((e) => e.outerHTML));

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

// checkFronts compares Pareto set and front, in charts and table, with lists of points: "config_1 at concurrency 8".
async function checkFronts(page, { pareto, latency_front }) {
  assert.deepEqual(await pointsOf(page, "tradeoff", "Pareto set of throughput, "), pareto, "Pareto set");
  assert.equal(await page.locator("#tradeoff .plot .pareto").count(), pareto.length, "marks of the Pareto set");
  assert.deepEqual(await pointsOf(page, "tradeoff", "Pareto front of throughput"), latency_front, "front of throughput and latency");
  assert.equal(await corners(page, "tradeoff"), cornersOf(latency_front), "line of throughput and latency");
  const names = [...new Set(pareto.map((p) => p.split(" at ")[0]))].sort();
  await page.selectOption("#status", { label: "Pareto set only" });
  assert.deepEqual((await shownNames(page)).toSorted(), names, "the table's Pareto set");
  await page.selectOption("#status", { label: "All" });
}

// checkRanked moves the sliders to every place, and compares what the page shows there with what package analyze decides.
async function checkRanked(page) {
  const wanted = JSON.parse(readFileSync(path.join(folder, "expected.json"), "utf8")), hasRows = await page.locator("#limit-1").count() > 0;
  await check(`the answer at ${wanted.length} places`, async () => {
    for (const w of wanted) {
      if (hasRows) await move(page, 1, w.row);
      await move(page, 0, w.place);
      const cards = await cardsOf(page), where = `row ${w.row}, place ${w.place}`;
      assert.equal(await page.locator("html.trying").count(), w.own ? 0 : 1, `trying at ${where}`);
      assert.deepEqual(Object.keys(cards), Object.keys(w.cards).toSorted((a, b) => b.localeCompare(a)), `cards at ${where}`);
      for (const [as, lines] of Object.entries(w.cards)) {
        if (Object.keys(lines).length === 0) assert.deepEqual(cards[as], {}, `${as} at ${where}`);
        for (const [key, text] of Object.entries(lines)) assert.equal(cards[as][key], text, `${key} of ${as} at ${where}`);
      }
    }
    assert.deepEqual(await unsoundNumbers(page), []);
  });
}

// summaryOf is the answer in sentences: how it stands, and the configuration.
async function summaryOf(page) {
  const texts = await page.locator("#verdict .summary, #verdict .best").allTextContents();
  return texts.map((text) => text.trim()).join(" ");
}

async function checkOrdinary(page) {
  const known = allPoints.filter((p) => value(p, "throughput") > 0 && value(p, "latency_p99") > 0).length;
  await check("the answer comes first", async () => {
    const figure = (await page.locator("h1 .figure").textContent()).trim();
    assert.ok(result.summary.includes(figure) || result.configurations[0].default, figure);
    assert.equal(await summaryOf(page), result.summary);
    const cards = await cardsOf(page);
    assert.deepEqual(Object.keys(cards), ["recommended", "edge"]);
    assert.match(cards.recommended["limits kept"], /%/);
    assert.ok(await page.locator("#state").isVisible() && await page.locator("#trust li").count() >= 3);
    assert.ok(await page.locator("#four tbody tr").count() >= 2);
  });
  await check("every chart has its marks", async () => {
    for (const id of ["tradeoff", "throughput", "latency"]) assert.equal(await marks(page, id), known, id);
    assert.equal(await marks(page, "progress"), result.trials, "progress");
    assert.equal(await marks(page, "knobs"), result.explanation.knobs.flatMap((k) => k.others).filter((o) => o.change).length, "knobs");
    assert.equal(await page.locator("#distribution .plot .curve").count(), result.explanation.subjects.length, "distribution");
    assert.ok(await page.locator("#breakdown .plot .part-compute_infer").count() >= 2, "breakdown");
    assert.equal(await page.locator("#tradeoff .ring.best").count(), 2, "the answer is marked, and the legend says so");
    assert.ok(await page.locator("#tradeoff .plot .whisker").count() > 0, "intervals are drawn");
    assert.ok(await page.locator("#answers .plot .answer").count() > 0 && await page.locator("#answers circle.handle").count() === 1, "the answer by the limit");
    assert.deepEqual(await unsoundNumbers(page), []);
  });
  await check("trials stand at their own heights", async () => {
    const heights = (await data(page)).trials.map((t) => t[4]).filter((v) => v !== null);
    assert.ok(new Set(heights).size > heights.length / 2, `${new Set(heights).size} heights of ${heights.length} trials`);
  });
  await check("the Pareto sets are the report's", async () => {
    const pointsIn = (...metrics) => (result.pareto.find((f) => f.metrics.join() === metrics.join())?.points ?? [])
      .map((p) => `${rowName(result.configurations.find((c) => c.name === p.name))} at concurrency ${p.load.concurrency}`).sort();
    await checkFronts(page, { pareto: pointsIn("throughput", "latency_p99", "memory"), latency_front: pointsIn("throughput", "latency_p99") });
  });
  await checkTable(page);
  await checkLimits(page);
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
    assert.match(await rows(page).first().textContent(), /recommended/);
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

async function checkLimits(page) {
  const before = await page.locator("#verdict").textContent(), d = await data(page), [row, place] = ownPlace(d);
  await check("a stricter limit has another answer", async () => {
    await move(page, 0, 1);
    assert.equal(await page.locator("html.trying").count(), 1);
    const answer = d.answers[d.rows[row].places[1].answer];
    assert.equal(await page.locator("h1 .figure").textContent(), answer.figure);
    assert.equal(await page.locator("h1 .claim").textContent(), answer.claim);
    const missed = d.configurations.flatMap((c) => c.choices ?? []).filter((i) => i >= 0 && d.standings[answer.standing][i] === "0").length;
    assert.equal(await page.locator("#tradeoff .plot .mark.hollow").count(), missed);
    assert.ok(await page.locator("#trust").isHidden());
  });
  await check("the keyboard moves the limit, and the button takes it back", async () => {
    await page.click("#limits button");
    await frame(page);
    await page.locator("#limit-0").focus();
    await page.keyboard.press("ArrowLeft");
    await frame(page);
    assert.equal(await page.locator("html.trying").count(), 1);
    await page.click("#limits button");
    await frame(page);
    assert.equal(await page.locator("html.trying").count(), 0);
    assert.equal(await page.locator("#verdict").textContent(), before);
    assert.equal(Number(await page.locator("#limit-0").inputValue()), place);
  });
  await check("the handle is dragged to another limit", async () => {
    const box = await page.locator("#answers .plot svg").boundingBox(), y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width * 0.9, y);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.1, y, { steps: 4 });
    await page.mouse.up();
    await frame(page);
    assert.ok(Number(await page.locator("#limit-0").inputValue()) < 2);
    await page.click("#limits button");
    await frame(page);
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
    assert.ok(await page.locator("#limits").isHidden());
    assert.ok(await page.locator("h1").isVisible());
    if (pictures) await page.pdf({ path: path.join(pictures, `${name}.pdf`), format: "A4" });
    await page.context().close();
  });
  await check("without JavaScript the answer is there", async () => {
    const page = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
    await page.goto(address);
    assert.equal(await summaryOf(page), result.summary);
    assert.ok(await page.locator("#table tbody tr").count() > 0);
    assert.ok(await page.locator("#limits").isHidden());
    await page.context().close();
  });
}

async function checkHostile(page) {
  await check("names are text", async () => {
    await move(page, 0, 0);
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
  await check("intervals that reach below zero are cut off", async () => {
    assert.deepEqual(await unsoundNumbers(page), []);
    assert.ok(await page.locator("#latency .plot .whisker").count() > 0);
  });
}

// checkUndecided opens a page whose order is not the verdict's: it has no answer at other limits.
async function checkUndecided(page) {
  await check("the page goes without an answer at other limits", async () => {
    assert.equal(await page.locator("#curve, #verdict .card").count(), 0);
    assert.ok(await marks(page, "tradeoff") > 10 && await rows(page).count() > 5);
    assert.equal(await page.locator("#tradeoff .plot .ring.best").count(), 1);
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
    await move(page, 0, 0);
    assert.match(await page.locator("h1").textContent(), /p99 ≤/);
  });
}

const page = await open();
if (await page.locator("html.js").count() === 0) { // it would only wait for what never comes
  await check("the page's script runs", () => assert.fail("it does not"));
  await finish();
}
await { ordinary: checkOrdinary, ranked: checkRanked, hostile: checkHostile, baseless: checkBaseless, undecided: checkUndecided, large: checkLarge }[kind](page);
if (kind === "ordinary") await checkForms();
if (pictures && (kind === "ordinary" || kind === "ranked")) await takePictures(pictures, name);
await finish();
