// SPDX-License-Identifier: Apache-2.0
// node wsrows.js <websocket.tsv>: the reader of ws on the rows that judge spoke's reader, whose notation
// tests/transport/http/wsrig.h describes. Both must have the same verdicts, but for the rows that are listed here.
'use strict';

const assert = require('assert');
const fs = require('fs');
const { Receiver } = require('ws');

const DEFAULT_LIMIT = 16384;
const LONG = 1 << 20; // bytes: longer rows take too long here

// ws accepts lengths that are not in their shortest form, and sees a length with its top bit set as too long.
const differences = {
	'len.16.of.0': 't:',
	'len.16.of.125': 't:*125',
	'len.64.of.0': 'b:',
	'len.64.of.126': 'b:*126',
	'len.64.of.65535': 'b:*65535',
	'len.64.top.bit': 'f1009',
	'len.64.top.bits': 'f1009',
};

function payload(text) {
	return Buffer.concat(
		text.split('+').map(part => {
			if (part[0] === '*') return Buffer.alloc(Number(part.slice(1)), '*');
			return part[0] === '#' ? Buffer.from(part.slice(1), 'hex') : Buffer.from(part);
		}),
	);
}

function frame(word) {
	const [, first, form, text] = /^([0-9a-f]{2})(?:\/(u|16|64))?:(.*)$/.exec(word);
	const data = payload(text);
	const bytes = form === '16' ? 2 : form === '64' ? 8 : data.length < 126 ? 0 : data.length < 65536 ? 2 : 8;
	const head = Buffer.alloc(2 + bytes);
	head[0] = parseInt(first, 16);
	head[1] = bytes === 0 ? data.length : bytes === 2 ? 126 : 127;
	if (bytes > 0) head.writeUIntBE(data.length, 2 + bytes - Math.min(bytes, 6), Math.min(bytes, 6));
	if (form === 'u') return Buffer.concat([head, data]);
	head[1] |= 0x80;
	const mask = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);
	return Buffer.concat([head, mask, data.map((byte, i) => byte ^ mask[i % 4])]);
}

// The words of a column, with repetitions.
function words(column) {
	return column.split(' ').filter(Boolean).flatMap(word => {
		const [, times, rest] = /^(?:(\d+)x)?(.*)$/.exec(word);
		return Array(Number(times || 1)).fill(rest);
	});
}

function expected(column) {
	return words(column).filter(word => word !== '-').map(word => {
		const [, kind, code, text] = /^([tbpocf])(\d*)(?:@\d+)?(?::(.*))?$/.exec(word);
		return kind === 'f' ? `f${code}` : `${kind}${code}:${payload(text).toString('hex')}`;
	});
}

function run(limit, bytes) {
	const found = [];
	const receiver = new Receiver({ isServer: true, maxPayload: limit, binaryType: 'nodebuffer', allowSynchronousEvents: true });
	const add = kind => data => found.push(`${kind}:${data.toString('hex')}`);
	receiver.on('message', (data, isBinary) => add(isBinary ? 'b' : 't')(data));
	receiver.on('ping', add('p'));
	receiver.on('pong', add('o'));
	receiver.on('conclude', (code, reason) => add(`c${code}`)(reason));
	return new Promise(resolve => {
		receiver.on('error', error => {
			const code = error[Object.getOwnPropertySymbols(error).find(symbol => symbol.description === 'status-code')];
			found.push(`f${code}`);
			resolve(found);
		});
		receiver.write(bytes, () => setImmediate(resolve, found));
	});
}

async function main() {
	let rows = 0;
	const different = [];
	for (const line of fs.readFileSync(process.argv[2], 'utf8').split('\n')) {
		if (!line || line[0] === '#') continue;
		const [id, limit, sent, verdicts] = line.split('\t');
		const bytes = Buffer.concat(words(sent).map(word => (word[0] === '=' ? payload(word.slice(1)) : frame(word))));
		if (bytes.length > LONG) continue;
		const found = (await run(limit === '-' ? DEFAULT_LIMIT : Number(limit), bytes)).join(' ');
		const wanted = expected(verdicts).join(' ');
		rows++;
		if (found === wanted) continue;
		different.push(id);
		const known = expected(differences[id] || '').join(' ');
		assert.strictEqual(found, known, `${id}: ws has ${found.slice(0, 99)}, not ${wanted.slice(0, 99)}`);
	}
	assert.deepStrictEqual(different, Object.keys(differences));
	console.log(`${rows} rows, ws differs on ${different.length}`);
}

main().catch(error => {
	console.error(error.stack);
	process.exit(1);
});
