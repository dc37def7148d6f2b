/* A branch that says a message in other words; the page goes there. Loaded with the first. */
let isBusy = false;

export function makeBranch(box, seq, text, done, fail) {
  // Enter pressed twice, while this was being loaded: what waits in the box would go twice.
  if (isBusy) return;
  isBusy = true;
  const said = JSON.stringify([seq, text]);
  // Sent again, it makes no second one.
  if (box.dataset.said !== said) Object.assign(box.dataset, { said, id: outbox.newId() });
  // htmx does not call it successful where it leads to another page.
  const end = ({ detail }) => {
    isBusy = false;
    if (detail.xhr.getResponseHeader("HX-Redirect")) done();
    else if (!detail.successful) fail();
  };
  box.addEventListener("htmx:afterRequest", end, { once: true });
  const values = { seq, text, client_id: box.dataset.id };
  htmx.ajax("POST", box.dataset.url, { source: box, swap: "none", values });
}
