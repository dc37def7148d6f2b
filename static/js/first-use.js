/* Scripts and styles that most pages never need, or not before someone acts, are loaded on
 * first use. The element that uses one has its address: collected files have a hash in
 * their names. */

// The styles that are there or on their way, by address.
const styles = new Map([...document.querySelectorAll("link[rel=stylesheet]")].map((link) => [link.getAttribute("href")]));

/* Adds these to the page, and waits for them; what fails is asked for again next time. */
function addStyles(addresses = "") {
  return Promise.all(addresses.split(" ").filter(Boolean).map((href) => {
    if (!styles.has(href)) styles.set(href, new Promise((done) => {
      const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
      link.onload = done;
      link.onerror = () => done(styles.delete(href), link.remove());
      document.head.append(link);
    }));
    return styles.get(href);
  }));
}

/* To be called while that script runs: gives a function that loads its `data-module`,
 * once for all calls, and its `data-styles`. After a failure the next call tries again,
 * with another fragment: browsers remember which addresses have failed
 * (https://github.com/whatwg/html/issues/6768). */
function onFirstUse() {
  const { module, styles: addresses } = document.currentScript.dataset;
  let loading = null;
  let failures = 0;

  return () => {
    const script = () => module && import(failures ? `${module}#${failures}` : module);
    loading ??= Promise.all([script(), addStyles(addresses)]).then(([found]) => found, (error) => {
      loading = null;
      failures += 1;
      throw error;
    });
    return loading;
  };
}

/* The mouse, a finger or the keyboard comes to a part of the page for the first time. */
for (const name of ["pointerover", "focusin"]) {
  document.addEventListener(name, ({ target }) => {
    const part = target.closest?.("[data-first-use]");
    if (!part) return;
    const addresses = part.dataset.firstUse.split(" ");
    part.removeAttribute("data-first-use");
    addStyles(addresses.filter((each) => each.endsWith(".css")).join(" "));
    for (const each of addresses) if (each.endsWith(".js")) import(each);
  });
}

/* What comes later brings its styles along, as a card of an app does. */
document.addEventListener("htmx:load", ({ target }) => {
  for (const piece of [target, ...target.querySelectorAll(".turn [data-styles]")]) addStyles(piece.dataset.styles);
});
