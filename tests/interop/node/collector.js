// SPDX-License-Identifier: Apache-2.0
// node collector.js <program> <calls>: a collector for spans, which starts the program with its port. It
// refuses the first request as busy. It checks what comes with the schema of OpenTelemetry, and strictly
// where JSON differs from the schema.
'use strict';

const http = require('http');
const { spawn } = require('child_process');
const assert = require('assert');
const schema = require('@opentelemetry/otlp-transformer/build/src/generated/root.js');

const Request = schema.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
const [program, calls] = process.argv.slice(2);
const CLIENT = 3;
const SERVER = 2;

function fail(error) {
	console.error(error.stack || String(error));
	process.exit(1);
}
process.on('uncaughtException', fail);

// In JSON, ids are hexadecimal and not base64.
function checkIds(span) {
	assert.match(span.traceId, /^(?!0+$)[0-9a-f]{32}$/);
	assert.match(span.spanId, /^(?!0+$)[0-9a-f]{16}$/);
	if (span.parentSpanId !== undefined) assert.match(span.parentSpanId, /^(?!0+$)[0-9a-f]{16}$/);
	const binary = { ...span };
	for (const id of ['traceId', 'spanId', 'parentSpanId'])
		if (span[id]) binary[id] = Buffer.from(span[id], 'hex').toString('base64');
	return binary;
}

// Nothing of the document may be lost when it becomes a message of the schema.
function sameShape(given, kept, at) {
	if (Array.isArray(given)) {
		assert.strictEqual(kept.length, given.length, at);
		given.forEach((one, i) => sameShape(one, kept[i], `${at}[${i}]`));
	} else if (given && typeof given === 'object') {
		for (const key of Object.keys(given)) {
			assert.ok(kept[key] !== undefined, `${at}.${key} is not in the schema`);
			sameShape(given[key], kept[key], `${at}.${key}`);
		}
	}
}

const attributes = list => Object.fromEntries(list.map(one => [one.key, one.value.stringValue ?? Number(one.value.intValue)]));
const spans = [];
let requests = 0;

function take(request, body) {
	assert.strictEqual(request.method, 'POST');
	assert.strictEqual(request.url, '/v1/traces');
	assert.strictEqual(request.headers['content-type'], 'application/json');
	const document = JSON.parse(body);
	const binary = structuredClone(document);
	for (const resource of binary.resourceSpans)
		for (const scope of resource.scopeSpans) scope.spans = scope.spans.map(checkIds);
	assert.strictEqual(Request.verify(Request.fromObject(binary)), null);
	sameShape(document, Request.toObject(Request.fromObject(binary), { longs: String, bytes: String, arrays: true }), 'request');
	for (const resource of document.resourceSpans) {
		assert.strictEqual(attributes(resource.resource.attributes)['service.name'], 'shop');
		for (const scope of resource.scopeSpans) spans.push(...scope.spans);
	}
}

function judge(said) {
	assert.strictEqual(said, `spans: ${2 * calls} sent, 0 dropped, 0 failed\n`);
	assert.strictEqual(spans.length, 2 * calls);
	const clients = new Map(spans.filter(span => span.kind === CLIENT).map(span => [span.spanId, span]));
	const servers = spans.filter(span => span.kind === SERVER);
	assert.strictEqual(clients.size, Number(calls));
	assert.strictEqual(servers.length, Number(calls));
	for (const span of spans) {
		const about = attributes(span.attributes);
		assert.strictEqual(span.name, 'demo.Stock/take');
		assert.strictEqual(about['rpc.service'], 'demo.Stock');
		assert.strictEqual(about['network.peer.address'], '127.0.0.1');
		assert.ok(about['network.peer.port'] > 0);
		assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano));
		assert.ok(Math.abs(Number(BigInt(span.startTimeUnixNano) / 1000000n) - Date.now()) < 600000, 'the time is not the present');
	}
	for (const span of servers) {
		const parent = clients.get(span.parentSpanId);
		assert.ok(parent, 'a request has no call');
		assert.strictEqual(span.traceId, parent.traceId);
		clients.delete(span.parentSpanId);
		assert.strictEqual(parent.events.length, 1);
		assert.strictEqual(parent.status.code, span.status.code);
	}
	const failed = spans.filter(span => span.status.code === 2);
	assert.strictEqual(failed.length, Number(calls));
	for (const span of failed) assert.strictEqual(span.status.message, 'there is "nothing" in stock');
	assert.ok(requests >= 2, 'nothing was sent again');
}

const server = http.createServer((request, response) => {
	let body = '';
	request.setEncoding('utf8');
	request.on('data', text => { body += text; });
	request.on('end', () => {
		if (++requests === 1) {
			response.writeHead(503).end();
			return;
		}
		take(request, body);
		response.end('{}');
	});
});
server.listen(0, '127.0.0.1', () => {
	const child = spawn(program, [String(server.address().port), calls], { stdio: ['ignore', 'pipe', 'inherit'] });
	let said = '';
	child.stdout.on('data', bytes => { said += bytes; });
	child.on('close', code => {
		assert.strictEqual(code, 0, said);
		judge(said);
		process.exit(0);
	});
	setTimeout(() => { child.kill('SIGKILL'); fail('timeout'); }, 60000).unref();
});
