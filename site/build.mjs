// Builds the static site: node site/build.mjs DRAWN NPM SITE. DRAWN is what the service drew
// (tests/site/drawn.py), NPM where onnxruntime-web is installed, SITE a folder that is made anew.
import { createHash } from "node:crypto";
import {
  cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = fileURLToPath(new URL("..", import.meta.url)); // import.meta.dirname is Node 20.11's
const [drawn, npm, site] = process.argv.slice(2);
const out = `${site}.unfinished`; // of a site of which half is there the pages would still be served
const ORT = join(npm, "node_modules/onnxruntime-web");
const KINDS = ["handwriting", "language"]; // what the page has tabs for
const NOT_HERE = ["docs.html", "docs.js", "index.html"]; // of service/web
// That of the service (service/http/guard.py), and no more than WebAssembly and the worker want.
const POLICY =
  "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; " +
  "img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'";

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const read = (...path) => readFileSync(join(...path), "utf8");

function write(path, content) {
  mkdirSync(dirname(join(out, path)), { recursive: true });
  writeFileSync(join(out, path), content);
}

/** Replace a text that must be there, and only once. */
function swap(text, before, after) {
  if (text.split(before).length !== 2) throw new Error(`not once in the page: ${before}`);
  return text.replace(before, () => after);
}

/** A file as it is fetched, packed, and how to know it. */
function pack(path, bytes) {
  const packed = gzipSync(bytes, { level: 9 });
  write(`${path}.gz`, packed);
  return { path: `${path}.gz`, bytes: packed.length, sha256: sha256(bytes) };
}

/** As Python's json.dumps with sorted keys: what the digest of an artifact is of. */
const dumped = (files) =>
  `{${Object.keys(files).sort().map((name) => `"${name}": "${files[name]}"`).join(", ")}}`;

function model(folder, manifest) {
  const { files, graphs, parity, kind, name } = manifest;
  if (!KINDS.includes(kind)) return null;
  if (!parity?.length || parity.some(({ value, bound }) => !(value <= bound))) {
    console.log(`left out: ${name}, whose parity report is missing or red`);
    return null;
  }
  const wanted = [graphs.scan.plain, ...Object.keys(files).filter((file) => file.endsWith(".safetensors"))];
  const packed = wanted.map((file) => {
    return [file, pack(`models/${name}/${file}`, readFileSync(join(folder, file)))];
  });
  for (const [file, { sha256: found }] of packed) {
    if (found !== files[file]) throw new Error(`${folder}/${file} is not the file of its manifest`);
  }
  return {
    digest: sha256(dumped(files)),
    bytes: packed.reduce((sum, [, file]) => sum + file.bytes, 0),
    manifest,
    files: Object.fromEntries(packed),
    drawn: JSON.parse(read(drawn, `${name}.json`)),
  };
}

function models() {
  const folders = readdirSync(join(root, "artifacts")).map((name) => join(root, "artifacts", name));
  const found = folders.filter((folder) => existsSync(join(folder, "manifest.json")));
  // With those of eight bits, which prove themselves in a browser too, a first visit would fetch more
  // than 16 MB.
  const exact = found.sort().map((folder) => [folder, JSON.parse(read(folder, "manifest.json"))])
    .filter(([, { hyperparameters }]) => (hyperparameters.precision ?? "float32") === "float32");
  const entries = exact.map(([folder, manifest]) => model(folder, manifest)).filter(Boolean);
  const wasm = "ort-wasm-simd-threaded.wasm";
  const runtime = pack(`device/ort/${wasm}`, readFileSync(join(ORT, "dist", wasm)));
  write("models/index.json", JSON.stringify({ runtime, models: entries }));
  for (const { manifest: { name, styles } } of entries) {
    if (!styles?.length) continue;
    cpSync(join(drawn, "previews", name), join(out, "models/previews", name), { recursive: true });
  }
}

/** Who may do what with the code, and with weights whose data has notices of its own. */
function notices() {
  cpSync(join(root, "LICENSE"), join(out, "LICENSE"));
  for (const { manifest: { name } } of JSON.parse(read(out, "models/index.json")).models) {
    const card = join(root, `docs/model-card-${name}.md`);
    if (existsSync(card)) cpSync(card, join(out, `models/${name}/model-card.md`));
  }
}

/** The page's scripts and styles as they are, and the modules of this folder beside them. */
function scripts() {
  cpSync(join(root, "service/web"), join(out, "static"), { recursive: true });
  for (const name of NOT_HERE) rmSync(join(out, "static", name));
  const modules = readdirSync(join(root, "site")).filter((file) => /\.(js|css)$/.test(file));
  for (const name of modules.filter((file) => file !== "sw.js")) {
    write(`device/${name}`, read(root, "site", name).replaceAll("../service/web/", "../static/"));
  }
  const { version, license } = JSON.parse(read(ORT, "package.json"));
  write("device/ort/ort.js", read(ORT, "dist/ort.wasm.bundle.min.mjs").replace(/\n\/\/# source.*/, ""));
  write("device/ort/NOTICE", `onnxruntime-web ${version}, (c) Microsoft, licence ${license}\n`);
}

function page() {
  let html = read(root, "service/web/index.html");
  html = html.replace(/.*data-served.*\n/g, ""); // what a service alone has
  const [charset, last] = ['<meta charset="utf-8">', '<link rel="stylesheet" href="static/lab.css">'];
  const policy = `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`;
  html = swap(html, charset, `${charset}\n  ${policy}`);
  html = swap(html, 'src="static/page.js"', 'src="device/start.js"');
  html = swap(html, last, `${last}\n  ${last.replace("static/lab", "device/site")}`);
  html = swap(html, 'aria-current="true">on the server', 'href="../../">on the server');
  html = swap(html, 'href="static/device/?server">on this device', 'aria-current="true">on this device');
  write("index.html", html);
}

function* filesIn(folder) {
  for (const name of readdirSync(folder).sort()) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) yield* filesIn(path);
    else yield path;
  }
}

/** All files but models, which are kept when they are wanted, are kept at the first visit. */
function offline() {
  const paths = [...filesIn(out)].filter((path) => !path.endsWith(".gz"));
  const version = sha256(paths.map((path) => sha256(readFileSync(path))).join("")).slice(0, 16);
  const names = ["./", ...paths.map((path) => relative(out, path)).filter((path) => path !== "index.html")];
  const list = `const FILES = ${JSON.stringify(names)};`;
  const worker = swap(read(root, "site/sw.js"), "const FILES = [];", list);
  write("sw.js", swap(worker, "VERSION", version));
}

rmSync(out, { recursive: true, force: true });
for (const part of [models, notices, scripts, page, offline]) part();
rmSync(site, { recursive: true, force: true });
renameSync(out, site);
console.log(`${relative(process.cwd(), site)} is built: any file server serves it, at any path`);
