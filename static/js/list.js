/* The list has the address of what it shows. What is done with it is loaded when someone
 * comes to it (list-actions.js). */
// The same list after a reload.
document.addEventListener("htmx:afterSwap", ({ target }) => {
  if (target.id !== "conversation-list") return;
  const page = new URL(location);
  for (const { name, value } of document.querySelectorAll("#list-state [data-filter]")) {
    page.searchParams.delete(name);
    if (value) page.searchParams.set(name, value);
  }
  history.replaceState(null, "", page);
});
