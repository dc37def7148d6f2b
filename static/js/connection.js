/* The state of the socket, as it is shown and as it is mended: reconnects with backoff
 * and jitter, after sleep and offline times too. The server syncs pages that come back. */
(() => {
  const page = document.getElementById("conversation");
  const shown = document.getElementById("connection");
  const warning = document.getElementById("no-connection");
  // htmx reconnects after these by itself.
  const RECONNECTED = [1006, 1011, 1012, 1013];
  const STATES = { 4401: "signed-out", 4404: "gone", 4429: "crowded" };
  const CROWDED_MS = 30_000;
  const TOP_MS = 10_000;
  const ANSWER_MS = 5_000;
  const TICK_MS = 10_000;

  let current = null;
  let wrapper = null;
  let state = "connecting";
  let tries = 0;
  let doubt = null;

  function delay(count) {
    return Math.min(TOP_MS, 1000 * 2 ** count) * (0.3 + 0.7 * Math.random());
  }
  htmx.config.wsReconnectDelay = delay;

  function show(next) {
    state = next;
    const name = state === "closed" && !navigator.onLine ? "offline" : state;
    shown.dataset.state = name;
    shown.textContent = shown.dataset[name.replace(/-(.)/, (_, letter) => letter.toUpperCase())];
    const isAway = ["offline", "closed", "crowded"].includes(name);
    if (isAway !== Boolean(warning.textContent)) warning.textContent = isAway ? warning.dataset.text : "";
  }

  function reconnect() {
    if (state === "closed" || state === "crowded") wrapper?.reconnect();
  }

  function listen({ detail }) {
    current = detail.event.target;
    wrapper = detail.socketWrapper;
    tries = 0;
    show("open");
    document.dispatchEvent(new CustomEvent("connection:open", { detail: wrapper }));
  }

  page.addEventListener("htmx:wsOpen", listen);
  page.addEventListener("htmx:wsClose", ({ detail }) => {
    // One that was replaced may report its end when the next is open already.
    if (current && detail.event.target !== current) return;
    current = null;
    clearTimeout(doubt);
    wrapper = detail.socketWrapper;
    const { code } = detail.event;
    show(STATES[code] || (code >= 4000 ? "gone" : "closed"));
    document.dispatchEvent(new Event("connection:closed"));
    if (state === "crowded") setTimeout(reconnect, CROWDED_MS * (1 + Math.random()));
    else if (state === "closed" && !RECONNECTED.includes(code)) setTimeout(reconnect, delay(tries++));
  });

  /* Ask the server for a sign of life; a connection can be dead without knowing it. */
  function probe() {
    if (state !== "open" || !current) {
      reconnect();
      return;
    }
    clearTimeout(doubt);
    doubt = setTimeout(replace, ANSWER_MS);
    current.send(JSON.stringify({ type: "sync" }));
  }

  function replace() {
    const dead = current;
    current = null;
    show("closed");
    document.dispatchEvent(new Event("connection:closed"));
    dead?.close();
    wrapper.reconnect();
  }

  page.addEventListener("htmx:wsBeforeMessage", () => clearTimeout(doubt));
  document.addEventListener("connection:doubt", probe);
  addEventListener("online", probe);
  addEventListener("offline", () => {
    if (state === "closed") show("closed");
    else probe();
  });

  // A clock that jumped: the machine, or this tab, was asleep.
  let ticked = Date.now();
  setInterval(() => {
    const slept = Date.now() - ticked > 3 * TICK_MS;
    ticked = Date.now();
    if (slept) probe();
  }, TICK_MS);
})();
