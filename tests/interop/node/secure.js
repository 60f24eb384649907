// SPDX-License-Identifier: Apache-2.0
// node secure.js <spoke>: other TLS libraries meet spoke, each way: Node's tls, openssl s_client and
// s_server, and curl. Certificates are made by `spoke certs`. Prints a line for each check.
'use strict';

const assert = require('assert');
const { execFile, spawn } = require('child_process');
const { once } = require('events');
const fs = require('fs');
const net = require('net');
const os = require('os');
const path = require('path');
const tls = require('tls');

const spoke = process.argv[2];
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'spoke-secure-'));
const certs = path.join(folder, 'certs');
const started = [];

// MessagePack-RPC: the request [0, 1, "echo", ["hi"]], and its answer [1, 1, nil, "hi"].
const request = Buffer.from('940001a46563686f91a26869', 'hex');
const answer = Buffer.from('940101c0a26869', 'hex');

function end(code) {
	started.forEach(child => child.kill('SIGKILL'));
	fs.rmSync(folder, { recursive: true, force: true });
	process.exit(code);
}
function fail(error) {
	console.error(error.stack || String(error));
	end(1);
}
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

const file = name => path.join(certs, name);
const own = name => ({ cert: fs.readFileSync(file(name + '.pem')), key: fs.readFileSync(file(name + '.key')) });
const files = name => ['--ca', file('ca.pem'), '--cert', file(name + '.pem'), '--key', file(name + '.key')];

function start(program, args, stdio) {
	const child = spawn(program, args, { stdio });
	started.push(child);
	return child;
}

function run(program, ...args) {
	return new Promise(resolve => {
		execFile(program, args, { timeout: 60000 }, (error, stdout, stderr) => {
			resolve({ code: error ? error.code : 0, stdout, stderr });
		});
	});
}

// Starts a provider; returns its port, and the address of its page.
async function serve(...options) {
	const child = start(spoke, ['serve', '--quiet', '--port', '0', '--admin', '127.0.0.1:0', ...options],
		['ignore', 'pipe', 'ignore']);
	let text = '';
	while (!/admin page at .*\n/.test(text)) text += (await once(child.stdout, 'data'))[0];
	return { port: Number(/ listens at .*:(\d+)\n/.exec(text)[1]), page: /admin page at (.*)\n/.exec(text)[1] };
}

// Resolves when as many bytes as the answer has have come.
function read(stream) {
	return new Promise((resolve, reject) => {
		let bytes = Buffer.alloc(0);
		stream.on('data', more => {
			bytes = Buffer.concat([bytes, more]);
			if (bytes.length >= answer.length) resolve(bytes);
		});
		stream.on('error', reject);
		stream.on('end', () => reject(new Error(`the peer ends after ${bytes.length} bytes`)));
	});
}

async function calls(url, ...options) {
	const done = await run(spoke, 'call', url, 'demo.EchoService.echo', '"hello"', ...options);
	assert.strictEqual(done.stdout, '"hello"\n', `spoke call ${url}: ${done.stderr}`);
}

async function nodeCalls(secured) {
	for (const maxVersion of ['TLSv1.3', 'TLSv1.2']) {
		for (const ALPNProtocols of [['spoke'], undefined]) {
			const socket = tls.connect({ port: secured, host: '127.0.0.1', maxVersion, ALPNProtocols,
				ca: fs.readFileSync(file('ca.pem')), ...own('consumer') });
			await once(socket, 'secureConnect');
			assert(socket.authorized);
			assert.strictEqual(socket.getProtocol(), maxVersion);
			assert.strictEqual(socket.alpnProtocol, ALPNProtocols ? 'spoke' : false);
			// In pieces, which are records of their own.
			socket.write(request.subarray(0, 5));
			socket.write(request.subarray(5));
			assert(answer.equals(await read(socket)));
			socket.destroy();
		}
	}
	const stranger = tls.connect({ port: secured, host: '127.0.0.1', ALPNProtocols: ['h2'],
		ca: fs.readFileSync(file('ca.pem')), ...own('consumer') });
	const [error] = await once(stranger, 'error');
	assert.match(error.message, /no.application.protocol/i);
}

