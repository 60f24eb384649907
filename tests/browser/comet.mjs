// SPDX-License-Identifier: Apache-2.0
// node comet.mjs <spoke> <comet_shop>: tests a gateway, its script and the shop in Chromium.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, createServer as createRelay } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Stage, must, sleep, until } from './host.mjs';

const [program, shop] = process.argv.slice(2);
const RETRY = 800; // ms, the longest pause that the gateways of these tests ask for
const SLACK = 15000; // ms, for a busy machine
const folder = mkdtempSync(join(tmpdir(), 'spoke-comet-'));
const stage = new Stage(program);
const gateways = [];
const closers = [];

writeFileSync(join(folder, 'page.html'), `<!doctype html><title>test</title><script src="/spoke.js"></script><script>
	const news = [], sockets = [], fetched = [], fetches = fetch, errors = [], pauses = [], timeout = setTimeout;
	self.setTimeout = (call, ms) => { pauses.push(ms); return timeout(call, ms); };
	self.onerror = text => { errors.push(text); };
	self.fetch = (url, more) => { fetched.push(url); return fetches(url, more); };
	const Plain = WebSocket;
	self.WebSocket = function (url) {
		const socket = new Plain(url), it = { url, at: performance.now() };
		sockets.push(it);
		socket.addEventListener('close', e => Object.assign(it, { code: e.code, reason: e.reason, closed: performance.now() }));
		return socket;
	};
	// Connects by the script, or by a plain EventSource.
	function follow(user, mode, more = {}) {
		const note = event => (data, id) => news.push({ event, data, id, at: performance.now() });
		if (mode == 'plain') {
			self.source = new EventSource('/spoke/events?user=' + user + (more.last ? '&last=' + more.last : ''));
			for (const event of ['n', 'hello', 'lost', 'reconnect']) source.addEventListener(event, e => note(event)(e.data, e.lastEventId));
			return;
		}
		self.it = spoke({ user, mode, ...more });
		for (const event of ['n', 'hello', 'lost', 'down', 'closed', 'unsent']) it.on(event, note(event));
	}
</script>`);

