// SPDX-License-Identifier: Apache-2.0
// Connects a page to a gateway of spoke. cluster/BROWSERS.md describes the interface. The
// build makes the script smaller, see core/cmake/EmbedFile.cmake: write no blanks in strings.
{
	const home = document.currentScript?.src.replace(/[^/]*$/, '') || '/';
	self.spoke = ({ url = home, user = '', ticket = '', mode = 'socket', share = user } = {}) => {
		const base = new URL('spoke/', new URL(url, location)).href, hub = new EventTarget(), todo = [];
		// `retry` is in ms. `fails`: connections in a row that did not open.
		let last = '', retry = 5e3, fails = 0, tried = 0;
		let link, timer, tabs, leads, met, over, leave, busy;

		const read = JSON.parse, tell = (...facts) => tabs?.postMessage(facts),
			fire = (name, ...detail) => hub.dispatchEvent(new CustomEvent(name, { detail }));
		// A message for this tab. The tab that led before may have passed it on already.
		const take = ({ event, data, id }) => {
			const [epoch, count] = id.split('.'), [mine, had] = last.split('.');
			const fresh = id && (epoch != mine || +count > had);
			if (fresh) last = id;
			met ||= event == 'hello';
			if (fresh || !id || /^(hello|lost)$/.test(event)) fire(event, data, id);
		};
		const pass = news => { tell('m', news); take(news); };
		// An event of the script itself, in all tabs; and a text is not sent, which the console shows, too.
		const say = (event, data = '') => pass({ event, data, id: '' }),
			unsent = why => { say('unsent', why); reportError(why); };
		// Aborting a link closes its connection. Whatever it still does is ignored.
		const stop = () => { clearTimeout(timer); link = link?.abort(); };
		const end = (code, reason = '') => {
			if (over) return;
			over = 1;
			stop();
			tabs = tabs?.close();
			// Code in ms: the other tabs hear of it before one of them is the next to lead.
			leave && setTimeout(leave, code);
			if (code) fire('closed', code, reason);
		};
		// All tabs stay away.
		const deny = (...why) => { tell('x', ...why); end(...why); };
		const again = ms => {
			if (link?.up) say('down');
			stop();
			timer = setTimeout(connect, (ms || retry) * (1 + Math.random()) /2);
		};
		const query = async () => ('?' + new URLSearchParams({ last, user, ticket: ticket.call ? await ticket() : ticket })).replaceAll('+', '%20');
		const flush = async () => {
			while (!busy && link?.up && todo.length) {
				const body = todo.shift();
				if (link.send) link.send(body);
				else {
					busy = 1;
					try {
						const reply = await fetch(base + 'send' + await query(), { method: 'POST', body });
						if (!reply.ok) unsent(await reply.text());
					} catch {}
					busy = 0;
				}
			}
		};
		const put = text => todo.length < 8 && !!flush(todo.push(text));

		const connect = async () => {
			// Two failures in a row: perhaps something in between lets only short requests pass.
			const me = link = new AbortController(), way = fails < 2 ? mode : 'poll';
			const heard = news => {
				const { event, data } = news;
				if (link != me) return;
				// The data of "closed" are a code and a reason, in this order.
				if (event == 'closed') return deny(...Object.values(read(data)));
				if (event == 'reconnect') return again(read(data).retry);
				if (event == 'hello') {
					me.up = 1;
					retry = read(data).retry || retry;
				}
				pass(news);
				flush();
			};
			const get = async at => {
				const reply = await fetch(at, { signal: me.signal, cache: 'no-store' });
				if (/204|403/.test(reply.status)) deny(4001);
				if (reply.status != 200) throw 0;
				return reply;
			};
			// Each ends with its connection, and returns the pause that the gateway asks for.
			const ways = {
				async socket(at) {
					const ws = new WebSocket(at.replace('http', 'ws'));
					me.signal.onabort = () => ws.close();
					me.send = text => ws.send(text);
					ws.onmessage = ({ data }) => heard(read(data));
					const { code, reason } = await new Promise(done => ws.onclose = done);
					if (code > 3999) deny(code, reason);
					if (code == 1009) unsent(reason);
					return +reason.split('retry=')[1];
				},
				async events(at) {
					const reader = (await get(at)).body.pipeThrough(new TextDecoderStream()).getReader();
					let rest = '', pause;
					for (;;) {
						const { value, done } = await reader.read();
						if (done) return pause;
						const events = (rest + value).split('\n\n');
						rest = events.pop();
						for (const event of events) {
							const news = { id: '', event: 'message' };
							for (const line of event.split('\n')) {
								const [name] = line.split(':'), value = line.slice(name.length + 2);
								news[name] = name == 'data' && name in news ? news.data + '\n' + value : value;
							}
							pause = +news.retry;
							if ('data' in news) heard(news);
						}
					}
				},
				async poll(at) {
					for (;;) {
						const { messages = [], last: id = '', again: pause, retry: own = retry } = await (await get(at)).json();
						retry = own;
						// A poll that has to pause was not admitted yet, or the gateway drains.
						if (id && !pause && !me.up) heard({ event: 'hello', data: '{}', id: messages[0] ? '' : id });
						messages.forEach(heard);
						heard({ event: '', id });
						// The gateway is there, so the way that has failed may work now.
						if (mode != way && Date.now() > tried) {
							tried = Date.now() + 6e5;
							return fails = 1;
						}
						await new Promise(done => timer = setTimeout(done, pause));
						at = base + way + await query();
					}
				},
			};
			let pause, late = setTimeout(() => me.up || way == 'poll' || me.abort(), 1e4);
			try {
				const at = base + way + await query();
				if (link == me) pause = await ways[way](at);
			} catch {}
			clearTimeout(late);
			if (link != me) return;
			if (pause != 1) fails = me.up || way == 'poll' ? 0 : fails + 1;
			again(pause);
		};

		// One tab leads: it has the connection. The others follow what it passes on.
		const lead = () => { leads = 1; connect(); };
		if (share && navigator.locks) {
			const name = 'spoke:' + base + share;
			tabs = new BroadcastChannel(name);
			tabs.onmessage = ({ data: [kind, ...facts] }) => ({
				m: take,
				x: end,
				'>': text => leads && put(text),
				'?': () => link?.up && tell('!', last),
				'!': id => met || take({ event: 'hello', data: '{}', id }),
			})[kind](...facts);
			navigator.locks.request(name, () => over || new Promise(done => { leave = done; lead(); })).catch(lead);
			tell('?');
		} else lead();
		return {
			on: (name, hook) => hub.addEventListener(name, ({ detail }) => hook(...detail)),
			send: text => !over && (tabs && !leads ? !tell('>', text) : put(text)),
			close: () => end(),
		};
	};
}
