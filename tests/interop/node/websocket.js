// SPDX-License-Identifier: Apache-2.0
// node websocket.js <wsserver>: a client made with ws, whose reader of frames is strict, talks to a server
// that is made of spoke's frames. Prints a line for each group of checks.
'use strict';

const assert = require('assert');
const { once } = require('events');
const http = require('http');
const { spawn } = require('child_process');
const WebSocket = require('ws');

const server = spawn(process.argv[2], { stdio: ['pipe', 'pipe', 'inherit'] });

function fail(error) {
	console.error(error.stack || String(error));
	server.stdin.end();
	process.exit(1);
}
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

async function open(url, protocols) {
	const socket = new WebSocket(url, protocols);
	await once(socket, 'open');
	return socket;
}

async function ended(socket) {
	const [code, reason] = await once(socket, 'close');
	return `${code} ${reason}`;
}

async function echo(socket, data, isBinary) {
	const answer = once(socket, 'message');
	socket.send(data, { binary: isBinary });
	const [echoed, binary] = await answer;
	assert.strictEqual(binary, isBinary);
	assert(Buffer.from(data).equals(echoed), `${data.length} bytes come back`);
}

async function handshake(url) {
	const socket = await open(url, ['other', 'spoke.test']);
	assert.strictEqual(socket.protocol, 'spoke.test');
	assert.strictEqual(socket.extensions, '', 'compression is offered, and not taken');
	socket.close();
	await ended(socket);
	const status = headers =>
		new Promise(resolve => http.get(url.replace('ws:', 'http:'), { headers }, answer => resolve(answer.statusCode)));
	const good = {
		Connection: 'Upgrade',
		Upgrade: 'websocket',
		'Sec-WebSocket-Version': '13',
		'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
	};
	assert.strictEqual(await status({}), 426);
	assert.strictEqual(await status({ ...good, 'Sec-WebSocket-Version': '12' }), 426);
	assert.strictEqual(await status({ ...good, 'Sec-WebSocket-Key': 'short' }), 400);
}

async function messages(url) {
	const socket = await open(url);
	for (const size of [0, 1, 125, 126, 127, 4096, 65535, 65536]) {
		await echo(socket, Buffer.alloc(size, 'x').toString(), false);
		await echo(socket, Buffer.alloc(size, 0xff), true);
	}
	await echo(socket, 'Hello-µ@ßöäüàá-UTF-8!! 😀', false);
	const many = new Promise(resolve => {
		let count = 0;
		socket.on('message', data => {
			assert.strictEqual(String(data), `message ${count++}`);
			if (count === 1000) resolve();
		});
	});
	for (let i = 0; i < 1000; i++) socket.send(`message ${i}`);
	await many;
	socket.terminate();
}

async function fragments(url) {
	const socket = await open(url);
	const answer = once(socket, 'message');
	const pong = once(socket, 'pong');
	const euro = Buffer.from('€');
	socket.send(euro.subarray(0, 1), { binary: false, fin: false });
	socket.ping('between');
	socket.send(euro.subarray(1, 2), { binary: false, fin: false });
	socket.send(euro.subarray(2), { binary: false, fin: true });
	assert.strictEqual(String((await pong)[0]), 'between');
	assert.strictEqual(String((await answer)[0]), '€');
	const ping = once(socket, 'ping');
	socket.send('ping are you there');
	assert.strictEqual(String((await ping)[0]), 'are you there');
	socket.terminate();
}

async function closes(url) {
	const cases = [
		[socket => socket.close(), '1005 '],
		[socket => socket.close(1000), '1000 '],
		[socket => socket.close(4001, 'grüße'), '4001 grüße'],
		[socket => socket.close(3000, 'r'.repeat(123)), `3000 ${'r'.repeat(123)}`],
		[socket => socket.send('close 1012 retry=250'), '1012 retry=250'],
		[socket => socket.send('close 1013 later'), '1013 later'],
		[socket => socket.send('close 1005'), '1005 '],
	];
	for (const [act, expected] of cases) {
		const socket = await open(url);
		act(socket);
		assert.strictEqual(await ended(socket), expected);
	}
}

async function failures(url) {
	const cases = [
		[socket => socket.send(Buffer.alloc(65537), { binary: true }), '1009 the message is too long'],
		[socket => socket.send('unmasked', { mask: false }), '1002 a frame is not masked'],
		[socket => socket.send(Buffer.from([0xc0, 0xaf]), { binary: false }), '1007 a text is not UTF-8'],
		[socket => socket._socket.write(Buffer.from([0x83, 0x80, 0, 0, 0, 0])), '1002 unknown opcode'],
		[socket => socket._socket.write(Buffer.from([0xc1])), '1002 a reserved bit is set'],
	];
	for (const [act, expected] of cases) {
		const socket = await open(url);
		act(socket);
		assert.strictEqual(await ended(socket), expected);
	}
}

async function run(port) {
	const groups = { handshake, messages, fragments, closes, failures };
	for (const [name, group] of Object.entries(groups)) {
		await group(`ws://127.0.0.1:${port}/`);
		console.log(`${name}: as expected`);
	}
	server.stdin.end();
}

server.stdout.once('data', port => run(String(port).trim()).catch(fail));
server.on('exit', code => process.exit(code === 0 ? 0 : 1));
