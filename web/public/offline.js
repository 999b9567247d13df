// Keeps the page for use without a network.
const cache = "CACHE";
const files = ["FILES"];

self.addEventListener("install", event => {
  event.waitUntil(caches.open(cache).then(c => c.addAll(files)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", event => {
  const old = names => names.filter(name => name !== cache).map(name => caches.delete(name));
  event.waitUntil(caches.keys().then(names => Promise.all(old(names))).then(() => self.clients.claim()));
});

self.addEventListener("fetch", event => {
  const { request } = event;
  if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
  event.respondWith(
    caches.open(cache).then(c => c.match(request, { ignoreSearch: true })).then(hit => hit ?? fetch(request)),
  );
});
