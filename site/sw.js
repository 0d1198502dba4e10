// Keeps the page itself, so that it opens without a network; models are kept by store.js. The list
// and the version are put in by build.mjs.
const FILES = [];
// Other builds may stand elsewhere on the same origin.
const OURS = `evenkeel-page ${registration.scope} `;
const SHELL = `${OURS}VERSION`;

addEventListener("install", (event) => {
  // Past the browser's own cache, in which an older build may be.
  const fresh = FILES.map((path) => new Request(path, { cache: "reload" }));
  event.waitUntil(caches.open(SHELL).then((shell) => shell.addAll(fresh)));
  skipWaiting(); // an old page with new files would be told to load again, and find the old one
});

async function takeOver() {
  const old = (await caches.keys()).filter((name) => name.startsWith(OURS) && name !== SHELL);
  await Promise.all(old.map((name) => caches.delete(name)));
  await clients.claim();
}

async function answer(request) {
  const shell = await caches.open(SHELL);
  // The page has two names. Kept under this one it might be what a host sends on to the other.
  const byName = request.url.replace(/[?#].*/, "") === `${registration.scope}index.html`;
  const kept = await shell.match(byName ? registration.scope : request, { ignoreSearch: true });
  return kept ?? fetch(request);
}

addEventListener("activate", (event) => event.waitUntil(takeOver()));
addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(registration.scope)) event.respondWith(answer(event.request));
});
