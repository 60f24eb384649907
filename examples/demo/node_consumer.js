#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The Node consumer of the demo: calls "echo" at a fixed rate and counts the results. It is made with
// sofa-rpc-node and dubbo-remoting, which have no failback: this program calls again after a failure.
//
//     node_consumer.js <name> <service> <registry> <calls a second> <milliseconds before a retry>
//
// The lines that it prints are those of message.h. After SIGTERM it makes no more calls and exits when all
// calls have an outcome.
'use strict';

const { RpcClient } = require('sofa-rpc-node').client;
const { ZookeeperRegistry } = require('sofa-rpc-node').registry;
const protocol = require('dubbo-remoting');
const { quiet, VERSION, event, count, counts } = require('./node_report.js');

const [name, interfaceName, registryUrl, rate, periodMs] = process.argv.slice(2);
const registry = new ZookeeperRegistry({ logger: quiet, address: `${registryUrl.split('//')[1]}/dubbo` });
const client = new RpcClient({ logger: quiet, registry, protocol });
const consumer = client.createConsumer({ interfaceName, version: VERSION, group: '', responseTimeout: 3000 });
const text = { $class: 'java.lang.String', $: name };
let answered = 0; // at the last report
let failed = 0;
let ending = false;
client.on('error', () => {}); // each failed call reports its own error

async function attempt() {
	const echoed = await consumer.invoke('echo', [text]);
	if (echoed !== name)
		throw new Error(`echo answered ${echoed}`);
}

async function again() {
	count({ RETRIES: 1 });
	try {
		await attempt();
		count({ WAITING: -1, RECOVERED: 1 });
	} catch (error) {
		setTimeout(again, Number(periodMs));
	}
}

async function call() {
	count({ CALLS: 1, OPEN: 1 });
	try {
		await attempt();
		count({ OPEN: -1, OK: 1 });
	} catch (error) {
		if (failed++ === 0)
			event('TOLD', `Node: a call failed: ${error.message.split('(')[0]}`);
		count({ OPEN: -1, DEFERRED: 1, WAITING: 1 });
		setTimeout(again, Number(periodMs));
	}
}

function pulse() {
	const now = counts.OK + counts.RECOVERED;
	event('PULSE', `Node: last second: ${now - answered} calls answered, ${failed} failed`);
	answered = now;
	failed = 0;
}

function rest() {
	if (!ending || counts.OPEN > 0 || counts.WAITING > 0)
		return;
	event('RESTS', 'Node: every call has an outcome');
	process.exit(0);
}

consumer.ready().then(() => {
	const beat = setInterval(() => { if (!ending) call(); }, 1000 / Number(rate));
	const pulses = setInterval(pulse, 1000);
	event('CONNECTED', `Node: calls ${interfaceName}`);
	process.on('SIGTERM', () => {
		ending = true;
		clearInterval(beat);
		clearInterval(pulses);
		setInterval(rest, 20);
	});
});
