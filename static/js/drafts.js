/* Files beside the message box: none, unless another script puts its own here. */
let messageFiles = { kept: [], ready: [], isReady: true, restore() {}, drop() {}, lose() {}, explain() {} };

/* Where the message box keeps its text: every tab its own, so that two tabs of one
 * conversation do not overwrite each other. What a closed tab left, the next takes up. */
const drafts = (() => {
  const form = document.getElementById("composer");
  const key = `windowpane.draft.${form.dataset.key}`;
  // A tab that is busy answers late, and what it has must not be taken from it.
  const WAIT = 500;

  let tab = sessionStorage.getItem("windowpane.tab") || newTab();
  const channel = new BroadcastChannel(key);
  const alive = new Set();

  function newTab() {
    const id = Math.random().toString(36).slice(2);
    sessionStorage.setItem("windowpane.tab", id);
    return id;
  }

  function read(storage, name) {
    try {
      return JSON.parse(storage.getItem(name));
    } catch {
      storage.removeItem(name);
      return null;
    }
  }

  // A temporary conversation leaves nothing behind its tab.
  function places() {
    const own = [[sessionStorage, key]];
    return "temporary" in form.dataset ? own : [...own, [localStorage, `${key}.${tab}`]];
  }

  function save(draft) {
    const value = draft && JSON.stringify({ ...draft, at: Date.now() });
    for (const [storage, name] of places()) {
      if (value) storage.setItem(name, value);
      else storage.removeItem(name);
    }
  }

  channel.addEventListener("message", ({ data }) => {
    if (data.alive) alive.add(data.alive);
    else if (data.ask.includes(tab)) channel.postMessage({ alive: tab });
  });

  // Names of what other tabs have kept; without a tab: from before tabs had their own.
  function kept() {
    const names = Object.keys(localStorage).filter((name) => name === key || name.startsWith(`${key}.`));
    return names.filter((name) => name !== `${key}.${tab}`);
  }

  function tabOf(name) {
    return name.slice(key.length + 1);
  }

  // Of the drafts whose tabs were asked: one that is saved later belongs to an open tab.
  function takeUp(asked, show) {
    const left = asked.filter((name) => !alive.has(tabOf(name)));
    const newest = left.map((name) => [name, read(localStorage, name)]).filter(([, draft]) => draft);
    newest.sort(([, one], [, other]) => (other.at || 0) - (one.at || 0));
    if (!newest.length || !show(newest[0][1])) return;
    save(newest[0][1]);
    localStorage.removeItem(newest[0][0]);
  }

  /* Calls back with the draft: at once with this tab's, or soon with one left behind, which
   * stays where it is if it is not shown. */
  function load(show) {
    const own = read(sessionStorage, key);
    if (own) show(own);
    const asked = kept();
    channel.postMessage({ ask: [tab, ...asked.map(tabOf)] });
    setTimeout(() => {
      // A tab that was duplicated has the id of the one it came from.
      if (alive.has(tab)) tab = newTab();
      if (!own) takeUp(asked, show);
    }, WAIT);
  }

  return { load, save };
})();
