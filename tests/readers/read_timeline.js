#!/usr/bin/env node
// Prints the timelines of messages with stock rhea.
//
//     read_timeline.js amqp://HOST:PORT/ADDRESS   of the messages received from there
//     read_timeline.js                            of standard input: one a line, in hexadecimal
'use strict';

const ANNOTATION = 'x-opt-hopline-timeline';
const MISSING = -(2n ** 63n);
const STAGES = [null, ...('DUE CREATE PUBLISH SERIALIZE SEND RECEIVE DESERIALIZE ENQUEUE ' +
  'DEQUEUE REPUBLISH QUEUE_EVENT NEXT_EVENT KERNEL_SCHED KERNEL_SEND KERNEL_ACK ' +
  'KERNEL_RECEIVE').split(' ')];
STAGES[32] = 'FOREIGN_INGRESS';
STAGES[33] = 'FOREIGN_SENT';

/** Yields {node, clock, stage, detail, ns: BigInt on that clock or null} for each stamp. */
function* readTimeline(octets) {
  if (octets.length < 20 || octets[0] !== 1) throw new RangeError('not a timeline of version 1');
  let node = null, clock = null;
  for (let at = 20, end; at < octets.length; at = end) {
    // n is the detail of a stamp, and the length of any other record.
    const kind = octets[at], n = octets[at + 1] ?? 0;
    end = at + (kind < 0x80 ? 10 : 2 + n);
    const malformed = kind === 0 || (kind < 0x80 && node === null) || (kind === 0x80 && n < 33);
    if (malformed || end > octets.length) {
      throw new RangeError(`malformed record at octet ${at}`);
    }
    if (kind < 0x80) {
      const stage = STAGES[kind] ?? `#${kind}`, ns = octets.readBigInt64BE(at + 2);
      yield { node, clock, stage, detail: n, ns: ns === MISSING ? null : ns };
    } else if (kind === 0x80) {
      clock = `${octets[at + 2]}:${octets.toString('hex', at + 3, at + 19)}`;
      node = octets.toString('utf8', at + 35, end);
    }
  }
}

function show(octets) {
  const stamps = [...readTimeline(octets)];
  const overflow = octets[1] & 1 ? ` overflow, ${octets.readUInt16BE(2)} dropped` : '';
  console.log(`timeline ${octets.toString('hex', 4, 20)}${overflow}`);
  for (const { node, clock, stage, detail, ns } of stamps) {
    console.log(`${node} ${clock} ${stage} ${detail} ${ns ?? '-'}`);
  }
}

function receive(url) {
  const { hostname: host, port, pathname } = new URL(url);
  const connection = require('rhea').connect({ host, port: port || 5672 });
  connection.open_receiver(decodeURIComponent(pathname.slice(1)));
  connection.on('message', ({ message }) => {
    const octets = message.message_annotations?.[ANNOTATION];
    if (octets) show(octets);
  });
}

function readLines() {
  for (const line of require('fs').readFileSync(0, 'ascii').split('\n').filter(Boolean)) {
    show(Buffer.from(line, 'hex'));
  }
}

try {
  if (process.argv[2]) receive(process.argv[2]);
  else readLines();
} catch (error) {
  console.error(`read_timeline.js: ${error.message}`);
  process.exitCode = 1;
}
