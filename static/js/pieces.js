/* Long fragments come in numbered pieces (chatsite/live/pieces.py): htmx gets the whole
 * with the last of them, and nothing before. What was closed is left out. */
(() => {
  const PIECE = /^<!--piece (\d+)( last)?-->/;
  const OPTIONAL = /<!--optional-->([^]*?(?:\bid="|:#)([\w-]+)[^]*?)<!--end-->/g;
  const fit = (text) => text.replace(OPTIONAL, (_, part, id) => (document.getElementById(id) ? part : ""));
  let held = "";

  htmx.defineExtension("pieces", {
    transformResponse(text, xhr) {
      const found = xhr ? null : PIECE.exec(text);
      if (!found) return fit(text);
      const [mark, number, isLast] = found;
      // The first one: what came before the connection broke is no use.
      held = (number === "0" ? "" : held) + text.slice(mark.length);
      return isLast ? fit(held) : "";
    },
  });
})();
