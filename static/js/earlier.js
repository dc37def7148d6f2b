/* The turns before the latest ones: loaded on the way up, kept by every sync, and drawn
 * again when they are about to be seen. */
(() => {
  const turns = document.getElementById("turns");
  const root = document.getElementById("transcript");
  const { keepPlace, drawList } = swap;
  const NEAR = { root, rootMargin: "700px 0px" };
  const PAGE = 20;
  const isTurn = (node) => node.matches(".turn");
  const numberOf = (turn) => Number(turn.dataset.turn);

  /* A sync: the latest turns as they stand. */
  function drawLatest(fresh) {
    const wanted = [...fresh.children];
    const first = wanted.find(isTurn);
    const shown = [...turns.children];
    const isLatest = (node) => isTurn(node) && numberOf(node) >= numberOf(first);
    const known = first ? shown.findIndex(isLatest) : 0;
    const from = known < 0 ? shown.length : known;
    const older = shown.slice(0, from);
    const last = older.findLast(isTurn);
    const earlier = wanted.find((node) => node.id === "earlier");
    if (last && earlier && !bridge(earlier, numberOf(last), older.at(-1))) wanted.shift();
    drawList(last ? shown.slice(from) : shown, wanted, null);
    if (last) older.filter(isTurn).forEach(outdate);
  }

  // Where turns were missed, what leads to earlier ones leads to those between.
  function bridge(earlier, last, before) {
    if (Number(earlier.dataset.follows) === last || before.matches(".gap")) return false;
    const button = earlier.querySelector("button");
    button.textContent = earlier.dataset.gap;
    button.setAttribute("hx-get", `${button.getAttribute("hx-get")}&after=${last}`);
    button.setAttribute("hx-target", "closest .gap");
    earlier.classList.add("gap");
    earlier.removeAttribute("id");
    return true;
  }

  const outdated = new Set();
  const near = new IntersectionObserver((entries) => {
    const seen = entries.find(({ isIntersecting, target }) => isIntersecting && outdated.has(target));
    if (seen) renew(seen.target);
  }, NEAR);

  function outdate(turn) {
    if (turn.querySelector(".live")) return; // that one is followed, frame by frame
    near.unobserve(turn);
    outdated.add(turn);
    near.observe(turn);
  }

  /* A turn and the outdated ones about it, as many as one page has. */
  function takeAround(turn) {
    const due = [turn];
    for (const [next, add] of [["nextElementSibling", "push"], ["previousElementSibling", "unshift"]]) {
      for (let node = turn[next]; node && due.length < PAGE; node = node[next]) {
        if (outdated.has(node)) due[add](node);
        else if (!node.matches(".divider")) break;
      }
    }
    for (const each of due) {
      outdated.delete(each);
      near.unobserve(each);
    }
    return due;
  }

  async function renew(turn) {
    const due = takeAround(turn);
    const fresh = await load(numberOf(due[0]) - 1, numberOf(due.at(-1)) + 1);
    if (!fresh) for (const each of due) outdated.add(each);
    else if (due.every((each) => each.isConnected && !each.querySelector(".live"))) drawBetween(due, fresh);
  }

  async function load(after, before) {
    try {
      const place = after ? `after=${after}&before=${before}` : `before=${before}`;
      const answer = await fetch(`${turns.dataset.messages}?${place}`, { headers: { "HX-Request": "true" } });
      if (!answer.ok || answer.redirected) return null;
      const { body } = new DOMParser().parseFromString(await answer.text(), "text/html");
      return [...body.querySelectorAll(":scope > :is(.turn, .divider)")].map((node) => document.adoptNode(node));
    } catch {
      return null; // offline: the sync after the reconnect outdates them again
    }
  }

  function drawBetween(due, fresh) {
    const last = numberOf(due.at(-1));
    const isInside = (node) => (isTurn(node) ? numberOf(node) <= last : node.matches(".divider"));
    const shown = [];
    let node = due[0];
    for (; node && isInside(node); node = node.nextElementSibling) shown.push(node);
    const lead = keepPlace();
    drawList(shown, fresh, node);
    lead();
  }

  // Scrolling up loads what came before, a little ahead of the reader.
  const top = new IntersectionObserver((entries) => {
    const { isIntersecting, target } = entries.at(-1);
    if (isIntersecting) target.querySelector("button").click();
  }, NEAR);

  function watchTop() {
    top.disconnect();
    const earlier = document.getElementById("earlier");
    if (earlier) top.observe(earlier);
  }

  let syncs = 0;
  document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    if (detail.fragment.id !== "turns") return;
    detail.shouldSwap = false;
    syncs += 1;
    const lead = keepPlace();
    drawLatest(detail.fragment);
    lead();
    watchTop();
  });

  // What was asked for before a sync may be as old as what the sync has outdated.
  let asked = 0;
  let lead = null;
  const isEarlier = (element) => element.matches(".earlier, .earlier *");
  document.addEventListener("htmx:beforeRequest", ({ target }) => {
    if (isEarlier(target)) asked = syncs;
  });
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (isEarlier(detail.target)) lead = keepPlace();
  });
  document.addEventListener("htmx:afterSwap", () => {
    if (!lead) return;
    lead();
    lead = null;
    watchTop();
    if (asked !== syncs) turns.querySelectorAll(":scope > .turn").forEach(outdate);
  });
  // Not before htmx knows the button.
  document.addEventListener("DOMContentLoaded", watchTop);
})();
