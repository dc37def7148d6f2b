/* The messages that were handed over and have no ack yet, in their order: the first goes
 * out, the others wait. Each keeps its client_id until the server has said yes, or no for
 * good: however often it goes out, it arrives once. */
const outbox = (() => {
  const form = document.getElementById("composer");
  const button = document.getElementById("send");
  const label = button.textContent;
  const error = () => document.getElementById("composer-error");
  const MAX_TRIES = 5;
  const ACK_MS = 10_000;
  // Refusals that end by themselves; the message stays the same one.
  const LATER = ["unavailable", "rate_limited", "quota", "queue_full"];
  const LONGEST_COUNTDOWN = 120;

  let socket = null;
  // {id, text, edit, files, tries, held, isOut}; held: waits for the user to send it again;
  // isOut: the message box no longer has the text.
  let items = [];
  let timer = null;
  let countdown = null;

  function changed(name = "outbox:changed") {
    const item = items[0];
    document.getElementById("pending").hidden = !item || item.held || !socket;
    document.dispatchEvent(new Event(name));
  }

  function newId() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  const idsOf = (files) => (files || []).map(({ id }) => id);

  function put(text, edit, files) {
    const item = items[0];
    const isFirst = !item || item.held;
    if (!isFirst && (!item.isOut || edit)) return;
    const isSame = item?.text === text && item.edit === edit && String(idsOf(item.files)) === String(idsOf(files));
    const id = isFirst && isSame ? item.id : newId();
    items.splice(isFirst ? 0 : items.length, isFirst ? 1 : 0, { id, text, edit, files, tries: 0, held: false });
    if (!isFirst) return changed();
    offer(null);
    transmit();
  }

  /* Only what never went out: anything else may have arrived. */
  function cancel(id) {
    const found = items.find((item) => item.id === id && !item.tries);
    items = items.filter((item) => item !== found);
    changed();
    return found;
  }

  function transmit() {
    clearTimeout(timer);
    const item = items[0];
    if (socket && item && !item.held) {
      if (item.tries >= MAX_TRIES) {
        hold(0);
        error().textContent = form.dataset.notSent;
        return;
      }
      item.tries += 1;
      const { id, text, edit, files } = item;
      const command = edit ? { type: "edit", seq: edit } : { type: "send", attachments: idsOf(files) };
      socket.sendImmediately(JSON.stringify({ ...command, client_id: id, text }));
      timer = setTimeout(() => document.dispatchEvent(new Event("connection:doubt")), ACK_MS);
    }
    changed();
  }

  function accept() {
    const sent = items.shift();
    offer(null);
    if (sent.edit) socket?.sendImmediately(JSON.stringify({ type: "sync" }));
    document.dispatchEvent(new CustomEvent("composer:sent", { detail: sent }));
    transmit();
  }

  function refuse({ code, retryAfter, seq }) {
    const seconds = Number(retryAfter) || 0;
    const item = items[0];
    clearTimeout(timer);
    if (code === "unavailable" && item.tries < MAX_TRIES) {
      timer = setTimeout(transmit, (seconds + Math.random()) * 1000);
    } else if (LATER.includes(code)) hold(seconds);
    else {
      // Those behind it may mean nothing without it.
      const [, ...behind] = items;
      const refused = { ...item, edit: item.edit && Number(seq), code, behind };
      items = [];
      offer(null);
      changed();
      document.dispatchEvent(new CustomEvent("outbox:refused", { detail: refused }));
    }
  }

  function hold(seconds) {
    Object.assign(items[0], { held: true, tries: 0 });
    offer(seconds > LONGEST_COUNTDOWN ? 0 : Math.ceil(seconds));
    changed();
  }

  /* What the button says: null = send, else send again, in so many seconds. */
  function offer(seconds) {
    clearTimeout(countdown);
    button.disabled = seconds > 0;
    button.textContent = seconds === null ? label : form.dataset.again + (seconds ? ` (${seconds})` : "");
    if (seconds > 0) countdown = setTimeout(() => offer(seconds - 1), 1000);
  }

  function restore(kept) {
    items = [kept || []].flat();
    if (items[0]?.held) offer(0);
    transmit();
  }

  document.addEventListener("connection:open", ({ detail }) => {
    socket = detail;
    transmit();
  });
  document.addEventListener("connection:closed", () => {
    socket = null;
    clearTimeout(timer);
    if (items.length) changed();
  });
  document.addEventListener("htmx:wsAfterMessage", () => {
    const item = items[0];
    if (!item) return;
    if (document.getElementById("ack").dataset.clientId === item.id) accept();
    else if (error().dataset.clientId === item.id) {
      const refusal = { ...error().dataset };
      delete error().dataset.clientId; // handled
      refuse(refusal);
    }
  });

  const isTaken = ({ held, isOut }) => !held && !isOut;
  return { newId, put, cancel, restore, get items() { return items; }, get isCutOff() { return !socket; }, get isBusy() { return button.disabled || items.some(isTaken); } };
})();
