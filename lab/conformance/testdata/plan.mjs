// Checks plan.html in a real browser.
// usage: node plan.mjs BROWSER_FOLDER PAGE_FOLDER ordinary|unpriced|hostile
import assert from "node:assert/strict";
import path from "node:path";
import { frame, launch } from "./page.mjs";

const [browserFolder, folder, kind] = process.argv.slice(2);
const { browser, address, open, check, checkTheme, checkWidth, takePictures, finish } = await launch(browserFolder, path.join(folder, "plan.html"));
const pictures = process.env.TUNER_PICTURES;

const page = await open();
const data = await page.evaluate(() => JSON.parse(document.getElementById("data").textContent));
const found = () => page.locator("#found").textContent();
const rows = () => page.locator("#types tr").evaluateAll((list) => list.map((tr) => [...tr.cells].map((c) => c.textContent)));
const set = async (name, value) => {
  await page.locator(`input[name=${name}]`).fill(String(value));
  await frame(page);
};

// expected returns the answers of all types at places of the axes.
const expected = (rate, limit, startup) => data.answers.map((list) => list[(rate * data.limits.length + limit) * data.startups.length + startup]);
const middle = () => [data.rates, data.limits, data.startups].map((axis) => Math.floor(axis.length / 2));

async function checkAnswers() {
  await check("the page begins with the plan's own question", async () => {
    const places = await Promise.all(["rate", "limit", "startup"].map((name) => page.locator(`input[name=${name}]`).inputValue()));
    assert.deepEqual(places.map(Number).slice(1), middle().slice(1));
    const answer = (await page.locator("#answer p").first().textContent()).match(/(\d+) to (\d+) replicas of (\S+) on (\S+):/);
    assert.match(await found(), new RegExp(`^${answer[1]} to ${answer[2]} × ${answer[3]} on ${answer[4]}: `));
  });
  await check("each place of the sliders has its answers", async () => {
    for (let rate = 0; rate < data.rates.length; rate++) {
      for (let limit = 0; limit < data.limits.length; limit++) {
        for (let startup = 0; startup < data.startups.length; startup++) {
          await set("rate", rate);
          await set("limit", limit);
          await set("startup", startup);
          const answers = expected(rate, limit, startup), got = await rows();
          assert.equal(got.length, data.types.length);
          answers.forEach((a, i) => {
            assert.equal(got[i][0], data.types[i]);
            assert.equal(got[i][1], a.Satisfied ? a.Configuration : `${a.Configuration} (misses the limit)`);
            assert.equal(got[i][2], a.Min === a.Max ? `${a.Min}` : `${a.Min}–${a.Max}`);
          });
          const kept = answers.filter((a) => a.Satisfied).length;
          assert.equal(await page.locator("#types tr.chosen").count(), kept > 0 ? 1 : 0);
          if (kept === 0) assert.match(await found(), /No fleet within the bounds/);
        }
      }
    }
  });
  await check("the sliders say their values, and the keyboard moves them", async () => {
    await set("rate", 0);
    assert.equal(await page.locator("output[for=rate]").textContent(), data.rates[0]);
    await page.locator("input[name=rate]").focus();
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.locator("output[for=rate]").textContent(), data.rates[1]);
  });
  await check("every control has a name", async () => {
    for (const input of await page.locator("#what-if input").all()) {
      assert.ok((await input.evaluate((i) => i.labels[0]?.textContent.trim() ?? "")).length > 0);
    }
  });
}

async function checkPrices() {
  await check("a price moves the answer to the other type", async () => {
    const [, limit, startup] = middle();
    await set("rate", Math.floor(data.rates.length / 2));
    await set("limit", limit);
    await set("startup", startup);
    for (const [cheap, dear] of [[0, 1], [1, 0]]) {
      await page.locator(`input.price[data-type="${cheap}"]`).fill("0.1");
      await page.locator(`input.price[data-type="${dear}"]`).fill("10");
      assert.ok((await found()).includes(` on ${data.types[cheap]}: cost `), await found());
      assert.equal(await page.locator("#types tr.chosen td").first().textContent(), data.types[cheap]);
    }
    await page.locator("input.price").first().fill("");
    assert.match(await found(), /replica hours a day\.$/);
  });
}

async function checkForms() {
  await checkTheme(page);
  await checkWidth();
  await check("printed it has the answer and the tables", async () => {
    const printed = await open();
    await printed.emulateMedia({ media: "print" });
    assert.ok(await printed.locator("h1").isVisible());
    assert.ok(await printed.locator("#tables table").first().isVisible());
    await printed.context().close();
  });
  await check("without JavaScript the answer and the tables are there", async () => {
    const plain = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
    await plain.goto(address);
    assert.ok(await plain.locator("h1").isVisible());
    assert.ok(await plain.locator("#tables table").first().isVisible());
    assert.ok(await plain.locator("#what-if").isHidden());
    await plain.context().close();
  });
}

if (kind === "hostile") {
  await check("names are text", async () => {
    assert.ok((await found()).includes("</script>"));
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator("img").count(), 0);
  });
} else {
  await checkAnswers();
  if (kind === "ordinary") await checkPrices();
  await checkForms();
  if (pictures) await takePictures(pictures, `plan-${kind}`);
}
await finish();
