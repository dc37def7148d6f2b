/* Long fragments come in numbered pieces (chatsite/live/pieces.py): htmx gets the whole
 * with the last of them, and nothing before. */
(() => {
  const PIECE = /^<!--piece (\d+)( last)?-->/;
  let held = "";

  htmx.defineExtension("pieces", {
    transformResponse(text, xhr) {
      const found = xhr ? null : PIECE.exec(text);
      if (!found) return text;
      const [mark, number, isLast] = found;
      // The first one: what came of another fragment before the connection broke is no use.
      held = (number === "0" ? "" : held) + text.slice(mark.length);
      if (!isLast) return "";
      const whole = held;
      held = "";
      return whole;
    },
  });
})();
