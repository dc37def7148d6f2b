/* Scripts and styles that most pages never need, or not before someone acts, are loaded on
 * first use. The element that uses one has its address, the page's script those of its parts:
 * collected files have a hash in their names. */

// The styles that are there, also as a part of another, or on their way, by address.
const styles = new Map([...document.querySelectorAll("link[rel=stylesheet]")].flatMap((link) => `${link.getAttribute("href")} ${link.dataset.parts ?? ""}`.split(" ")).map((href) => [href]));

/* Adds these to the page, and waits for them; what fails is asked for again next time. */
function addStyles(addresses = "") {
  return Promise.all(addresses.split(" ").filter((each) => each.endsWith(".css")).map((href) => {
    if (!styles.has(href)) styles.set(href, new Promise((done) => {
      const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
      link.onload = done;
      link.onerror = () => done(styles.delete(href), link.remove());
      document.head.append(link);
    }));
    return styles.get(href);
  }));
}

/* To be called while the script of this name runs: gives a function that loads its module,
 * once for all calls, and its styles. After a failure the next call tries again,
 * with another fragment: browsers remember which addresses have failed
 * (https://github.com/whatwg/html/issues/6768). */
function onFirstUse(name) {
  const addresses = document.currentScript.getAttribute(`data-use-${name}`);
  const module = addresses.split(" ").find((each) => each.endsWith(".js"));
  let loading = null;
  let failures = 0;

  return () => {
    loading ??= Promise.all([import(failures ? `${module}#${failures}` : module), addStyles(addresses)]).then(([found]) => found, (error) => {
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
    const addresses = part.dataset.firstUse;
    part.removeAttribute("data-first-use");
    addStyles(addresses);
    for (const each of addresses.split(" ")) if (each.endsWith(".js")) import(each);
  });
}

/* What comes later brings its styles along, as a card of an app does. */
document.addEventListener("htmx:load", ({ target }) => {
  for (const piece of [target, ...target.querySelectorAll(".turn [data-styles]")]) addStyles(piece.dataset.styles);
});