// A server of Node, or of openssl, that passes the bytes on to a plain provider.
async function nodeServes(plain) {
	let seen;
	const server = tls.createServer({ ...own('provider'), ca: fs.readFileSync(file('ca.pem')), requestCert: true,
		rejectUnauthorized: true, ALPNProtocols: ['spoke'] }, socket => {
		seen = [socket.getPeerCertificate().subjectaltname, socket.alpnProtocol, socket.getProtocol()];
		const inner = net.connect(plain, '127.0.0.1');
		socket.pipe(inner).pipe(socket);
		socket.on('error', () => inner.destroy());
		inner.on('error', () => socket.destroy());
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	const at = `127.0.0.1:${server.address().port}`;
	await calls(at, ...files('consumer'));
	assert.deepStrictEqual(seen, ['DNS:consumer', 'spoke', 'TLSv1.3']);
	const unnamed = await run(spoke, 'call', at, 'demo.EchoService.echo', '1', ...files('consumer'), '--peer', 'dns:x');
	assert.strictEqual(unnamed.code, 4);
	assert.match(unnamed.stderr, /none of the expected names/);
	const bare = await run(spoke, 'call', at, 'demo.EchoService.echo', '1', '--ca', file('ca.pem'));
	assert.notStrictEqual(bare.code, 0);
	server.close();
}

async function opensslCalls(secured) {
	const client = start('openssl', ['s_client', '-quiet', '-connect', `127.0.0.1:${secured}`, '-tls1_3',
		'-verify_return_error', '-verify_ip', '127.0.0.1', '-CAfile', file('ca.pem'), '-alpn', 'spoke',
		'-cert', file('consumer.pem'), '-key', file('consumer.key')], ['pipe', 'pipe', 'ignore']);
	client.stdin.write(request);
	assert(answer.equals(await read(client.stdout)));
	client.kill();
}

// Returns a port that is free now: with -quiet openssl does not tell the port that it gets.
async function freePort() {
	const server = net.createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address();
	server.close();
	await once(server, 'close');
	return port;
}

async function opensslServes(plain) {
	const at = `127.0.0.1:${await freePort()}`;
	const server = start('openssl', ['s_server', '-quiet', '-accept', at, '-tls1_3', '-Verify', '4',
		'-verify_return_error', '-CAfile', file('ca.pem'), '-alpn', 'spoke',
		'-cert', file('provider.pem'), '-key', file('provider.key')], ['pipe', 'pipe', 'ignore']);
	const inner = net.connect(plain, '127.0.0.1');
	server.stdout.pipe(inner).pipe(server.stdin);
	server.stdin.on('error', () => inner.destroy());
	// It listens soon; --wait makes the consumer try again until then.
	await calls(at, ...files('consumer'), '--wait', '--timeout', '30s');
	server.kill();
	inner.destroy();
}

async function curlCalls(secured) {
	const url = `https://127.0.0.1:${secured}/demo.EchoService/echo`;
	const mutual = ['--cacert', file('ca.pem'), '--cert', file('consumer.pem'), '--key', file('consumer.key')];
	const done = await run('curl', '-sS', '--http1.1', '-d', '["hi"]', ...mutual, url);
	assert.strictEqual(done.stdout.trim(), '"hi"', done.stderr);
	const bare = await run('curl', '-sS', '--http1.1', '-d', '["hi"]', '--cacert', file('ca.pem'), url);
	assert.notStrictEqual(bare.code, 0);
}

async function pageShows(secured, page) {
	const socket = tls.connect({ port: secured, host: '127.0.0.1', ca: fs.readFileSync(file('ca.pem')), ...own('consumer') });
	socket.write(request);
	assert(answer.equals(await read(socket)));
	const metrics = await (await fetch(page + 'metrics')).text();
	assert.match(metrics, /^spoke_tls_certificate_days\{provider="1"\} 36[45]$/m);
	assert.match(metrics, /^spoke_provider_tls_connections\{provider="1"\} [1-9]/m);
	const [provider] = (await (await fetch(page + 'status')).json()).providers;
	assert.match(String(provider.certificate_days), /^36[45]$/);
	const at = `127.0.0.1:${socket.localPort}`;
	assert(provider.peers.find(peer => peer.name === at).tls);
	socket.destroy();
}

async function main() {
	const made = await run(spoke, 'certs', certs);
	assert.strictEqual(made.code, 0, made.stderr);
	const { port: plain } = await serve();
	const { port: secured, page } = await serve(...files('provider'), '--config', settings());
	const checks = { 'Node calls spoke': () => nodeCalls(secured), 'spoke calls Node': () => nodeServes(plain),
		'openssl calls spoke': () => opensslCalls(secured), 'spoke calls openssl': () => opensslServes(plain),
		'curl calls spoke': () => curlCalls(secured), 'the page shows TLS': () => pageShows(secured, page) };
	for (const [name, check] of Object.entries(checks)) {
		await check();
		console.log(`${name}: ok`);
	}
	end(0);
}

function settings() {
	const to = path.join(folder, 'spoke.conf');
	fs.writeFileSync(to, '[provider]\ntls.min = 1.2\n');
	return to;
}

main();
