// What the checks of all pages have in common: a page is opened from disk in a real browser, and must neither complain nor ask for anything.
// One that is served, at an address in place of a file, may ask its own server.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

// frame waits until what is due has been drawn.
export const frame = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

// launch starts the browser that lab/scripts/browser.sh installed, for the checks of one file.
export async function launch(browserFolder, file) {
  const { chromium } = createRequire(path.join(browserFolder, "package.json"))("playwright-core");
  const browser = await chromium.launch({ executablePath: path.join(browserFolder, "chromium"), args: ["--no-sandbox"] });
  const isServed = file.startsWith("http:"), address = isServed ? file : pathToFileURL(file).href;
  const mayAsk = (url) => (isServed ? new URL(url).origin === new URL(address).origin : url.split("#")[0] === address);
  const problems = []; // errors of the page, and requests that it made
  let failed = 0;

  // open opens the page in a window of its own.
  async function open(options = {}, hash = "") {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    page.on("console", (m) => { if (["error", "warning"].includes(m.type())) problems.push(`console: ${m.text()}`); });
    page.on("pageerror", (e) => problems.push(`error: ${e.stack}`));
    page.on("dialog", (d) => { problems.push(`dialog: ${d.message()}`); d.dismiss(); });
    page.on("request", (r) => { if (!mayAsk(r.url()) && !/^(data|blob):/.test(r.url())) problems.push(`request: ${r.url()}`); });
    await page.goto(address + hash);
    await frame(page);
    return page;
  }

  async function check(what, body) {
    try {
      await body();
      console.log(`ok    ${what}`);
    } catch (e) {
      failed++;
      console.log(`FAIL  ${what}: ${e.message}`);
    }
  }

  // checkTheme switches between light and dark, and back.
  async function checkTheme(page) {
    await check("the theme can be switched", async () => {
      const color = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
      const before = await color();
      await page.click("#theme");
      assert.notEqual(await color(), before);
      await page.click("#theme");
      assert.equal(await color(), before);
    });
  }

  // checkWidth opens the page on a telephone.
  async function checkWidth() {
    await check("nothing is wider than a telephone", async () => {
      const page = await open({ viewport: { width: 390, height: 844 } });
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= 390, `${width} pixels`);
      await page.context().close();
    });
  }

  // takePictures makes screenshots in a folder, wide and narrow, light and dark.
  async function takePictures(folder, name) {
    for (const [width, height] of [[1440, 900], [390, 844]]) {
      for (const colorScheme of ["light", "dark"]) {
        const page = await open({ viewport: { width, height }, colorScheme });
        await page.screenshot({ path: path.join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
        await page.context().close();
      }
    }
  }

  // finish ends the program, with exit status 1 after a check that failed.
  async function finish() {
    await check("no errors, no requests", async () => assert.deepEqual(problems, []));
    await browser.close();
    process.exit(failed > 0 ? 1 : 0);
  }

  return { browser, address, open, check, checkTheme, checkWidth, takePictures, finish };
}
