{# needs: kept (addresses, as JSON), version #}
{% load i18n %}/* Caches the page that says that there is no network, and nothing else: no page of a
 * user, no answer of the site. It looks at requests for whole pages only. */
const KEPT = {{ kept|safe }};
const CACHE = "offline-{{ version }}";

addEventListener("install", (event) => {
  skipWaiting();
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(KEPT.map((address) => new Request(address, { cache: "reload" })))));
});

async function tidy() {
  await registration.navigationPreload?.enable();
  for (const name of await caches.keys()) if (name !== CACHE) await caches.delete(name);
}

addEventListener("activate", (event) => event.waitUntil(tidy()));

async function load(event) {
  try {
    return (await event.preloadResponse) || (await fetch(event.request));
  } catch {
    return caches.match(KEPT[0]);
  }
}

const isKept = ({ url }) => KEPT.includes(new URL(url).pathname);

addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.mode === "navigate" && request.method === "GET") event.respondWith(load(event));
  // The styles of that page, for it alone: others ask the network first.
  else if (request.method === "GET" && isKept(request)) event.respondWith(fetch(request).catch(() => caches.match(request)));
});
