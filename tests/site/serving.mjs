// Lines of JSON in, a line for each out: what a process of node is asked, one after the other.
import { createInterface } from "node:readline";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

const told = (promise) =>
  promise.then((answers) => ({ answers }), (error) => ({ error: String(error?.stack ?? error) }));

/** What a thread answers, which has nothing of what was asked before. */
async function aside(url, asked) {
  const thread = new Worker(url, { workerData: asked });
  const answered = new Promise((resolve, reject) => {
    const ended = () => reject(new Error("it has ended"));
    thread.once("message", resolve).once("error", reject).once("exit", ended);
  });
  return answered.finally(() => thread.terminate());
}

/** Have the module at `url`, which calls this, answer until nothing more is asked; what `isApart` in a thread. */
export async function serve(url, answer, isApart) {
  if (!isMainThread) {
    parentPort.postMessage(await told(answer(workerData)));
    return;
  }
  for await (const line of createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line);
    const found = isApart(asked) ? aside(url, asked) : told(answer(asked));
    const said = await found.catch((error) => ({ error: String(error.stack) }));
    process.stdout.write(`${JSON.stringify(said)}\n`);
  }
  process.exit(); // whatever has not come to its end
}
