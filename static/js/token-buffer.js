/* The letters of running replies: collected, and put on the page some eight times a second.
 * Everything else that the server sends waits for nothing, but never overtakes them. */
(() => {
  const page = document.getElementById("conversation");
  const TAIL_TEXT = /^<span id="(turn-\d+-tail)" hx-swap-oob="beforeend">([^<]*)<\/span>$/;
  const FLUSH_MS = 120;
  const reader = document.createElement("template");
  const waiting = new Map();
  let timer = 0;

  function flush() {
    clearTimeout(timer);
    timer = 0;
    for (const [id, html] of waiting) {
      const tail = document.getElementById(id);
      reader.innerHTML = html;
      if (!tail) document.dispatchEvent(new Event("connection:doubt"));
      else if (tail.lastChild) tail.lastChild.appendData(reader.content.textContent);
      else tail.append(reader.content.textContent);
    }
    waiting.clear();
  }

  page.addEventListener("htmx:wsBeforeMessage", (event) => {
    const [, id, html] = TAIL_TEXT.exec(event.detail.message) || [];
    if (!id) {
      flush();
      return;
    }
    event.preventDefault();
    waiting.set(id, (waiting.get(id) || "") + html);
    timer ||= setTimeout(flush, FLUSH_MS);
  });
})();