class Gateway {
	constructor(settings = '') {
		this.settings = settings;
		this.at = '127.0.0.1:0';
		this.rpc = '127.0.0.1:0';
		this.conf = join(folder, `${gateways.length}.conf`);
		gateways.push(this);
	}
	// A gateway that starts again has the same addresses.
	async start() {
		writeFileSync(this.conf, `[comet]\nlisten = ${this.at}\nretry.min = 300ms\nretry.max = ${RETRY}ms\npage = ${folder}/page.html\n` +
			`${this.settings.includes('query.user') ? '' : 'query.user = true\n'}${this.settings}\n[provider]\nlisten = tcp://${this.rpc}\n`);
		this.process = spawn(program, ['comet', '--quiet', this.conf], { stdio: ['ignore', 'pipe', 'inherit'] });
		let said = '';
		this.process.stdout.on('data', bytes => { said += bytes; });
		this.ended = new Promise(done => { this.process.on('exit', done); });
		const [, at, rpc] = await until('the gateway listens', () => /pages connect to (\S+)\n.*Comet listens at (\S+)\n/.exec(said));
		Object.assign(this, { at, rpc, url: `http://${at}/` });
		return this;
	}
	async kill() {
		this.process.kill('SIGKILL');
		await this.ended;
	}
	async call(method, ...args) {
		const answer = await fetch(`http://${this.rpc}/${method.includes('/') ? method : `spoke.Comet/${method}`}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(args) });
		must(answer.status === 200, `${method}: ${answer.status} ${await answer.clone().text()}`);
		return answer.json();
	}
	push(user, data) { return this.call('push', user, 'n', String(data)); }
	async figure(name) { return (await this.call('stats'))[name]; }
}

// Passes bytes on to a gateway. `cut`: a text; the connection that it comes through first ends in its middle.
class Relay {
	async start(gateway, refuses = () => false) {
		this.count = 0;
		const server = createRelay(near => {
			const far = connect(Number(gateway.at.split(':')[1]), '127.0.0.1');
			const end = () => { near.destroy(); far.destroy(); };
			this.count++;
			near.on('data', bytes => (refuses(String(bytes)) ? end() : far.write(bytes)));
			far.on('data', bytes => {
				const at = this.cut ? bytes.indexOf(this.cut) : -1;
				if (at < 0) { near.write(bytes); return; }
				near.write(bytes.subarray(0, at + this.cut.length / 2), end);
				this.cut = null;
			});
			for (const socket of [near, far]) socket.on('error', end).on('close', end);
		});
		await new Promise(done => { server.listen(0, '127.0.0.1', done); });
		closers.push(server);
		this.url = `http://127.0.0.1:${server.address().port}/`;
		return this;
	}
}

const news = (page, event) => page.evaluate(event => news.filter(it => it.event === event), event);
const numbers = async page => (await news(page, 'n')).map(it => Number(it.data));
const heard = (page, event, count = 1) => until(`${count} of ${event}`, async () => (await news(page, event)).length >= count);
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
// All numbers up to `to` have come, each once and in order.
async function complete(page, to, from = 1) {
	await until(`message ${to}`, async () => (await numbers(page)).at(-1) === to);
	must((await numbers(page)).join() === range(from, to).join(), `messages: ${await numbers(page)}`);
	const ids = (await news(page, 'n')).map(it => it.id.split('.'));
	must(ids.every(([epoch, number], i) => i === 0 || epoch !== ids[i - 1][0] || Number(number) > Number(ids[i - 1][1])), `ids: ${ids.join(' ')}`);
}
async function open(url) {
	const page = await stage.open(url);
	page.follow = (...facts) => page.evaluate(facts => follow(...facts), facts);
	return page;
}
const done = page => page.context().close();
const WAYS = ['plain', 'socket', 'events', 'poll'];
let main; // a gateway for several tests

const tests = {
	async 'hundred pushes arrive once and in order, with ids'() {
		for (const way of WAYS) {
			const page = await open(main.url), user = `hundred-${way}`;
			await page.follow(user, way);
			await heard(page, 'hello');
			for (const i of range(1, 100)) await main.push(user, i);
			await complete(page, 100);
			must((await news(page, 'lost')).length === 0, `${way}: lost`);
			await done(page);
		}
	},
	async 'page that falls behind is told of every gap'() {
		const gateway = await new Gateway('ring.messages = 2').start();
		for (const way of WAYS) {
			const page = await open(gateway.url);
			await page.follow(way, way);
			await heard(page, 'hello');
			for (const i of range(1, 60)) await gateway.push(way, i);
			// Who is told "lost" follows from the newest message on, and may fall behind again before that is seen.
			let count = 60, losses = 0;
			await until('the last message', async () => {
				const told = (await news(page, 'lost')).length;
				if (told > losses) {
					losses = told;
					await gateway.push(way, ++count);
				}
				return (await numbers(page)).at(-1) === count;
			});
			let next = 1, told = false;
			for (const { event, data } of await page.evaluate(() => news)) {
				told ||= event === 'lost';
				if (event !== 'n') continue;
				must(Number(data) === next || (told && Number(data) > next), `${way}: ${data} in place of ${next}`);
				next = Number(data) + 1;
				told = false;
			}
			await done(page);
		}
	},
	async 'killed gateway is found again within its retry, and the loss is told'() {
		const gateway = await new Gateway().start();
		const pages = await Promise.all(WAYS.map(() => open(gateway.url)));
		for (const [i, page] of pages.entries()) {
			await page.follow(WAYS[i], WAYS[i]);
			await heard(page, 'hello');
			await gateway.push(WAYS[i], 1);
			await heard(page, 'n');
		}
		await gateway.kill();
		await gateway.start();
		const begun = Date.now();
		await Promise.all(pages.map(page => heard(page, 'lost')));
		must(Date.now() - begun < RETRY + SLACK, `back after ${Date.now() - begun} ms`);
		for (const [i, page] of pages.entries()) {
			await gateway.push(WAYS[i], 2);
			await complete(page, 2);
			must((await news(page, 'lost')).length === 1, `${WAYS[i]}: lost is told more than once`);
			// Not the pauses of spoke.js itself: 10 s to connect, those between two polls, and up to 1 ms before
			// it leaves polling.
			const pauses = await page.evaluate(() => pauses.filter(ms => ms > 1 && ms !== 1e4));
			must(WAYS[i] === 'plain' || pauses.length, `${WAYS[i]}: no pause`);
			must(pauses.every(ms => ms >= 150 && ms <= RETRY), `${WAYS[i]}: pauses of ${pauses} ms`);
			await done(page);
		}
	},
	async 'event that is cut is replayed whole, and not twice'() {
		const relay = await new Relay().start(main);
		for (const way of WAYS) {
			const page = await open(relay.url), user = `cut-${way}`;
			await page.follow(user, way);
			await heard(page, 'hello');
			await main.push(user, 1);
			await heard(page, 'n');
			relay.cut = '2222222222';
			await main.push(user, 2222222222);
			await main.push(user, 3);
			await until('the messages', async () => (await numbers(page)).at(-1) === 3);
			must(relay.cut === null, `${way}: nothing was cut`);
			must((await numbers(page)).join() === '1,2222222222,3', `${way}: ${await numbers(page)}`);
			must((await news(page, 'lost')).length === 0, `${way}: lost`);
			await done(page);
		}
	},
	async 'websocket told to restart comes back once, in time, with its last id'() {
		const gateway = await new Gateway('life = 1s').start();
		const page = await open(gateway.url);
		await page.follow('ann', 'socket');
		await heard(page, 'hello');
		const { id } = await gateway.push('ann', 1);
		await heard(page, 'hello', 2);
		const [first, second] = await page.evaluate(() => sockets);
		const retry = Number(/^retry=(\d+)$/.exec(first.reason)[1]);
		must(first.code === 1012, `closed with ${first.code}`);
		must(retry === 300, `retry ${retry}`);
		must(new URL(second.url).searchParams.get('last') === id, `${second.url} does not have ${id}`);
		must(second.at - first.closed >= retry / 2 - 5, `back after ${second.at - first.closed} ms`);
		must(second.at - first.closed <= retry + SLACK, `back after ${second.at - first.closed} ms`);
		await heard(page, 'hello', 3);
		const all = await page.evaluate(() => sockets);
		must(all.length === (await news(page, 'hello')).length, `${all.length} sockets`);
		await done(page);
	},
	async 'ten tabs have six connections without the script, and one with it'() {
		const context = await stage.browser.newContext();
		const tabs = [];
		for (const _ of range(1, 10)) {
			const tab = await context.newPage();
			await tab.goto(main.url);
			tab.follow = (...facts) => tab.evaluate(facts => follow(...facts), facts);
			tabs.push(tab);
		}
		await Promise.all(tabs.map(tab => tab.follow('tabs', 'plain')));
		const opened = async () => (await Promise.all(tabs.map(tab => tab.evaluate(() => source.readyState)))).filter(state => state === 1).length;
		await until('six tabs are connected', async () => await opened() === 6);
		must(await main.figure('events') === 6, `${await main.figure('events')} connections`);
		await Promise.all(tabs.map(tab => tab.evaluate(() => source.close())));
		await until('no tab is connected', async () => await main.figure('events') === 0);

		await Promise.all(tabs.map(tab => tab.evaluate(() => { news.length = 0; })));
		await Promise.all(tabs.map(tab => tab.follow('tabs', 'events')));
		await Promise.all(tabs.map(tab => heard(tab, 'hello')));
		must(await main.figure('events') === 1, `${await main.figure('events')} connections`);
		for (const i of range(1, 5)) await main.push('tabs', i);
		await Promise.all(tabs.map(tab => complete(tab, 5)));

		// The tab that leads is closed: another one takes over.
		const leads = await Promise.all(tabs.map(tab => tab.evaluate(() => fetched.length > 0)));
		must(leads.filter(Boolean).length === 1, `${leads.filter(Boolean).length} tabs lead`);
		const [leader] = tabs.splice(leads.indexOf(true), 1);
		await leader.close();
		for (const i of range(6, 10)) await main.push('tabs', i);
		await Promise.all(tabs.map(tab => complete(tab, 10)));
		must(await main.figure('events') === 1, `${await main.figure('events')} connections`);
		await context.close();
	},
	async 'origins are checked: foreign, null and none'() {
		const server = createServer((request, answer) => answer.writeHead(200, { 'Content-Type': 'text/html' })
			.end(`<!doctype html><title>foreign</title>${request.url === '/' ? '<iframe sandbox=allow-scripts src=/inner></iframe>' : ''}`));
		await new Promise(done => { server.listen(0, '127.0.0.1', done); });
		closers.push(server);
		const foreign = `http://127.0.0.1:${server.address().port}`;
		const close = (page, at) => page.evaluate(at => new Promise(done => {
			const socket = new WebSocket(`ws://${at}/spoke/socket?user=ann`);
			socket.onmessage = () => done('message');
			socket.onclose = event => done(event.code);
		}), at);
		const stays = (page, at) => page.evaluate(at => new Promise(done => {
			const source = new EventSource(`http://${at}/spoke/events?user=ann`);
			source.onerror = () => done(source.readyState);
			source.addEventListener('hello', () => done('hello'));
		}), at);
		const page = await (await stage.browser.newContext()).newPage();
		await page.goto(foreign);
		must(await close(page, main.at) === 4003, 'a foreign origin is not refused');
		must(await stays(page, main.at) === 2, 'an EventSource of a foreign origin is not refused');
		const listed = await new Gateway(`origins = https://a.example,${foreign}`).start();
		must(await close(page, listed.at) === 'message', 'a listed origin is refused');
		// The script is for pages of listed origins, too.
		const loads = at => page.evaluate(at => new Promise(done => {
			const script = document.createElement('script');
			Object.assign(script, { src: `http://${at}/spoke.js`, onload: () => done('loaded'), onerror: () => done('blocked') });
			document.head.append(script);
		}), at);
		must(await loads(main.at) === 'blocked', 'the script is for all origins');
		must(await loads(listed.at) === 'loaded', 'the script is not for listed origins');
		for (const mode of ['socket', 'events', 'poll'])
			await page.evaluate(({ mode, url }) => new Promise(done => { spoke({ url, user: mode, mode }).on('hello', () => done()); }), { mode, url: listed.url });
		// A frame without an origin of its own.
		const frame = await until('the frame', () => page.frames().find(it => it.url().endsWith('/inner')));
		must(await frame.evaluate(() => origin) === 'null', 'the frame has an origin');
		for (const at of [main.at, listed.at]) {
			const code = await close(frame, at);
			must(code === 4003, `origin null: ${code}`);
		}
		await done(page);

		// Browsers always send an origin for a WebSocket, so this is a plain socket.
		const bytes = await new Promise(done => {
			const all = [], socket = connect(Number(main.at.split(':')[1]), '127.0.0.1', () => socket.write(
				`GET /spoke/socket?user=ann HTTP/1.1\r\nHost: ${main.at}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
				'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'));
			socket.on('data', part => all.push(part)).on('end', () => { socket.end(); done(Buffer.concat(all)); });
		});
		const last = bytes.subarray(bytes.indexOf('\r\n\r\n') + 4);
		must(last[0] === 0x88 && last.readUInt16BE(2) === 4003, `no origin: ${bytes}`);
		must((await fetch(`${main.url}spoke/send`, { method: 'POST', body: 'x' })).status >= 400, 'a POST without an origin is taken');
	},
	async 'lives end, the user stays the same, and nothing is missed'() {
		const gateway = await new Gateway('life = 700ms').start();
		for (const way of WAYS.slice(0, 3)) {
			const page = await open(gateway.url), user = `life-${way}`;
			await page.follow(user, way);
			await heard(page, 'hello');
			let count = 0;
			await until('four lives', async () => { await gateway.push(user, ++count); return (await news(page, 'hello')).length >= 4; });
			await complete(page, count);
			must((await news(page, 'lost')).length === 0, `${way}: lost`);
			must(await gateway.figure('users') === 1 + WAYS.indexOf(way), `${await gateway.figure('users')} users`);
			await done(page);
		}
		must(await gateway.figure('closed_life') >= 9, 'too few lives have ended');
	},
	async 'user who comes back within keep gets the rest, and later the loss is told'() {
		const gateway = await new Gateway('keep = 3s').start();
		for (const way of ['plain', 'socket', 'events']) {
			const page = await open(gateway.url);
			await page.follow('ann', way);
			await heard(page, 'hello');
			const { id: last } = await gateway.push('ann', 1);
			await heard(page, 'n');
			await page.reload();
			await until('the user is absent', async () => (await gateway.call('who', 'ann')).connections === 0);
			for (const i of range(2, 4)) await gateway.push('ann', i);
			await page.follow('ann', 'plain', { last });
			await complete(page, 4, 2);
			must((await news(page, 'lost')).length === 0, `${way}: lost`);
			await page.reload();
			await until('the user is forgotten', async () => await gateway.figure('users') === 0);
			await gateway.push('ann', 5);
			await page.follow('ann', 'plain', { last });
			await heard(page, 'lost');
			must((await numbers(page)).length === 0, `messages: ${await numbers(page)}`);
			await done(page);
			await until('the user is forgotten', async () => await gateway.figure('users') === 0);
		}
	},
	async 'ticket admits once, and a refused page stays away'() {
		const gateway = await new Gateway('query.user = false').start();
		const { ticket } = await gateway.call('spoke.Tickets/issue', 'ann');
		for (const mode of ['socket', 'events', 'poll']) {
			const page = await open(gateway.url);
			const { ticket: own } = await gateway.call('spoke.Tickets/issue', 'ann');
			await page.follow('', mode, { ticket: own });
			await heard(page, 'hello');
			must((await gateway.call('who', 'ann')).connections === 1 || mode === 'poll', `${mode}: not ann`);
			await done(page);
			const second = await open(gateway.url);
			await second.follow('', mode, { ticket: own });
			await heard(second, 'closed');
			must((await news(second, 'closed'))[0].data === 4001, `${mode}: ${JSON.stringify(await news(second, 'closed'))}`);
			await done(second);
		}
		must(ticket.length === 40, ticket);
	},
	async 'texts of pages reach the backend'() {
		let heard_bytes = '';
		const backend = createRelay(socket => {
			socket.on('data', bytes => { heard_bytes += bytes.toString('latin1'); }).on('error', () => {});
		});
		await new Promise(done => { backend.listen(0, '127.0.0.1', done); });
		closers.push(backend);
		const gateway = await new Gateway(`backend = msgpack-rpc://127.0.0.1:${backend.address().port}/demo.Shop`).start();
		for (const mode of ['socket', 'events', 'poll']) {
			const page = await open(gateway.url);
			await page.follow(mode, mode);
			await heard(page, 'hello');
			must(await page.evaluate(mode => it.send(`text by ${mode}`), mode), `${mode}: send() refuses`);
			await until(`the text by ${mode}`, () => heard_bytes.includes('received') && heard_bytes.includes(`text by ${mode}`));
			await done(page);
		}
	},
	async 'text that is too long is an error that the page sees'() {
		const gateway = await new Gateway('backend = msgpack-rpc://127.0.0.1:1/demo.Shop\ntext.max = 2KiB').start();
		for (const mode of ['socket', 'events', 'poll']) {
			const page = await open(gateway.url);
			await page.follow(mode, mode);
			await heard(page, 'hello');
			await page.evaluate(() => it.send('x'.repeat(2049)));
			await heard(page, 'unsent');
			const [{ data }] = await news(page, 'unsent');
			must(mode === 'socket' ? data.length > 5 : data === 'A text of a page is limited to 2048 bytes (text.max).\n', `${mode}: ${data}`);
			must((await page.evaluate(() => errors)).join().includes(data.trim()), `${mode}: ${await page.evaluate(() => errors)}`);
			// The next one is sent.
			const before = await gateway.figure('received');
			await until('a text that is not too long', async () => {
				await page.evaluate(() => it.send('x'.repeat(2048)));
				return await gateway.figure('received') > before;
			});
			await done(page);
		}
	},
	async 'kicked user is told the reason in all tabs, and stays away'() {
		for (const mode of ['socket', 'events', 'poll']) {
			const context = await stage.browser.newContext(), user = `kicked-${mode}`, reason = `enough "${mode}" \\`;
			const tabs = [await context.newPage(), await context.newPage()];
			for (const tab of tabs) {
				await tab.goto(main.url);
				await tab.evaluate(facts => follow(...facts), [user, mode]);
				await heard(tab, 'hello');
			}
			// A poll is held.
			await until('the user is there', async () => (await main.call('who', user)).connections === 1);
			const opened = await main.figure('opened');
			must((await main.call('kick', user, reason)).connections === 1, `${mode}: nothing is kicked`);
			for (const tab of tabs) {
				await heard(tab, 'closed');
				const [{ data, id }] = await news(tab, 'closed');
				must(data === 4004 && id === reason, `${mode}: closed with ${data} ${id}`);
			}
			// No pause before another connection is under way, and no tab takes over.
			must((await tabs[0].evaluate(() => pauses)).every(ms => !(ms > 1) || ms === 1e4 || ms === 4004), `${mode}: the page comes back`);
			await sleep(100);
			must(await main.figure('opened') === opened, `${mode}: another tab has taken over`);
			must((await main.call('who', user)).connections === 0, `${mode}: the user is there`);
			await context.close();
		}
	},
	async 'poll that the gateway does not serve yet is not a connection'() {
		const page = await open(main.url), lasts = [];
		await page.follow('unserved', 'poll');
		await heard(page, 'hello');
		await page.route('**/spoke/poll*', route => {
			const last = new URL(route.request().url()).searchParams.get('last');
			lasts.push(last);
			if (lasts.length === 1) return route.abort();
			if (lasts.length === 2) return route.fulfill({ json: { last, retry: 500, again: 300 } });
			return route.continue();
		});
		await main.push('unserved', 1);
		await heard(page, 'down');
		await until('a poll is held', async () => lasts.length === 3 && (await main.call('who', 'unserved')).connections === 1);
		must((await news(page, 'hello')).length === 1, 'the page is told that it is connected');
		await main.push('unserved', 2);
		await complete(page, 2);
		must((await news(page, 'hello')).length === 2, 'the page is not told that it is connected');
		must(lasts[0] && lasts.slice(0, 3).every(last => last === lasts[0]), `last ids: ${lasts}`);
		await done(page);
	},
	async 'page polls where websockets do not pass'() {
		const relay = await new Relay().start(main, text => /Upgrade: websocket/i.test(text));
		const page = await open(relay.url);
		await page.follow('behind', 'socket');
		await heard(page, 'hello');
		for (const i of range(1, 3)) await main.push('behind', i);
		await complete(page, 3);
		must(await main.figure('sockets') === 0, 'a websocket has passed');
		await done(page);
	},
	async 'shop shows its visitors and an announcement in two browsers'() {
		const it = spawn(shop, ['examples/comet/shop.html', '127.0.0.1:0', 'tcp://127.0.0.1:0', String(RETRY)], { stdio: ['ignore', 'pipe', 'inherit'] });
		let said = '';
		it.stdout.on('data', bytes => { said += bytes; });
		try {
			const [, url, rpc] = await until('the shop is open', () => /the shop is at (\S+)\nspoke.Comet listens at (\S+)\n/.exec(said));
			const [ann, bob] = await Promise.all([stage.open(url), stage.open(`${url}#bob`)]);
			await ann.fill('#name', 'ann');
			await ann.click('button');
			for (const page of [ann, bob]) await until('both are shown', async () => (await page.locator('#here span').allInnerTexts()).sort().join() === 'ann,bob');
			const call = spawn(program, ['call', `tcp://${rpc}`, 'spoke.Comet.push_all', '"offer"', '"Green tea: 3 EUR <b>"'], { stdio: ['ignore', 'ignore', 'inherit'] });
			must(await new Promise(end => { call.on('exit', end); }) === 0, 'the call has failed');
			for (const page of [ann, bob]) await until('the offer', async () => await page.locator('#offers li').allInnerTexts().then(all => all.join()) === 'Green tea: 3 EUR <b>');
			// Texts of a page without a WebSocket are posted.
			const figures = async () => (await fetch(`http://${rpc}/spoke.Comet/stats`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '[]' })).json();
			for (const mode of ['events', 'poll', 'socket']) {
				const before = (await figures()).received;
				must(await ann.evaluate(mode => new Promise(done => {
					self.other = spoke({ user: 'ann', mode, share: '' });
					other.on('hello', () => done(other.send('one') && other.send('two')));
				}), mode), `${mode}: send() refuses`);
				await until(`${mode}: two texts`, async () => (await figures()).received === before + 2);
				await ann.evaluate(() => other.close());
			}
			await done(bob);
			await until('bob has left', async () => (await ann.locator('#here span').allInnerTexts()).join() === 'ann');
			must(ann.wrong.length === 0, ann.wrong.join('; '));
			await done(ann);
		} finally {
			it.kill('SIGKILL');
		}
	},
};

let failed = 0;
const begun = Date.now();
try {
	await stage.browse();
	main = await new Gateway('ring.messages = 200\nring.bytes = 64KiB').start();
	for (const [name, run] of Object.entries(tests)) {
		if (process.env.ONLY && !name.includes(process.env.ONLY)) continue;
		const at = Date.now();
		try {
			await run();
			console.log(`ok      ${name} (${Date.now() - at} ms)`);
		} catch (error) {
			failed++;
			console.log(`FAILED  ${name}: ${error.stack}`);
		}
	}
} finally {
	for (const closer of closers) closer.close();
	for (const gateway of gateways) gateway.process?.kill('SIGKILL');
	await stage.end();
	rmSync(folder, { recursive: true, force: true });
}
console.log(`${failed} of the tests of the gateway failed, ${Date.now() - begun} ms`);
process.exit(failed ? 1 : 0);
