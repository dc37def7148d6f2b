/* What dress.js loads when a piece of code is to be shown. Drawings and web pages are
 * pictures: in a picture nothing runs, nothing is fetched, and nothing of the page is in
 * reach, while its own styles work. Diagrams are drawn by a library in a frame that has
 * no origin and no network (views.py). */
const SHOWN = 'width="800" height="600"';
const SVG = 'xmlns="http://www.w3.org/2000/svg"';
const XHTML = 'xmlns="http://www.w3.org/1999/xhtml"';
// Characters and parts of a diagram: drawing it holds the page up where the browser gives
// its frame no process of its own. Then seconds until it is there, and pixels of height.
const LONGEST = 50_000;
const MOST_PARTS = 500;
const SECONDS = 20;
const LOWEST = 80;
const TALLEST = 8_000;
const words = document.getElementById("code-words").dataset;

function say(place, said) {
  place.replaceChildren(Object.assign(document.createElement("p"), { textContent: said }));
}

const isSvg = (text) => /^\s*(<\?xml[^>]*>\s*)?<svg[\s>]/.test(text);

export function picture(place, text) {
  const image = Object.assign(new Image(), { alt: words.picture });
  place.append(image);
  image.addEventListener("error", () => say(place, words.broken));
  image.src = `data:image/svg+xml,${encodeURIComponent(isSvg(text) ? complete(text) : wrap(text))}`;
}

// Models leave out what a drawing inside of a page doesn't need.
const complete = (svg) => (/\bxmlns=/.test(svg) ? svg : svg.replace("<svg", `<svg ${SVG}`));

/* A web page inside of a drawing. Reading it runs and fetches nothing; its styles and
 * handlers have other names meanwhile, as the policy of this page would report them. */
function wrap(html) {
  const renamed = html.replace(/(?<=<\/?)style\b|\b(?:style|on[a-z]+)(?=\s*=)/gi, "x-$&");
  const page = new DOMParser().parseFromString(renamed, "text/html");
  for (const script of page.querySelectorAll("script")) script.remove();
  for (const node of page.querySelectorAll("*")) {
    for (const { name } of [...node.attributes]) if (name.startsWith("x-on")) node.removeAttribute(name);
  }
  const read = new XMLSerializer().serializeToString(page.documentElement).replace(/x-(?=style|on)/gi, "");
  const whole = `<style ${XHTML}>body { box-sizing: border-box; min-height: 600px; }</style>${read}`;
  return `<svg ${SVG} ${SHOWN}><foreignObject width="100%" height="100%">${whole}</foreignObject></svg>`;
}

/* The frame is told the source once it is ready. What it says is its height, or why there
 * is none; it is no more believed than the source is. */
export function diagram(place, text) {
  place.classList.add("diagram");
  if (text.length > LONGEST || text.split(/[\n;&]/).length > MOST_PARTS) return say(place, words.large);
  const frame = Object.assign(document.createElement("iframe"), { sandbox: "allow-scripts", height: LOWEST, title: words.picture, src: words.frame });
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
    removeEventListener("message", hear);
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
  function hear({ source, data }) {
    if (!place.isConnected) end();
    else if (source === frame.contentWindow && Object.hasOwn(answers, data?.state)) answers[data.state](data);
  }
  addEventListener("message", hear);
  // A page that did not come is loaded, too, but says nothing.
  frame.addEventListener("load", () => late || wait(missing));
  place.ariaBusy = "true";
  place.append(frame);
}

function isDark() {
  const scheme = getComputedStyle(document.documentElement).colorScheme;
  return scheme === "dark" || (scheme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}
