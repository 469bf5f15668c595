// Checks the page of a campaign, a gate or a sweep that runs, and that it becomes the report.
// usage: node watch.mjs BROWSER_FOLDER ADDRESS campaign|gate|sweep
import assert from "node:assert/strict";
import http from "node:http";
import path from "node:path";
import { frame, launch } from "./page.mjs";

const [browserFolder, watched, kind] = process.argv.slice(2);
const { address, open, check, checkTheme, finish } = await launch(browserFolder, watched);
const pictures = process.env.TUNER_PICTURES;

// What the page says while it runs, and what it is at the end.
const { answer, tip, head, title, end } = {
  campaign: { answer: /infer\/s \[.*kept: /, tip: /concurrency \d+.*infer\/s, p99/, head: "Trial · time", title: /tuning result$/, end: "#verdict .figure" },
  gate: { answer: /^throughput: /, tip: /^pair [\d.]+ infer\/s(candidate|baseline)$/, head: "Pair · time", title: /^minilm: (pass|inconclusive|fail)/, end: "[id=throughput] .plot svg" },
  sweep: { answer: /than the default|over the default|was compared/, tip: /[mµ]sa window$/, head: "Window · time", title: /^ortsweep minilm for latency$/, end: "pre" },
}[kind];

// ask sends a request as no browser would, and returns its status.
const ask = (change, headers = {}, method = "GET") => new Promise((done, fail) => {
  const url = new URL(address);
  change(url);
  http.request(url, { headers, method }, (r) => { r.resume(); done(r.statusCode); }).on("error", fail).end();
});
const same = () => {};

const marks = (page) => page.locator("#points .plot .mark").count();

// awaitMarks waits for a number of measurements on the page.
const awaitMarks = (page, n) => page.waitForFunction((least) => document.querySelectorAll("#points .plot .mark").length >= least, n, { timeout: 120_000 });

await check("who does not know the token is refused", async () => {
  for (const path of ["/", "/events"]) {
    assert.equal(await ask((url) => { url.pathname = path; url.search = ""; }), 403, `${path} without a token`);
    assert.equal(await ask((url) => { url.pathname = path; url.searchParams.set("token", "A".repeat(26)); }), 403, `${path} with a wrong token`);
    assert.equal(await ask((url) => { url.pathname = path; }, { Host: "rebound.example" }), 403, `${path} of another Host`);
    assert.equal(await ask((url) => { url.pathname = path; }, { Origin: "http://foreign.example" }), 403, `${path} of another Origin`);
  }
  assert.equal(await ask(same), 200);
});
await check("the page is read-only", async () => {
  assert.equal(await ask((url) => { url.pathname = "/press"; }, { Origin: new URL(address).origin }, "POST"), 403);
});

const page = await open({ viewport: { width: 1280, height: 900 } });
await check("points appear while the campaign runs", async () => {
  await awaitMarks(page, 1);
  const first = await marks(page);
  await awaitMarks(page, first + 2);
  assert.match(await page.locator("#clock").textContent(), /^\d.*about .* left$/);
  assert.match(await page.locator("#verdict").textContent(), answer);
  assert.equal(await page.locator("#recent thead th").first().textContent(), head);
  assert.ok(await page.locator("#recent tbody tr").count() >= 2);
});
await check("a mark tells its figures", async () => {
  await page.locator("#points .plot svg").focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator("#tooltip").textContent(), tip);
  await page.keyboard.press("Escape");
});
await check("every number of a picture is one", async () => {
  const unsound = await page.evaluate(() => [...document.querySelectorAll("svg *")].filter((e) => [...e.attributes].some((a) => /NaN|Infinity|undefined/.test(a.value))).map((e) => e.outerHTML));
  assert.deepEqual(unsound, []);
});
await checkTheme(page);
for (const [width, height] of [[1280, 900], [400, 850]]) {
  for (const colorScheme of ["light", "dark"]) {
    await check(`the page fits ${width} pixels, ${colorScheme}`, async () => {
      const other = await open({ viewport: { width, height }, colorScheme });
      await awaitMarks(other, 1);
      await frame(other);
      const wide = await other.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${wide} pixels`);
      if (pictures) await other.screenshot({ path: path.join(pictures, `watch-${kind}-${width}-${colorScheme}.png`), fullPage: true });
      await other.context().close();
    });
  }
}
await check("the end turns the page into the report", async () => {
  await page.waitForFunction((wanted) => new RegExp(wanted).test(document.title), title.source, { timeout: 240_000 });
  await frame(page);
  assert.equal(page.url(), address);
  assert.match(await page.locator(end).textContent(), /\S/);
  if (kind === "campaign") assert.ok(await page.locator("#tradeoff .plot .mark").count() > 1);
  if (pictures) await page.screenshot({ path: path.join(pictures, `watch-${kind}-end.png`) });
});
await checkTheme(page); // of the report
await finish();
