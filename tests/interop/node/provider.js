// SPDX-License-Identifier: Apache-2.0
// node provider.js <ZooKeeper> <service> <version> <port>: a provider made with sofa-rpc-node and
// dubbo-remoting. Prints "ready <port>" when its node is in ZooKeeper; SIGTERM removes the node.
'use strict';

const { RpcServer } = require('sofa-rpc-node').server;
const { ZookeeperRegistry } = require('sofa-rpc-node').registry;
const protocol = require('dubbo-remoting');
const zookeeper = require('zookeeper-cluster-client');
const { kinds, describe } = require('./values.js');

const [address, interfaceName, version, port] = process.argv.slice(2);
const SESSION_MS = 2000; // how long the node of a killed provider stays in ZooKeeper
const quiet = { info() {}, warn() {}, error() {}, debug() {} };
const registry = new ZookeeperRegistry({
	logger: quiet,
	address: `${address}/dubbo`,
	zookeeper: {
		createClient: (hosts, options) =>
			zookeeper.createClient(hosts, { ...options, sessionTimeout: SESSION_MS }),
	},
});
const server = new RpcServer({
	logger: quiet, registry, protocol, version, group: '',
	port: Number(port), publishAddress: '127.0.0.1',
});
server.createContext = req => ({ attachments: req.data.requestProps, signatures: req.data.methodArgSigs });
server.on('error', error => console.error(String(error)));
let notes = 0;

// The library accepts only async functions.
server.addService({ interfaceName }, {
	async describe(value) { return describe(value); },
	async types() { return this.signatures.join(); },
	async make(kind) { return kinds[kind](); },
	// Without a Java type the library writes null, false, 0 and "" without the marker of an answer.
	async nothing() { return null; },
	// Throws: the library answers with status 80 and the message.
	async fail(text) { throw new Error(text); },
	// Returns an exception of a class of its own, with a cause.
	async raise(text) {
		const cause = { $class: 'java.io.IOException', $: { detailMessage: 'disk full', cause: null } };
		return { $class: 'spoke.interop.StoreException', $: { detailMessage: text, cause, code: 7 } };
	},
	async sleep(ms) { return new Promise(resolve => setTimeout(() => resolve(`slept ${ms}`), ms)); },
	async attachment(name) { return describe(this.attachments[name]); },
	async note() { notes++; return 'noted'; },
	async notes() { return `${notes} notes`; },
	async pid() { return process.pid; },
});

server.start().then(() => server.publish()).then(() => console.log(`ready ${server.publishPort}`));
process.on('SIGTERM', () => server.close().then(() => process.exit(0)));
