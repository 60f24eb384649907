// SPDX-License-Identifier: Apache-2.0
// Measures hessian.js, the codec of Node's Dubbo libraries:
//
//   node peer.js <folder with hessian.js> <bodies> <bodies that it reads, to be written> <seconds>
//
// Prints two rows of TSV: name, bodies, bytes, MB/s. Bodies that hessian.js cannot read or write again
// are left out of both.
'use strict';

const fs = require('fs');
const path = require('path');

const [folder, input, output, seconds] = process.argv.slice(2);
const hessian = require(path.join(folder, 'node_modules', 'hessian.js'));
const encoder = new hessian.EncoderV2({ size: 1 << 20 });

function decode(bytes) {
  const decoder = new hessian.DecoderV2(bytes);
  const values = [];

  while (decoder.position() < bytes.length) values.push(decoder.read(true));
  return values;
}

function encode(values) {
  encoder.reset();
  for (const value of values) encoder.write(value);
  return encoder.get();
}

const bodies = [];
const readable = [];
for (const line of fs.readFileSync(input, 'latin1').split('\n')) {
  if (line === '') continue;
  const bytes = Buffer.from(line.split(' ')[1], 'hex');
  try {
    const values = decode(bytes);
    encode(values);
    bodies.push({ bytes, values });
    readable.push(line);
  } catch (error) {
    process.stderr.write(`hessian.js leaves one body out: ${error.message.split('\n')[0].slice(0, 90)}\n`);
  }
}
fs.writeFileSync(output, readable.join('\n') + '\n');

const total = bodies.reduce((sum, body) => sum + body.bytes.length, 0);

// The best of five parts of the time, after a warm-up, as the JIT compiler needs.
function measure(name, work) {
  let best = 0;

  for (let part = 0; part < 6; part++) {
    const start = process.hrtime.bigint();
    let rounds = 0;
    let ns;

    do {
      for (const body of bodies) work(body);
      rounds++;
      ns = Number(process.hrtime.bigint() - start);
    } while (ns < (seconds * 1e9) / 6);
    if (part > 0) best = Math.max(best, (total * rounds * 1000) / ns);
  }
  process.stdout.write(`${name}\t${bodies.length}\t${total}\t${best.toFixed(1)}\n`);
}

measure('hessian.js decode', body => decode(body.bytes));
measure('hessian.js encode', body => encode(body.values));
