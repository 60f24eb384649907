// SPDX-License-Identifier: Apache-2.0
// node consumer.js <library> <ZooKeeper> <service> <version>: a consumer made with "sofa" (sofa-rpc-node
// and dubbo-remoting) or "dubbo-js" (apache-dubbo-js). Each line of standard input is a command; each
// prints one line, "= <value>" or "! <error>".
//
//     call <method> <kind>...          calls with values of values.js
//     text <method> <text>             calls with one text
//     attach <name> <text>             sends this attachment with each later call
//     beat <milliseconds>              sends a heartbeat every so many milliseconds
//     oneway <port> <method> <text>    sends a one-way request, which the libraries cannot
'use strict';

const net = require('net');
const readline = require('readline');
const { kinds, describe } = require('./values.js');

const [library, address, service, version] = process.argv.slice(2);
const METHODS = ['describe', 'make', 'fail', 'attachment', 'sleep', 'note', 'notes', 'pid', 'nothing', '$echo', '$invoke'];
const PATIENCE = 10; // s, of a call; a busy machine needs a part of it
const quiet = { info() {}, warn() {}, error() {}, debug() {} };
const attachments = {};

function sofa() {
	const { RpcClient } = require('sofa-rpc-node').client;
	const { ZookeeperRegistry } = require('sofa-rpc-node').registry;
	const registry = new ZookeeperRegistry({ logger: quiet, address: `${address}/dubbo` });
	const client = new RpcClient({ logger: quiet, registry, protocol: require('dubbo-remoting') });
	client.on('error', error => console.error(String(error)));
	const consumer = client.createConsumer({ interfaceName: service, version, group: '', responseTimeout: PATIENCE * 1000 });
	return {
		ready: () => consumer.ready(),
		call: (method, args) => consumer.invoke(method, args, { requestProps: { ...attachments } }),
		beat(ms) {
			setInterval(() => {
				for (const connection of client.connectionManager.connections.values()) {
					connection.options.maxIdleTime = 0; // idle at once
					connection.heartbeat();
				}
			}, ms);
		},
	};
}

function dubboJs() {
	const { Dubbo, setting } = require('apache-dubbo-js');
	const methods = {};
	for (const method of METHODS)
		methods[method] = (...args) => args;
	const dubbo = new Dubbo({
		application: { name: 'node-consumer' },
		register: address,
		dubboInvokeTimeout: PATIENCE,
		dubboSetting: setting.match(service, { version }),
		service: { it: all => all.proxyService({ dubboInterface: service, methods, timeout: PATIENCE * 1000 }) },
	});
	dubbo.use(async (context, next) => {
		context.attachments = attachments;
		await next();
	});
	return {
		ready: () => dubbo.ready(),
		async call(method, args) {
			const { res, err } = await dubbo.service.it[method](...args);
			if (err)
				throw err;
			return res;
		},
	};
}

function sendOneWay(port, method, text) {
	const Request = require('dubbo-remoting/lib/protocol/request');
	const Invocation = require('dubbo-remoting/lib/protocol/invocation');
	const request = new Request(77);
	request.isTwoWay = false;
	request.data = new Invocation({
		methodName: method, args: [text],
		attachments: { dubbo: '2.0.2', path: service, interface: service, version },
	});
	const socket = net.connect(Number(port), '127.0.0.1');
	return new Promise((resolve, reject) => {
		let answered = 0;
		socket.on('error', reject);
		socket.on('data', data => { answered += data.length; });
		socket.write(request.encode({ codecType: 'hessian2' }));
		setTimeout(() => { socket.destroy(); resolve(`${answered} bytes of answer`); }, 300);
	});
}

const peer = library === 'sofa' ? sofa() : dubboJs();

async function obey(line) {
	const [command, ...words] = line.split(' ');
	switch (command) {
	case 'call':
		return peer.call(words[0], words.slice(1).map(kind => kinds[kind]()));
	case 'text':
		return peer.call(words[0], [{ $class: 'java.lang.String', $: words.slice(1).join(' ') }]);
	case 'attach':
		attachments[words[0]] = words.slice(1).join(' ');
		return null;
	case 'beat':
		return peer.beat(Number(words[0]));
	case 'oneway':
		return sendOneWay(words[0], words[1], words.slice(2).join(' '));
	}
	throw new Error(`no such command: ${line}`);
}

async function main() {
	await peer.ready();
	console.log('= ready');
	for await (const line of readline.createInterface({ input: process.stdin })) {
		try {
			console.log(`= ${describe(await obey(line))}`);
		} catch (error) {
			console.log(`! ${error.name}: ${error.message}`);
		}
	}
	process.exit(0);
}

main();
