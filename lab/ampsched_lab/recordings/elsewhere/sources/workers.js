// Four workers, which get parts of work by messages.
const { Worker, isMainThread, parentPort } = require("worker_threads");

function part(number) {
  let value = number;
  for (let round = 0; round < 1500000 + 400000 * (number % 5); round++) {
    value = (Math.imul(value, 1103515245) + 12345) ^ (value >>> 7);
  }
  return value;
}

if (isMainThread) {
  let next = 0, done = 0, sum = 0;
  const parts = 40;
  for (let number = 0; number < 4; number++) {
    const worker = new Worker(__filename);
    const hand = () => (next < parts ? worker.postMessage(next++) : worker.postMessage(-1));
    worker.on("message", (value) => {
      sum += value;
      done++;
      hand();
      if (done === parts) console.log(sum);
    });
    worker.on("online", hand);
  }
} else {
  parentPort.on("message", (number) => (number < 0 ? process.exit(0) : parentPort.postMessage(part(number))));
}
