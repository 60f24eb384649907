#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The Node provider of the demo: "echo" answers with its argument. It is made with sofa-rpc-node and
// dubbo-remoting, which know nothing of spoke.
//
//     node_provider.js <name> <service,service> <registry> <url to listen on>
//
// The lines that it prints are those of message.h.
'use strict';

const { RpcServer } = require('sofa-rpc-node').server;
const { ZookeeperRegistry } = require('sofa-rpc-node').registry;
const protocol = require('dubbo-remoting');
const zookeeper = require('zookeeper-cluster-client');
const { quiet, VERSION, event, count } = require('./node_report.js');

const [name, services, registryUrl, url] = process.argv.slice(2);
const SESSION_MS = 2000; // how long ZooKeeper keeps the entry of a killed provider
const registry = new ZookeeperRegistry({
	logger: quiet,
	address: `${registryUrl.split('//')[1]}/dubbo`,
	zookeeper: {
		createClient: (hosts, options) => zookeeper.createClient(hosts, { ...options, sessionTimeout: SESSION_MS }),
	},
});
const server = new RpcServer({
	logger: quiet, registry, protocol, version: VERSION, group: '',
	port: Number(url.split(':')[2]), publishAddress: '127.0.0.1',
});

// Counts before it answers, so that no answer of a process that is killed next is missing.
async function echo(text) {
	count({ SERVED: 1 });
	return text;
}

for (const interfaceName of services.split(','))
	server.addService({ interfaceName }, { echo });
server.on('error', error => console.error(`${name}: ${error.message}`));
server.start().then(() => server.publish()).then(() => {
	const address = `127.0.0.1:${server.publishPort}`;
	event('LISTENS', `Node: serves ${services.replace(',', ' and ')} at ${address}`, address);
});
process.on('SIGTERM', () => server.close().then(() => process.exit(0)));
