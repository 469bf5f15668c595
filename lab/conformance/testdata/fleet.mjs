// Checks the page of a fleet in a real browser, against ranking.json beside it.
// usage: node fleet.mjs BROWSER_FOLDER PAGE_FOLDER ordinary|hostile
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { launch } from "./page.mjs";

const [browserFolder, folder, kind] = process.argv.slice(2);
const ranking = JSON.parse(readFileSync(path.join(folder, "ranking.json"), "utf8"));
const { browser, address, open, check, checkTheme, checkWidth, takePictures, finish } = await launch(browserFolder, path.join(folder, "report.html"));
const pictures = process.env.TUNER_PICTURES;

const model = ranking.models[0], answered = model.types.filter((t) => t.state === "answer"), rows = model.rows.filter((r) => r.state === "answer");
const drawn = (page, what) => page.locator(`#chart-1 .plot ${what}`).count();

async function checkOrdinary(page) {
  await check("each type and each machine has a mark, whose shape tells what it is", async () => {
    assert.equal(await drawn(page, ".mark.look-tied"), answered.filter((t) => !t.to_best || t.tied).length);
    assert.equal(await drawn(page, ".mark.look-dearer"), answered.filter((t) => t.to_best && !t.tied).length);
    assert.equal(await drawn(page, ".mark.look-machine"), rows.filter((r) => r.disturbed <= 0.05).length);
    assert.equal(await drawn(page, ".mark.look-disturbed"), rows.filter((r) => r.disturbed > 0.05).length);
    assert.equal(await drawn(page, ".whisker"), answered.length);
    assert.equal(await drawn(page, ".next"), model.by_cost ? answered.length : 0);
  });
  await check("nothing is drawn outside of its picture", async () => {
    const picture = await page.locator("#chart-1 .plot svg").boundingBox();
    for (const mark of await page.locator("#chart-1 .plot :is(.mark, .whisker, .next, .row)").all()) {
      const box = await mark.boundingBox();
      assert.ok(box.x >= picture.x - 1 && box.x + box.width <= picture.x + picture.width + 1 && box.y >= picture.y && box.y + box.height <= picture.y + picture.height, JSON.stringify(box));
    }
  });
  await check("marks are reached with the keyboard, and tell their figures", async () => {
    const picture = page.locator("#chart-1 .plot svg"), tooltip = page.locator("#tooltip");
    await picture.focus();
    await page.keyboard.press("ArrowRight");
    assert.ok((await tooltip.textContent()).includes(answered[0].machine));
    await page.keyboard.press("ArrowRight");
    assert.match(await tooltip.textContent(), /node-00.*its own best.*disturbed/);
    await page.keyboard.press("Escape");
    assert.ok(await tooltip.isHidden());
  });
  await check("the tables have all types and all campaigns", async () => {
    const counts = await page.locator("#model-1 table").evaluateAll((tables) => tables.map((t) => t.tBodies[0].rows.length));
    assert.deepEqual(counts, [model.types.length, model.rows.length]);
  });
  await check("a model without an answer has no chart", async () => assert.ok(await page.locator("#chart-2").isHidden()));
  await checkTheme(page);
  await checkWidth();
  await check("without JavaScript the answer and the tables are there", async () => {
    const plain = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
    await plain.goto(address);
    assert.ok(await plain.locator("h1").first().isVisible());
    assert.equal(await plain.locator("#model-1 table").count(), 2);
    assert.ok(await plain.locator("#chart-1").isHidden());
    await plain.context().close();
  });
  if (pictures) await takePictures(pictures, model.by_cost ? "fleet" : "fleet-throughput");
}

async function checkHostile(page) {
  await check("names are text", async () => {
    await page.locator("#chart-1 .plot svg").focus();
    await page.keyboard.press("ArrowRight");
    assert.ok((await page.locator("#tooltip").textContent()).includes("</script>"));
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator("img").count(), 0);
    assert.equal(await page.locator("script").count(), 2);
  });
}

const page = await open();
await (kind === "hostile" ? checkHostile(page) : checkOrdinary(page));
await finish();
