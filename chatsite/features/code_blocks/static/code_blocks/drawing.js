/* What dress.js loads when a piece of code is to be shown. Drawings and web pages are
 * pictures: in a picture nothing runs, nothing is fetched, and nothing of the page is in
 * reach, while its own styles work. */
const SHOWN = 'width="800" height="600"';
const SVG = 'xmlns="http://www.w3.org/2000/svg"';
const XHTML = 'xmlns="http://www.w3.org/1999/xhtml"';
const words = document.getElementById("code-words").dataset;

const isSvg = (text) => /^\s*(<\?xml[^>]*>\s*)?<svg[\s>]/.test(text);

export function draw(place, text) {
  const image = Object.assign(new Image(), { alt: words.picture });
  place.append(image);
  image.addEventListener("error", () => {
    place.replaceChildren(Object.assign(document.createElement("p"), { textContent: words.broken }));
  });
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
