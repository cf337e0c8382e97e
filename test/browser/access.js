// What keeps people from using the page, as a list of findings.
(() => {
  const found = [], all = (query) => [...document.querySelectorAll(query)];
  const shown = (e) => e.checkVisibility() && e.getClientRects().length > 0;
  const what = (e) => e.outerHTML.slice(0, 90);
  const named = (e) => (e.getAttribute("aria-label") || e.innerText || e.title || e.querySelector(":scope > title")?.textContent || [...(e.labels || [])].map((l) => l.innerText).join("") || "").trim();

  if (document.documentElement.lang !== "en") found.push("no language");
  if (all("h1").length !== 1) found.push(`${all("h1").length} headings of the first level`);
  for (const landmark of ["header", "main", "footer", "nav"]) if (!document.querySelector(landmark)) found.push("no " + landmark);
  for (const e of all("nav, main section")) if (!e.hasAttribute("aria-label") && !document.getElementById(e.getAttribute("aria-labelledby"))?.innerText) found.push("a part without a name: " + what(e));
  let level = 0;
  for (const e of all("h1, h2, h3, h4")) {
    const n = Number(e.tagName[1]);
    if (n > level + 1) found.push("a heading skips a level: " + what(e));
    level = n;
  }
  for (const e of all("a, button, input:not([type=hidden]), select, [role=img], progress, pre[tabindex]")) if (shown(e) && !named(e)) found.push("a control without a name: " + what(e));
  const ids = all("[id]").map((e) => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push("an id twice: " + id);
  for (const e of all("table")) if (!e.querySelector("thead th[scope=col]")) found.push("a table without headers: " + what(e));
  for (const e of all("[tabindex]")) if (e.tabIndex > 0) found.push("an order of its own: " + what(e));
  if (!document.querySelector("[aria-live=polite]")) found.push("nothing is announced");
  if (document.documentElement.scrollWidth > innerWidth) {
    const wide = all("body *").filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map(what).slice(0, 3).join(" | ");
    found.push(`${document.documentElement.scrollWidth} wide on a screen of ${innerWidth}: ${wide}`);
  }

  const parse = (text) => {
    const n = text.match(/^rgba?\(([^)]*)\)$/)?.[1].split(",").map(Number);
    return n ? [n[0], n[1], n[2], n[3] ?? 1] : null;
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const paper = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor) || [0, 0, 0, 0]);
    return layers.reduceRight((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const light = (c) => c.slice(0, 3).map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (const seen = new Set(); walker.nextNode();) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(e) || !shown(e) || e.closest("script, style, noscript, option, title, .unseen, .skip")) continue;
    seen.add(e);
    const style = getComputedStyle(e), back = paper(e), front = over(parse(style.color), back);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize), least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < least) found.push(`contrast ${contrast.toFixed(2)} of ${what(e)}`);
  }
  return found;
})();
