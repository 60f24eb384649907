// SPDX-License-Identifier: Apache-2.0
// Reports of the demo's Node programs, as message.h describes them.
'use strict';

const fs = require('fs');

// In the order of MESSAGE_COUNTS in message.h.
const NAMES = [
	'WAITING', 'TRIES', 'OPEN', 'LATE_US', 'HOLDS', 'CALLS', 'OK', 'DEFERRED', 'FAILED', 'REFUSED', 'RECOVERED',
	'UNRECOVERED', 'SURVIVED', 'TIMED_OUT', 'RETRIES', 'UNFUNDED', 'PROBES', 'MISSED', 'BEATS', 'BROKEN', 'RECONNECTS',
	'IDLE_CLOSES', 'SERVED', 'GRANTED', 'LOST', 'GIVEN', 'UNTOLD', 'WRITES',
	'LATE_WRITES', 'HARM', 'FENCED', 'RUNS', 'ANSWERS',
];
const counts = Object.fromEntries(NAMES.map(name => [name, 0]));

const print = (...fields) => fs.writeSync(1, `${fields.join('\t')}\n`);

function event(tag, text, peer = '-') {
	print('event', process.hrtime.bigint(), 0, tag, 0, peer, text.replace(/[\t\n]/g, ' '));
}

// Adds to counts, and reports all.
function count(changes) {
	for (const name of Object.keys(changes))
		counts[name] += changes[name];
	print('counts', ...NAMES.map(name => counts[name]));
}

// The libraries insist on a version; 0.0.0 is Dubbo's word for none.
module.exports = { quiet: { info() {}, warn() {}, error() {}, debug() {} }, VERSION: '0.0.0', event, count, counts };
