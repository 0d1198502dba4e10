// A graph in onnxruntime: some rows moved on by some steps, as service/engine/runtime.py does.
// A tensor is {dtype, shape, data}. Shapes: T steps, B rows.
import { filled } from "./tensors.js";

// One at a time: two runs would share the stack of one WebAssembly memory, and onnxruntime-web forgets
// the weights given for every session whenever it has made one.
let last = Promise.resolve();
const inTurn = (task) => (last = last.then(task, task));

export class Runner {
  #ort;
  #session;
  #ports;

  constructor(ort, session, ports) {
    [this.#ort, this.#session, this.#ports] = [ort, session, ports];
  }

  /** The runner of a graph, its weights given as the file it names. Throws for another graph. */
  static async of(ort, ports, graph, weights) {
    const externalData = Object.entries(weights).map(([path, data]) => ({ path, data }));
    const options = { executionProviders: ["wasm"], externalData };
    return new Runner(ort, await inTurn(() => ort.InferenceSession.create(graph, options)), ports);
  }

  /** The state of some rows before their first step. */
  initial(rows = 1) {
    const each = ({ name, dtype, shape, initial }) => [name, filled(dtype, [rows, ...shape], initial)];
    return Object.fromEntries(this.#ports.state.map(each));
  }

  /**
   * Move rows on: `state` `(B, ...)`, `steps` `(T, B, ...)`, `row` `(B, ...)` by port, options that
   * the graph has not left aside. Returns the state after, and `outputs` `(T, B, ...)`.
   */
  run({ state, steps, row }) {
    return inTurn(async () => {
      const known = new Set(this.#session.inputNames);
      const feeds = {};
      for (const [name, { dtype, shape, data }] of Object.entries({ ...state, ...steps, ...row })) {
        if (known.has(name)) feeds[name] = new this.#ort.Tensor(dtype, data, shape);
      }
      const results = await this.#session.run(feeds);
      const told = (port, suffix = "") => {
        const { type, dims, data } = results[`${port.name}${suffix}`];
        return [port.name, { dtype: type, shape: [...dims], data }];
      };
      return {
        state: Object.fromEntries(this.#ports.state.map((port) => told(port, "_after"))),
        outputs: Object.fromEntries(this.#ports.output.map((port) => told(port))),
      };
    });
  }
}
