// The keys [ and ] go to the step before and after, as the links that show them do.
"use strict";

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key !== "[" && event.key !== "]") return;
  const link = document.querySelector(`a[data-step="${event.key}"]`);
  if (link) link.click();
});
