// SPDX-License-Identifier: Apache-2.0
// The same service on Node's http module: answers with the first argument. Prints its port.
'use strict';

const http = require('http');

const server = http.createServer((request, response) => {
	let text = '';

	request.setEncoding('utf8');
	request.on('data', (part) => {
		text += part;
	});
	request.on('end', () => {
		const body = JSON.stringify(JSON.parse(text)[0]) + '\n';

		response.writeHead(200, {
			'Content-Type': 'application/json',
			'Content-Length': Buffer.byteLength(body),
		});
		response.end(body);
	});
});

server.listen(0, '127.0.0.1', () => {
	console.log(server.address().port);
});
