// A request for ink as others can use it: a command, a program, and an address of this page.
import { headers } from "./key.js";
import { readers } from "./models.js";
import { addressOf } from "./service.js";

const told = (request) =>
  Object.fromEntries(Object.entries(request).filter(([, value]) => value !== null && value !== undefined));
const fileName = ({ seed }) => `evenkeel-${seed}.svg`;
const address = () => addressOf("/v1/handwriting");
// Who needs a key here needs one there; the page does not write it down.
const keyed = () => "Authorization" in headers();

/** The command that asks for the same ink. */
export function asCurl(request) {
  const quoted = JSON.stringify(told(request)).replaceAll("'", "'\\''");
  const key = keyed() ? ' -H "authorization: Bearer $EVENKEEL_API_KEY"' : "";
  return (
    `curl --fail-with-body ${address()} -H 'content-type: application/json'${key} ` +
    `-d '${quoted}' -o ${fileName(request)}`
  );
}

/** The same in Python. Numbers and strings are spelled there as in JSON. */
export function asPython(request) {
  const fields = Object.entries(told(request)).map(([name, value]) => `    "${name}": ${JSON.stringify(value)},`);
  const key = keyed() ? ', headers={"authorization": f"Bearer {os.environ[\'EVENKEEL_API_KEY\']}"}' : "";
  return [
    ...(keyed() ? ["import os", ""] : []),
    "from pathlib import Path",
    "",
    "import httpx",
    "",
    "request = {",
    ...fields,
    "}",
    `answer = httpx.post("${address()}", json=request, timeout=60${key})`,
    "answer.raise_for_status()",
    `Path("${fileName(request)}").write_bytes(answer.content)`,
    "",
  ].join("\n");
}

// What a link says, and the fields of a request.
const IN_LINK = {
  text: "text", hand: "style", seed: "seed", bias: "bias", model: "model",
  line: "line_height", nib: "stroke_width", thinning: "thinning", color: "color", width: "width",
  draws: "best_of", judge: "judge",
};

/** An address of this page at which the same is written. What follows its # goes to no server. */
export function asLink(request) {
  // One draw is said too: where a model reads, the page asks for several otherwise.
  // The only one that could choose among them need not have this name elsewhere.
  const asked = told({ best_of: 1, ...request, ...(readers().length < 2 && { judge: null }) });
  const fields = Object.entries(IN_LINK).map(([name, field]) => [name, asked[field]]);
  const said = new URLSearchParams(fields.filter(([, value]) => value !== undefined));
  return `${location.href.split("#")[0]}#write?${said}`;
}

/** What the address asks for, as fields of a request; null if it names no text. */
export function fromLink() {
  const [tab, query = ""] = location.hash.split(/\?(.*)/s);
  const said = new URLSearchParams(query);
  if (tab !== "#write" || !said.get("text")) return null;
  const fields = Object.entries(IN_LINK).map(([name, field]) => [field, said.get(name)]);
  return told(Object.fromEntries(fields));
}
