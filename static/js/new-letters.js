/* The new letters of running replies, put on the page without a swap by htmx. */
(() => {
  const page = document.getElementById("conversation");
  const TAIL_TEXT = /^<span id="(turn-\d+-tail)" hx-swap-oob="beforeend">([^<]*)<\/span>$/;
  const reader = document.createElement("template");

  page.addEventListener("htmx:wsBeforeMessage", (event) => {
    const [, id, html] = TAIL_TEXT.exec(event.detail.message) || [];
    if (!id) return;
    event.preventDefault();
    const tail = document.getElementById(id);
    reader.innerHTML = html;
    const letters = reader.content.textContent;
    if (!tail) document.dispatchEvent(new Event("connection:doubt"));
    else if (tail.lastChild) tail.lastChild.appendData(letters);
    else tail.append(letters);
  });
})();
