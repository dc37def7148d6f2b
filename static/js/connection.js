/* The state of the socket, as it is shown and mended: reconnects with backoff
 * and jitter, after sleep and offline times too. The server syncs pages that come back. */
(() => {
  const page = document.getElementById("conversation");
  const shown = document.getElementById("connection");
  const warning = document.getElementById("no-connection");
  const STATES = { 4401: "signed-out", 4404: "gone", 4429: "crowded" };
  const CROWDED_MS = 30_000;
  const TOP_MS = 10_000;
  const ANSWER_MS = 5_000;
  const HANDSHAKE_MS = 30_000;
  const TICK_MS = 10_000;
  // The longest timer.
  const NEVER_MS = 2 ** 31 - 1;

  let socket = null; // the newest, in any state
  let wrapper = null;
  let state = "connecting";
  let tries = 0;
  let next = null;
  let doubt = null;

  /* One socket and one timer: two open sockets would bring every fragment twice. A
   * socket that is replaced is closed, also one that still connects. htmx's own timers
   * never fire: they would replace a socket that has been opened meanwhile. */
  const create = htmx.createWebSocket;
  htmx.createWebSocket = (url) => {
    socket?.close();
    // The state is that of the first.
    socket = create(socket ? url.split("?")[0] : url);
    reconnectIn(HANDSHAKE_MS);
    return socket;
  };
  htmx.config.wsReconnectDelay = () => NEVER_MS;

  function reconnect() {
    clearTimeout(next);
    if (state === "closed" || state === "crowded") wrapper?.reconnect();
  }

  function reconnectIn(ms) {
    clearTimeout(next);
    next = setTimeout(reconnect, ms);
  }

  function delay(count) {
    return Math.min(TOP_MS, 1000 * 2 ** count) * (0.3 + 0.7 * Math.random());
  }

  function show(name) {
    state = name;
    const said = state === "closed" && !navigator.onLine ? "offline" : state;
    shown.dataset.state = said;
    shown.textContent = shown.dataset[said.replace(/-(.)/, (_, letter) => letter.toUpperCase())];
    const isAway = ["offline", "closed", "crowded"].includes(said);
    if (isAway !== Boolean(warning.textContent)) warning.textContent = isAway ? warning.dataset.text : "";
  }

  function lose(name) {
    clearTimeout(doubt);
    show(name);
    document.dispatchEvent(new Event("connection:closed"));
  }

  page.addEventListener("htmx:wsOpen", ({ detail }) => {
    clearTimeout(next);
    wrapper = detail.socketWrapper;
    tries = 0;
    show("open");
    document.dispatchEvent(new CustomEvent("connection:open", { detail: wrapper }));
  });
  page.addEventListener("htmx:wsClose", ({ detail }) => {
    if (detail.event.target !== socket) return; // it was replaced
    clearTimeout(next);
    wrapper = detail.socketWrapper;
    const { code } = detail.event;
    lose(STATES[code] || (code >= 4000 ? "gone" : "closed"));
    if (state === "crowded") reconnectIn(CROWDED_MS * (1 + Math.random()));
    else if (state === "closed") reconnectIn(delay(tries++));
  });

  /* Ask the server for a sign of life; a connection can be dead unnoticed. */
  function probe() {
    if (state !== "open") {
      if (socket?.readyState !== WebSocket.CONNECTING) reconnect();
      return;
    }
    clearTimeout(doubt);
    doubt = setTimeout(replace, ANSWER_MS);
    socket.send(JSON.stringify({ type: "sync" }));
  }

  function replace() {
    lose("closed");
    reconnect();
  }

  page.addEventListener("htmx:wsBeforeMessage", () => clearTimeout(doubt));
  document.addEventListener("connection:doubt", probe);
  addEventListener("online", probe);
  addEventListener("offline", () => {
    if (state === "closed") show("closed");
    else probe();
  });

  // A clock that jumped: the machine or this tab was asleep.
  let ticked = Date.now();
  setInterval(() => {
    const slept = Date.now() - ticked > 3 * TICK_MS;
    ticked = Date.now();
    if (slept) probe();
  }, TICK_MS);
})();
