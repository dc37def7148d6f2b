/* In the frame of a diagram: draws the source that the page around it sends, once. */
const say = (said) => parent.postMessage(said, location.origin);
// Of the text as it was written: what is smaller is scrolled, not read.
const SMALLEST = 0.6;

function begin(isDark) {
  document.documentElement.classList.toggle("dark", isDark);
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    htmlLabels: false,
    theme: isDark ? "dark" : "default",
    fontFamily: "system-ui, sans-serif",
    // What a diagram can't change of itself.
    secure: ["secure", "securityLevel", "startOnLoad", "maxTextSize", "maxEdges", "suppressErrorRendering", "htmlLabels", "themeCSS", "dompurifyConfig"],
  });
}

function show(svg) {
  document.body.innerHTML = svg;
  const drawn = document.querySelector("svg");
  // Nothing that is pressed leads anywhere.
  for (const link of drawn.querySelectorAll("a")) for (const { name } of [...link.attributes]) if (/href$/.test(name)) link.removeAttribute(name);
  drawn.style.minWidth = `${SMALLEST * (drawn.viewBox.baseVal?.width ?? 0)}px`;
  const root = document.documentElement;
  // With the bar that scrolls what is too wide.
  const tell = () => say({ state: "drawn", height: root.offsetHeight + innerHeight - root.clientHeight });
  // Nothing is observed in a frame that is scrolled out of sight.
  tell();
  new ResizeObserver(tell).observe(root);
}

addEventListener("message", async function draw({ source, data }) {
  if (source !== parent) return;
  removeEventListener("message", draw);
  begin(data.isDark);
  try {
    show((await mermaid.render("diagram", data.text)).svg);
  } catch (error) {
    say({ state: /limit/i.test(error?.message) ? "large" : "broken" });
  }
});

say({ state: globalThis.mermaid ? "ready" : "missing" });
