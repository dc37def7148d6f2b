/* What blocks.js loads. Long code shows its beginning. Drawings and web pages are shown as
 * pictures: in a picture nothing runs, nothing is fetched, and nothing of the page is in
 * reach, while its own styles work. */
const LONG = 40;
const SHOWN = 'width="800" height="600"';
const SVG = 'xmlns="http://www.w3.org/2000/svg"';
const XHTML = 'xmlns="http://www.w3.org/1999/xhtml"';
const words = document.getElementById("code-words").dataset;

function makeButton(said, act) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: said });
  button.addEventListener("click", act);
  return button;
}

/* Once for each piece. */
export function dress(code) {
  const box = code.closest(".code");
  if ("dressed" in box.dataset) return;
  box.dataset.dressed = "";
  // It scrolls by keyboard, too.
  code.parentElement.tabIndex = 0;
  if (isPicture(code)) addShow(code, box);
  const lines = code.textContent.trimEnd().split("\n").length;
  if (lines > LONG) fold(box, words.all.replace("{n}", lines));
}

function fold(box, all) {
  const button = makeButton(all, () => {
    const isFolded = box.classList.toggle("folded");
    button.textContent = isFolded ? all : words.fold;
    button.ariaExpanded = String(!isFolded);
    if (isFolded) box.scrollIntoView({ block: "nearest" });
  });
  button.ariaExpanded = "false";
  box.classList.add("folded");
  box.append(button);
}

const isSvg = (text) => /^\s*(<\?xml[^>]*>\s*)?<svg[\s>]/.test(text);
const isPicture = (code) => /language-x?html\b/.test(code.className) || isSvg(code.textContent);

function addShow(code, box) {
  let shown = null;
  const button = makeButton(words.show, () => {
    if (shown) shown.remove();
    shown = shown ? null : draw(code.textContent);
    if (shown) box.querySelector("pre").after(shown);
    button.textContent = shown ? words.hide : words.show;
    button.ariaExpanded = String(Boolean(shown));
  });
  button.ariaExpanded = "false";
  box.querySelector("[data-copy-code]").before(button);
}

function draw(text) {
  const frame = Object.assign(document.createElement("div"), { className: "picture", tabIndex: 0 });
  const image = Object.assign(new Image(), { alt: words.picture });
  frame.append(image);
  image.addEventListener("error", () => frame.replaceChildren(Object.assign(document.createElement("p"), { textContent: words.broken })));
  image.src = `data:image/svg+xml,${encodeURIComponent(isSvg(text) ? complete(text) : picture(text))}`;
  return frame;
}

// Models leave out what a drawing inside of a page doesn't need.
const complete = (svg) => (/\bxmlns=/.test(svg) ? svg : svg.replace("<svg", `<svg ${SVG}`));

/* A web page inside of a drawing. Reading it runs and fetches nothing; its styles and
 * handlers have other names meanwhile, as the policy of this page would report them. */
function picture(html) {
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
