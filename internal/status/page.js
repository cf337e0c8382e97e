// Keeps the page current without reloading it: fetches it again every second and
// changes only what differs, so that a selection and the scroll position stay.
// Without this script the page reloads by itself.
(() => {
  "use strict";
  const every = 1000, patience = 4000;
  const root = document.documentElement;
  const lost = document.getElementById("lost");
  const node = root.dataset.node;
  let timer = 0, asking = false, seen = new Date();

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

  function connection(ok) {
    root.classList.toggle("stale", !ok);
    lost.hidden = ok;
    if (ok) seen = new Date();
    else lost.textContent = `Connection to ${node} lost. What you see is from ${seen.toLocaleTimeString()}. Trying again …`;
  }

  async function poll() {
    clearTimeout(timer);
    if (document.hidden || asking) return;
    asking = true;
    const began = performance.now();
    try {
      const reply = await fetch(location.pathname + location.search, { cache: "no-store", signal: AbortSignal.timeout(patience) });
      const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
      const build = fresh.documentElement.dataset.build;
      if (!build) throw new Error(`status ${reply.status}`);
      if (build !== root.dataset.build) return location.reload(); // the node was upgraded
      document.title = fresh.title;
      for (const id of ["announce", "head", "main"]) morph(document.getElementById(id), fresh.getElementById(id));
      connection(true);
    } catch {
      connection(false);
    } finally {
      asking = false;
      // A page of very many jobs shall not keep the browser busy with itself.
      timer = setTimeout(poll, Math.max(every, 4 * (performance.now() - began)));
    }
  }

  document.addEventListener("visibilitychange", poll);
  timer = setTimeout(poll, every);
})();
