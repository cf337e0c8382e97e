// Keeps the page current without loading it anew: the node sends what changes, and only
// that is changed, so that a selection, the focus and the scroll position stay. Where that
// stream is refused the page is asked for again and again. Without this script it reloads.
(() => {
  "use strict";
  const root = document.documentElement, live = document.getElementById("live"), lost = document.getElementById("lost");
  const lostAfter = 4000, every = 2000, again = 30000, seenWithin = Number(root.dataset.seen);
  let lines = null, version = 0, ahead = Number(root.dataset.now) - Date.now(), heard = Date.now(), source = null, polling = 0, later = 0, asking = false;

  // The words are those of the server: see format.go.
  const two = (n, big, bigName, small, smallName) => {
    const rest = Math.floor((n % big) / small);
    return Math.floor(n / big) + " " + bigName + (rest ? ` ${rest} ${smallName}` : "");
  };
  function span(ms) {
    const s = Math.floor(Math.max(ms, 0) / 1000);
        if (s < 60) return s + " s";
    if (s < 3600) return two(s, 60, "min", 1, "s");
    if (s < 172800) return two(s, 3600, "h", 60, "min");
    return two(s, 86400, "d", 3600, "h");
  }
  function near(ms) {
    if (ms > -1000 && ms <= 0) return "just now";
    if (ms > 0 && ms < 1000) return "in a moment";
    return ms < 0 ? span(-ms) + " ago" : "in " + span(ms);
  }
  const utc = (ms) => new Date(ms).toISOString().slice(11, 19) + " UTC";
  const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };

  // Time goes on by the node's clock, also while nothing is heard: a lease ends.
  function tick(within) {
    const now = Date.now() + ahead;
    for (const e of within.querySelectorAll("[data-tick]")) {
      const ms = Number(e.dataset.at) - now;
      switch (e.dataset.tick) {
        case "near": put(e, near(ms)); break;
        case "seen": put(e, ms <= 0 && ms >= -seenWithin ? "within " + span(seenWithin) : near(ms)); break;
        case "next": put(e, ms < 0 ? "due" : near(ms)); break;
        case "held": put(e, span(-ms)); break;
        case "clock": put(e, utc(now)); break;
      }
    }
    for (const e of within.querySelectorAll("[data-until]")) {
      const ttl = Number(e.dataset.ttl), left = Math.min(Math.max(Number(e.dataset.until) - now, 0), ttl);
      e.querySelector("progress").value = left;
      put(e.querySelector("b"), left < 10000 ? (left / 1000).toFixed(1).replace(".0", "") + " s" : span(left));
      e.className = "lease " + (left * 6 < ttl ? "bad" : left * 5 < ttl * 2 ? "warn" : "good");
    }
  }

  function morph(old, fresh) {
    if (old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const have = [...old.childNodes], want = [...fresh.childNodes];
    have.forEach((child, i) => (want[i] ? morph(child, want[i]) : child.remove()));
    old.append(...want.slice(have.length));
  }

  function show(html) {
    const output = live.querySelector("pre.output");
    const follow = output && output.scrollTop + output.clientHeight > output.scrollHeight - 8;
    const fresh = new DOMParser().parseFromString(`<div id="live">${html}</div>`, "text/html").getElementById("live");
    tick(fresh);
    morph(live, fresh);
    document.title = document.getElementById("announce").dataset.title;
    const now = live.querySelector("pre.output");
    if (now && (follow || !output)) now.scrollTop = now.scrollHeight;
  }

  function hear(clock) {
    if (clock) ahead = clock - Date.now();
    heard = Date.now();
    lost.hidden = true;
    if (root.classList.contains("stale") && lines) show(lines.join("\n"));
    root.classList.remove("stale");
  }

  function silence() {
    if (Date.now() - heard < lostAfter || document.hidden) return;
    if (lost.hidden) {
      lost.textContent = `Connection to ${root.dataset.node} lost. What you see is from ${utc(heard + ahead)}. Trying again … The page of another node shows the state now.`;
      lost.hidden = false;
      root.classList.add("stale");
      document.title = `Connection to ${root.dataset.node} lost · baton`;
      for (const n of live.querySelectorAll("h1")[0]?.childNodes || []) if (n.data?.startsWith(" leads")) n.data = " led when last heard of ";
    }
    if (!polling) resort(); // what is between may hold a stream back, and yet let a page through
  }

  // Asks for the page again and again until the stream is there.
  function resort() {
    if (!polling) polling = setInterval(poll, every);
    clearTimeout(later);
    later = setTimeout(listen, again);
    poll();
  }

  async function poll() {
    if (asking || document.hidden) return;
    asking = true;
    try {
      const reply = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(lostAfter) });
      const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
      const build = fresh.documentElement.dataset.build;
      if (!build) throw new Error(`status ${reply.status}`);
      if (build !== root.dataset.build) return location.reload(); // the node was upgraded
      document.title = fresh.title;
      lines = null; // the stream begins anew
      morph(live, fresh.getElementById("live"));
      hear(Number(fresh.documentElement.dataset.now));
    } catch {
      // silence() shows it
    } finally {
      asking = false;
    }
  }

  function listen() {
    if (source) source.close();
    source = new EventSource("/live?page=" + encodeURIComponent(location.pathname + location.search) + "&build=" + encodeURIComponent(root.dataset.build));
    const take = (event) => {
      const news = JSON.parse(event.data);
      if (news.full !== undefined) lines = news.full.split("\n");
      else if (lines && news.from === version) for (const { at, cut, text } of news.patch) lines.splice(at, cut, ...text);
      else return listen();
      version = news.to;
      show(lines.join("\n"));
    };
    source.addEventListener("full", take);
    source.addEventListener("patch", take);
    source.addEventListener("upgraded", () => location.reload());
    source.addEventListener("beat", (event) => {
      clearInterval(polling);
      clearTimeout(later);
      polling = 0;
      hear(Number(event.data));
    });
    // A browser does not try again where the stream was refused: the page is polled.
    source.onerror = (event) => { if (event.target === source && source.readyState === EventSource.CLOSED) resort(); };
  }

  if (!("live" in root.dataset)) return;
  tick(document);
  setInterval(() => { tick(document); silence(); }, 250);
  addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source?.close();
      source = null;
      return;
    }
    if (Date.now() - heard > lostAfter) root.classList.add("stale"); // until the node has sent the present state
    heard = Date.now();
    if (!source) listen();
  });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  listen();
})();
