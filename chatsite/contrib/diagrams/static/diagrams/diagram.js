/* What dress.js loads when a diagram is to be shown: a library draws it in a frame that has
 * no origin and no network (views.py). */
// Characters and parts of a diagram: drawing it holds the page up where the browser gives
// its frame no process of its own. Then seconds until it is there, and pixels of height.
const LONGEST = 50_000;
const MOST_PARTS = 500;
const SECONDS = 20;
const LOWEST = 80;
const TALLEST = 8_000;
const words = document.querySelector("[data-draws=mermaid]").dataset;

function say(place, said) {
  place.replaceChildren(Object.assign(document.createElement("p"), { textContent: said }));
}

/* The frame gets the source once it is ready. It reports its height, or why there
 * is none; its reports are trusted no more than the source is. */
export function draw(place, text) {
  place.classList.add("diagram");
  if (text.length > LONGEST || text.split(/[\n;&]/).length > MOST_PARTS) return say(place, words.large);
  const frame = Object.assign(document.createElement("iframe"), { sandbox: "allow-scripts", height: LOWEST, title: words.title, src: words.frame });
  const missing = document.body.dataset.notLoaded;
  let late = 0;
  const wait = (said) => {
    clearTimeout(late);
    late = setTimeout(end, SECONDS * 1000, said);
  };
  const rest = () => {
    clearTimeout(late);
    place.ariaBusy = "false";
  };
  const end = (said) => {
    rest();
    removeEventListener("message", receive);
    if (said) say(place, said);
  };
  const answers = {
    ready() {
      wait(words.large);
      frame.contentWindow.postMessage({ text, isDark: isDark() }, "*");
    },
    drawn({ height }) {
      rest();
      frame.height = Math.ceil(Math.min(Math.max(Number(height) || 0, LOWEST), TALLEST));
    },
    missing: () => end(missing),
    broken: () => end(words.broken),
    large: () => end(words.large),
  };
  function receive({ source, data }) {
    if (!place.isConnected) end();
    else if (source === frame.contentWindow && Object.hasOwn(answers, data?.state)) answers[data.state](data);
  }
  addEventListener("message", receive);
  // A page that did not come is loaded, too, but says nothing.
  frame.addEventListener("load", () => late || wait(missing));
  place.ariaBusy = "true";
  place.append(frame);
}

function isDark() {
  const scheme = getComputedStyle(document.documentElement).colorScheme;
  return scheme === "dark" || (scheme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}
