// Checks trend.html in a real browser, against history.jsonl beside it.
// usage: node trend.mjs BROWSER_FOLDER PAGE_FOLDER ordinary|hostile
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { launch } from "./page.mjs";

const [browserFolder, folder, kind] = process.argv.slice(2);
const history = readFileSync(path.join(folder, "history.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
const { browser, address, open, check, checkTheme, checkWidth, takePictures, finish } = await launch(browserFolder, path.join(folder, "trend.html"));
const pictures = process.env.TUNER_PICTURES;

const metrics = ["throughput", "latency_p99", "memory"];
const drawn = (page, metric, what) => page.locator(`[id="${metric}"] .plot ${what}`).count();

async function checkOrdinary(page) {
  await check("every metric has a mark for each gate, whose shape tells the verdict", async () => {
    for (const metric of metrics) {
      const lines = history.filter((l) => l.metrics[metric]), verdictOf = (l) => l.metrics[metric].verdict ?? l.verdict;
      assert.equal(await drawn(page, metric, ".mark"), lines.length, metric);
      const shapes = new Map();
      for (const verdict of ["pass", "fail", "inconclusive"]) {
        const count = lines.filter((l) => verdictOf(l) === verdict).length;
        assert.equal(await drawn(page, metric, `.mark.look-${verdict}`), count, `${metric}, ${verdict}`);
        if (count > 0) shapes.set(verdict, (await page.locator(`[id="${metric}"] .plot .mark.look-${verdict}`).first().getAttribute("d")).replaceAll(/[\d.]+/g, ""));
      }
      assert.equal(new Set(shapes.values()).size, shapes.size, `${metric}: two verdicts have one shape`);
      const latest = history.at(-1).machine_fingerprint;
      assert.equal(await drawn(page, metric, ".mark.hollow"), lines.filter((l) => l.machine_fingerprint !== latest).length, metric);
    }
  });
  await check("intervals, baselines, margins and limits are drawn", async () => {
    for (const metric of metrics) {
      const figures = history.map((l) => l.metrics[metric]).filter(Boolean), known = (...fields) => figures.filter((f) => fields.every((k) => f[k] !== undefined)).length;
      assert.equal(await drawn(page, metric, ".whisker"), Math.max(known("lo", "hi"), known("candidate_lo", "candidate_hi")), metric);
      assert.equal(await drawn(page, metric, ".baseline"), known("baseline"), metric);
      assert.equal(await drawn(page, metric, ".tolerated"), known("baseline", "margin"), metric);
      assert.equal(await drawn(page, metric, "text.limit"), known("max") > 0 ? 1 : 0, metric);
    }
  });
  await check("nothing is drawn outside of its picture", async () => {
    for (const metric of metrics) {
      const picture = await page.locator(`[id="${metric}"] .plot svg`).boundingBox();
      for (const mark of await page.locator(`[id="${metric}"] .plot :is(.mark, .whisker, .baseline, .tolerated)`).all()) {
        const box = await mark.boundingBox();
        assert.ok(box.x >= picture.x && box.y >= picture.y - 8 && box.y + box.height <= picture.y + picture.height, `${metric}: ${JSON.stringify(box)}`);
      }
    }
  });
  await check("revisions and days stand at the axis, those of the latest among them", async () => {
    const labels = await page.locator("[id=throughput] .plot text.tick").allTextContents(), latest = history.at(-1);
    assert.ok(labels.includes(latest.revision.slice(0, 8)), labels.join(" "));
    assert.ok(labels.includes(latest.time.slice(0, 10)), labels.join(" "));
  });
  await check("the table has every gate, the latest first", async () => {
    const ids = await page.locator("#gates tbody tr").evaluateAll((rows) => rows.map((r) => r.id));
    assert.deepEqual(ids, history.map((_, i) => `gate-${history.length - i}`));
  });
  await check("a chart's marks are reached with the keyboard and the mouse, and lead to the table", async () => {
    const picture = page.locator("[id=throughput] .plot svg"), tooltip = page.locator("#tooltip");
    await picture.focus();
    await page.keyboard.press("ArrowRight");
    assert.match(await tooltip.textContent(), /gate 1: .*infer\/s/);
    await page.keyboard.press("ArrowLeft");
    assert.match(await tooltip.textContent(), new RegExp(`gate ${history.length}: .*${history.at(-1).revision}.*% lower is allowed`));
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), `gate-${history.length}`);
    assert.ok(await tooltip.isHidden());
    await page.locator("[id=memory] .plot .mark").first().hover({ force: true });
    assert.match(await tooltip.textContent(), /MB/);
  });
  await checkTheme(page);
}

async function checkForms() {
  await checkWidth();
  await check("printed it has no controls, and everything else", async () => {
    const page = await open();
    await page.emulateMedia({ media: "print" });
    assert.ok(await page.locator("header").isHidden());
    for (const metric of metrics) assert.ok(await page.locator(`[id="${metric}"]`).isVisible(), metric);
    if (pictures) await page.pdf({ path: path.join(pictures, "trend.pdf"), format: "A4" });
    await page.context().close();
  });
  await check("without JavaScript the verdict and the table are there", async () => {
    const page = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
    await page.goto(address);
    assert.ok(await page.locator("h1").isVisible());
    assert.equal(await page.locator("#gates tbody tr").count(), history.length);
    assert.ok(await page.locator("#trend").isHidden());
    await page.context().close();
  });
}

async function checkHostile(page) {
  await check("names are text", async () => {
    await page.locator("[id=throughput] .plot svg").focus();
    await page.keyboard.press("ArrowRight");
    assert.ok((await page.locator("#tooltip").textContent()).includes("</script>"));
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator("img").count(), 0);
    assert.equal(await page.locator("script").count(), 2);
  });
}

const page = await open();
if (kind === "hostile") await checkHostile(page);
else {
  await checkOrdinary(page);
  await checkForms();
  if (pictures) await takePictures(pictures, "trend");
}
await finish();
