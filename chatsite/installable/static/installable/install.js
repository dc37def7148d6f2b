// Without it, or where it is forbidden, the site is the same; nothing on the page waits for it.
addEventListener("load", () => navigator.serviceWorker?.register("/service-worker.js").catch(() => {}));
