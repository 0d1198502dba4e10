// The API's interactive page: Swagger UI on this service's own document, for which a service with
// keys wants one.
import { addressOf } from "./service.js";

let key = null;

async function read() {
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  const answer = await fetch(addressOf("/openapi.json"), { headers });
  if (answer.ok) return answer.json();
  if (answer.status !== 401) throw new Error(`The service answers ${answer.status}.`);
  key = window.prompt("API key of this service")?.replace(/[^!-~]/g, ""); // what a header can have
  return key ? read() : {};
}

const spec = await read().catch(() => null);
if (!spec) document.getElementById("api").textContent = "The service does not answer: load the page again.";
// Swagger UI would ask at the root of the host, whatever path the service has there.
if (spec) spec.servers = [{ url: addressOf("/").replace(/\/$/, "") }];
const page = spec && window.SwaggerUIBundle({
  spec,
  dom_id: "#api",
  deepLinking: true,
  validatorUrl: null,
  onComplete() {
    if (key) page.preauthorizeApiKey("key", key);
  },
});
