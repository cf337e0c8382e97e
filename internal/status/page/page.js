// Keeps the page current without loading it anew: the node sends what changes, and only
// that is changed, so that a selection, the focus and the scroll position stay. Where that
// stream is refused the page is asked for again and again. Without this script it reloads.
(() => {
  "use strict";
  const root = document.documentElement, live = document.getElementById("live"), lost = document.getElementById("lost");
  const lostAfter = 4000, every = 2000, again = 30000, seenWithin = Number(root.dataset.seen);
  let lines = null, version = 0, ahead = Number(root.dataset.now) - Date.now(), heard = Date.now(), source = null, polling = 0, later = 0, asking = false, copied = "", copiedUntil = 0;

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

  // Times are those of the reader's clock, with its offset from UTC, unless UTC is asked for. The node writes UTC, which stays
  // where this does not run.
  const stamp = /(?:\d{1,2} [A-Z][a-z]{2} (?:\d{4} )?)?\d\d:\d\d(:\d\d)? (?:UTC|[+-]\d\d:\d\d)/;
  const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const abroad = [0, 6].some((month) => new Date(new Date().getFullYear(), month).getTimezoneOffset() !== 0);
  let local = abroad && remembered() !== "utc", day = "";

  function remembered() {
    try { return localStorage.getItem("baton-times"); } catch { return null; } // a browser may forbid it
  }
  function remember(times) {
    try { localStorage.setItem("baton-times", times); } catch { /* it holds for this page */ }
  }
  const pad = (n) => String(Math.floor(n)).padStart(2, "0");
  const minutes = (ms) => (local ? -new Date(ms).getTimezoneOffset() : 0);
  const wall = (ms) => new Date(ms + minutes(ms) * 60000); // has in UTC what is to be shown
  const date = (d) => `${d.getUTCDate()} ${months[d.getUTCMonth()]}`;
  function zone(ms) {
    const m = minutes(ms);
    return local ? `${m < 0 ? "-" : "+"}${pad(Math.abs(m) / 60)}:${pad(Math.abs(m) % 60)}` : "UTC";
  }
  function clock(ms, seconds) {
    const d = wall(ms), today = wall(Date.now() + ahead), year = d.getUTCFullYear();
    const before = year !== today.getUTCFullYear() ? `${date(d)} ${year} ` : date(d) !== date(today) ? date(d) + " " : "";
    return before + d.toISOString().slice(11, seconds ? 19 : 16) + " " + zone(ms);
  }
  function axis(ms, form) {
    const d = wall(ms), time = d.toISOString().slice(11, form === "seconds" ? 19 : 16);
    const other = zone(ms) === zone(Date.now() + ahead) ? "" : " " + zone(ms); // the clocks were changed since
    if (form === "day" && time === "00:00") return date(d);
    return (form === "day" || form === "both" ? date(d) + " " : "") + time + other;
  }
  function zones(within) {
    for (const e of within.querySelectorAll("[data-clock]")) {
      const ms = Number(e.dataset.clock), said = (text) => text.replace(stamp, (_, seconds) => clock(ms, seconds));
      if (e.dataset.axis) put(e, axis(ms, e.dataset.axis));
      else if (!e.firstElementChild) put(e, said(e.textContent));
      const label = e.getAttribute("aria-label");
      if (label) e.setAttribute("aria-label", said(label));
    }
    for (const e of within.querySelectorAll("[data-zone]")) put(e, zone(Date.now() + ahead));
    for (const e of within.querySelectorAll("#times")) put(e, local ? "Show UTC" : "Show local time");
  }
  function dress(within) {
    tick(within);
    zones(within);
  }
  function choose(times) {
    local = abroad && times !== "utc";
    dress(document);
  }
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
        case "clock": put(e, clock(now, true)); break;
      }
    }
    const isDone = Date.now() < copiedUntil;
    for (const e of within.querySelectorAll(".copy")) e.classList.toggle("done", isDone && e.dataset.copy === copied);
    if (!isDone) put(document.getElementById("said"), "");
    for (const e of within.querySelectorAll("[data-until]")) {
      const ttl = Number(e.dataset.ttl), left = Math.min(Math.max(Number(e.dataset.until) - now, 0), ttl);
      e.querySelector("progress").value = left;
      put(e.querySelector("b"), left < 10000 ? (left / 1000).toFixed(1).replace(".0", "") + " s" : span(left));
      e.className = "lease " + (left * 6 < ttl ? "bad" : left * 5 < ttl * 2 ? "warn" : "good");
    }
  }

  // By plain http a browser gives pages no clipboard: there a selection is copied.
  async function copy(button) {
    const text = button.dataset.copy;
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      done = copySelection(button, text);
    }
    copied = done ? text : "";
    copiedUntil = Date.now() + 2000;
    put(document.getElementById("said"), done ? `Copied: ${text}` : `Not copied: ${text} is selected`);
    if (!done) getSelection().selectAllChildren(button.previousElementSibling);
    tick(document);
  }
  function copySelection(button, text) {
    const box = document.createElement("textarea");
    box.className = "unseen";
    box.readOnly = true;
    box.value = text;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    button.focus({ preventScroll: true });
    return done;
  }

  function morph(old, fresh) {
    if (old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    let at = old.firstChild;
    for (const want of [...fresh.childNodes]) {
      let same = at;
      while (same && !isSame(same, want)) same = want.nodeType === Node.ELEMENT_NODE ? same.nextSibling : null;
      if (!same) {
        old.insertBefore(want, at);
        continue;
      }
      while (at !== same) at = drop(at);
      at = at.nextSibling;
      morph(same, want);
    }
    while (at) at = drop(at);
  }
  // What is the same thing is changed and not replaced, also where something has come or gone before it.
  function isSame(a, b) {
    if (a.nodeName !== b.nodeName) return false;
    return a.nodeType !== Node.ELEMENT_NODE || (a.id === b.id && a.classList[0] === b.classList[0] && a.getAttribute("aria-label") === b.getAttribute("aria-label"));
  }
  function drop(node) {
    const next = node.nextSibling;
    node.remove();
    return next;
  }

  function show(html) {
    const output = live.querySelector("pre.output");
    const follow = output && output.scrollTop + output.clientHeight > output.scrollHeight - 8;
    const fresh = new DOMParser().parseFromString(`<div id="live">${html}</div>`, "text/html").getElementById("live");
    dress(fresh);
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
      lost.textContent = `Connection to ${root.dataset.node} lost. What you see is from ${clock(heard + ahead, true)}. Trying again … The page of another node shows the state now.`;
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
      const reply = await fetch(location.href, { cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(lostAfter) });
      if (reply.type === "opaqueredirect") return location.reload(); // a proxy wants the browser to sign in again
      const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
      const build = fresh.documentElement.dataset.build;
      if (!build) throw new Error(`status ${reply.status}`);
      if (build !== root.dataset.build) return location.reload(); // the node was upgraded
      document.title = fresh.title;
      lines = null; // the stream begins anew
      dress(fresh);
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
    source = new EventSource(root.dataset.root + "live?page=" + encodeURIComponent(root.dataset.page) + "&build=" + encodeURIComponent(root.dataset.build));
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

  root.classList.add("js");
  root.classList.toggle("abroad", abroad);
  dress(document);
  addEventListener("storage", (event) => { if (event.key === "baton-times") choose(event.newValue); });
  addEventListener("click", (event) => {
    const button = event.target.closest("#times, .copy");
    if (button?.id === "times") {
      remember(local ? "utc" : "local");
      choose(local ? "utc" : "local");
    } else if (button) copy(button);
  });

  if (!("live" in root.dataset)) return;
  setInterval(() => {
    const today = date(wall(Date.now() + ahead));
    if (today === day) tick(document);
    else dress(document); // times of yesterday have their date from now on
    day = today;
    silence();
  }, 250);
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
