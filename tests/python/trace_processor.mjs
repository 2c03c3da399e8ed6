// Perfetto's trace processor, run in Node: answers SQL about a trace. See tests/python/trace_processor.py.
//
// node trace_processor.mjs FOLDER, with a line of JSON per trace on standard input: its file and a list of queries.
// Prints a line when it is ready and one per trace: a JSON list of lists of rows, or the text of an error.
// FOLDER has Perfetto's WebAssembly (trace_processor.wasm), its loader and its decoder of answers.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { runInThisContext } from "node:vm";
import { pathToFileURL } from "node:url";

const CHUNK_BYTES = 32 << 20;
const [folder] = process.argv.slice(2);

function replaced(text, from, to) {
  if (!text.includes(from)) throw new Error(`this version's loader has no "${from}"`);
  return text.replace(from, to);
}

/** Starts the WebAssembly; its loader was built for a browser's worker. */
async function boot() {
  const worker = { self: globalThis, WorkerGlobalScope() {}, location: { href: `${pathToFileURL(folder)}/` } };
  for (const [name, value] of Object.entries(worker))
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  globalThis.wasmBytes = new Uint8Array(readFileSync(`${folder}/trace_processor.wasm`));
  let loader = readFileSync(`${folder}/engine_bundle.node.js`, "utf8");
  loader = replaced(loader, "this.useMemory64 = hasMemory64Support();", "this.useMemory64 = false;");
  loader = replaced(loader, "locateFile: (s) => s,", "locateFile: (s) => s, wasmBinary: globalThis.wasmBytes,");
  const made = "const wasmBridge = new wasm_bridge_1.WasmBridge();";
  loader = replaced(loader, made, `${made} globalThis.bridge = wasmBridge;`);
  runInThisContext(loader, { filename: "engine_bundle.js" });
  while (!globalThis.bridge.reqBufferAddr) await setTimeout(5);
  return globalThis.bridge;
}

async function connect() {
  const { EngineBase } = await import(pathToFileURL(`${folder}/engine.mjs`));
  const { port1, port2 } = new MessageChannel();
  (await boot()).initialize(port1);
  class Engine extends EngineBase {
    mode = "WASM";
    id = "test";
    constructor() {
      super();
      port2.onmessage = (message) => this.onRpcResponseBytes(message.data);
    }
    rpcSendRequestBytes(data) {
      port2.postMessage(data);
    }
  }
  return new Engine();
}

function rows(result) {
  const found = [];
  for (const row = result.iter({}); row.valid(); row.next())
    found.push(Object.fromEntries(result.columns().map((column) => [column, row.get(column)])));
  return found;
}

async function answers({ trace, queries }) {
  await engine.resetTraceProcessor({});
  const bytes = new Uint8Array(readFileSync(trace));
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) await engine.parse(bytes.subarray(at, at + CHUNK_BYTES));
  await engine.notifyEof();
  const found = [];
  for (const query of queries) found.push(rows(await engine.query(query)));
  return found;
}

console.warn = () => {}; // the decoder does not know all fields of the answers
const engine = await connect();
process.stdout.write("ready\n");
const plain = (_, value) => (typeof value === "bigint" ? Number(value) : value);
for await (const line of createInterface({ input: process.stdin })) {
  const answer = await answers(JSON.parse(line)).catch((error) => String(error));
  process.stdout.write(`${JSON.stringify(answer, plain)}\n`);
}
process.exit(0);
