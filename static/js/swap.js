/* Redraws turns: what stays the same is not touched, and the reader keeps the place. */
const swap = (() => {
  const scroller = document.getElementById("transcript");
  const turns = document.getElementById("turns");

  /* Remembers what the reader looks at; what it returns leads there again. */
  function keepPlace() {
    const edge = scroller.getBoundingClientRect().top;
    const anchor = [...turns.querySelectorAll(".message, .divider")].find((node) => node.getBoundingClientRect().bottom > edge);
    const top = anchor?.getBoundingClientRect().top;
    const focused = document.activeElement?.closest("#turns [id]")?.id;
    return () => {
      const found = anchor && (anchor.isConnected ? anchor : document.getElementById(anchor.id));
      if (found) scroller.scrollTop += found.getBoundingClientRect().top - top;
      if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
    };
  }

  // As htmx does it with what it swaps in.
  function processNew(nodes) {
    for (const node of nodes) {
      if (node.nodeType !== Node.ELEMENT_NODE) continue;
      htmx.process(node);
      htmx.trigger(node, "htmx:load");
    }
  }

  function copyAttributes(old, fresh) {
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }

  // Blocks that are equal stay the very same nodes, with their selection and their place.
  function drawBody(old, fresh) {
    copyAttributes(old, fresh);
    const shown = [...old.childNodes];
    [...fresh.childNodes].forEach((node, index) => {
      if (!shown[index]) old.append(node);
      else if (!shown[index].isEqualNode(node)) shown[index].replaceWith(node);
      shown[index] = null;
    });
    for (const node of shown) node?.remove();
  }

  function drawMessage(old, fresh) {
    const [body, newBody] = [old, fresh].map((message) => message.querySelector(":scope > .body"));
    copyAttributes(old, fresh);
    if (!body || !newBody) { // files alone
      old.replaceChildren(...fresh.childNodes);
      return processNew(old.children);
    }
    drawBody(body, newBody);
    while (body.previousSibling) body.previousSibling.remove();
    while (body.nextSibling) body.nextSibling.remove();
    while (newBody.previousSibling) old.prepend(newBody.previousSibling);
    while (newBody.nextSibling) old.append(newBody.nextSibling);
    processNew([...old.children].filter((node) => node !== body));
  }

  // A card that shows the same stays, with what is typed in it.
  const keyOf = (node) => (node.matches(".tool-card") ? `${node.id} ${node.dataset.drawn}` : node.dataset.seq);

  function drawTurn(old, fresh) {
    code.decorate(fresh);
    copyAttributes(old, fresh);
    const known = new Map([...old.querySelectorAll(":scope > :is(.message, .tool-card)")].map((part) => [keyOf(part), part]));
    const added = [];
    let at = old.firstChild;
    for (const node of [...fresh.childNodes]) {
      const same = node.nodeType === Node.ELEMENT_NODE && node.matches(".message, .tool-card") && known.get(keyOf(node));
      const isAhead = same && at && (same === at || at.compareDocumentPosition(same) & Node.DOCUMENT_POSITION_FOLLOWING);
      if (!isAhead) {
        old.insertBefore(node, at);
        added.push(node);
        continue;
      }
      while (at !== same) at = removed(at);
      if (same.matches(".message")) drawMessage(same, node);
      at = same.nextSibling;
    }
    while (at) at = removed(at);
    processNew(added);
  }

  function removed(node) {
    const next = node.nextSibling;
    node.remove();
    return next;
  }

  function draw(old, fresh) {
    if (old.dataset.drawn && old.dataset.drawn === fresh.dataset.drawn) return;
    if (old.matches(".turn")) drawTurn(old, fresh);
    else if (!old.isEqualNode(fresh)) {
      old.replaceWith(fresh);
      processNew([fresh]);
    }
  }

  /* Lets `wanted` stand where `shown` stood. */
  function drawList(shown, wanted, end) {
    const ids = new Set(wanted.map((node) => node.id).filter(Boolean));
    for (const node of shown) if (!ids.has(node.id)) node.remove();
    let at = shown.find((node) => node.isConnected) || end;
    for (const node of wanted) {
      const old = node.id && document.getElementById(node.id);
      if (old?.parentNode === turns) {
        if (old === at) at = at.nextElementSibling;
        else turns.insertBefore(old, at);
        draw(old, node);
      } else {
        turns.insertBefore(node, at);
        processNew([node]);
      }
    }
  }

  // What says so keeps its buttons, the very same, and their focus.
  const KEPT = ".turn, [data-same-children]";
  document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    const { target, fragment } = detail;
    const fresh = target.matches(KEPT) && fragment.querySelector(KEPT);
    if (!fresh) return;
    detail.shouldSwap = false;
    if (!target.matches(".turn")) [...target.children].forEach((button, place) => copyAttributes(button, fresh.children[place]));
    else {
      const lead = keepPlace();
      drawTurn(target, fresh);
      lead();
    }
  });

  return { keepPlace, drawList };
})();
