// SPDX-License-Identifier: Apache-2.0
// node look.mjs <page_host> <folder for pictures>: tests the admin page, and takes screenshots.
import { join } from 'node:path';
import { Stage, must, sleep, until } from './host.mjs';

const [program, pictures] = process.argv.slice(2);
const stage = new Stage(program);
const picture = (page, name, whole = true) => page.screenshot({ path: join(pictures, `${name}.png`), fullPage: whole });
const text = (page, selector) => page.locator(selector).first().innerText();
const row = (page, address) => page.locator('#peers .row', { has: page.locator('.where', { hasText: address }) });
const isLive = page => until('the stream is live', async () => await text(page, '#live') === 'live');
const post = (process, path, headers = {}) => fetch(process.url + path, { method: 'POST', headers });

let one, two, consumer, busy, hostile, idle;

const tests = {
	async 'rows appear and are updated'() {
		const page = await stage.open(consumer.url);
		await isLive(page);
		await until('two endpoints are ready', async () => await page.locator('#peers .pill', { hasText: 'Ready' }).count() === 2);
		must(await page.locator('#peers .who', { hasText: 'spoke' }).count() === 2, 'the providers are not named');
		const calls = async () => Number((await row(page, /./).nth(1).locator('.n').nth(2).innerText()).replace(/\D/g, ''));
		const before = await calls();
		must(before >= 0, 'calls are not a number');
		await until('calls are counted', async () => await calls() > before);
		await until('tickets wait', async () => await page.locator('.task').count() > 0);
		must(/process \d+/.test(await text(page, '#about')), 'the process has no number');
		must(await text(page, '#pending') !== '–', 'timers are not counted');
		must(await page.locator('#users .user').count() >= 5, 'users of the wheel are missing');
		must(page.wrong.length === 0, page.wrong.join('; '));
		await page.context().close();
	},
	async 'methods have figures, on both sides'() {
		for (const [url, side] of [[consumer.url, 'calls'], [one.url, 'requests']]) {
			const page = await stage.open(url);
			await isLive(page);
			const method = page.locator('#peers .row.method', { has: page.locator('.who', { hasText: side }) }).first();
			const begun = async () => Number((await method.locator('.n').first().innerText()).replace(/\D/g, ''));
			await until('a method is shown', async () => await method.count() === 1);
			const before = await begun();
			await until(`${side} are counted`, async () => await begun() > before);
			await until(`a median of ${side}`, async () => /\d/.test(await page.locator('#peers .row.method').locator('.n:nth-child(5)').allInnerTexts()));
			must(page.wrong.length === 0, page.wrong.join('; '));
			await page.context().close();
		}
	},
	async 'the wheel is painted and turns'() {
		const page = await stage.open(consumer.url);
		await isLive(page);
		await sleep(300);
		const look = () => page.evaluate(() => {
			const canvas = document.getElementById('dial');
			const bytes = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
			let painted = 0, sum = 0;
			for (let i = 3; i < bytes.length; i += 4) { if (bytes[i]) painted++; sum = (sum * 31 + bytes[i] * 7 + bytes[i - 1]) | 0; }
			return [painted / (bytes.length / 4), sum];
		});
		const [share, first] = await look();
		must(share > .3, `only ${share} of the wheel is painted`);
		await sleep(150);
		must((await look())[1] !== first, 'the wheel does not turn');
		await page.context().close();
	},
	async 'slots have the colours of their timers'() {
		// Shares of the pixels of the rings that have the colour of a user, or nearly so.
		const shares = async (page, users) => {
			await isLive(page);
			await sleep(900);
			return page.evaluate(users => {
				const canvas = document.getElementById('dial'), c = canvas.getContext('2d'), w = canvas.width;
				const { data } = c.getImageData(0, 0, w, w), style = getComputedStyle(document.documentElement);
				const wanted = users.map(u => style.getPropertyValue(`--${u}`).trim().match(/[0-9a-f]{2}/g).map(v => parseInt(v, 16)));
				const found = users.map(() => 0);
				for (let y = 0; y < w; y++)
					for (let x = 0; x < w; x++) {
						const far = Math.hypot(x - w / 2, y - w / 2) / w, at = (y * w + x) * 4;
						if (far < .2 || far > .44) continue;
						wanted.forEach((rgb, i) => { if (rgb.every((v, n) => Math.abs(v - data[at + n]) < 45)) found[i]++; });
					}
				return found;
			}, users);
		};
		const page = await stage.open(consumer.url);
		await until('a task waits', async () => await page.locator('.task').count() > 0);
		const [timeout, retry, heartbeat] = await shares(page, ['timeout', 'retry', 'heartbeat']);
		must(timeout > 0 && retry > 0 && heartbeat > 0, `pixels: ${timeout} of timeouts, ${retry} of retries, ${heartbeat} of heartbeats`);
		const full = await stage.open(busy.url);
		const [other, lease] = await shares(full, ['other', 'lease']);
		must(other > 1000 && lease < other / 100, `pixels: ${other} of alarms, ${lease} of leases`);
		await page.context().close();
		await full.context().close();
	},
	async 'a line explains the wheel, and lateness is recent'() {
		const page = await stage.open(consumer.url);
		await isLive(page);
		const line = await text(page, 'p.levels');
		for (const word of ['ring', 'bar', 'slot', 'colours', 'Hands']) must(line.includes(word), `“${word}” is not explained: ${line}`);
		must(/at most .+ late in 2 min/.test(await text(page, '#turns')), await text(page, '#turns'));
		await page.context().close();
	},
	async 'settings have a source'() {
		const page = await stage.open(consumer.url);
		await isLive(page);
		must(!await page.locator('#owners').isVisible(), 'the settings take room');
		await page.locator('#settings summary').click();
		await until('the registry is a setting of the program', async () => await page.locator('#owners > div', { hasText: 'consumer demo.Echo' }).locator('div', { hasText: /^registry\.url.* · code$/ }).count() === 1);
		must(await page.locator('#owners > div', { hasText: 'engine' }).locator('.zero', { hasText: 'tick' }).count() === 1, 'the default tick is not shown as one');
		await picture(page, 'settings');
		await page.context().close();
	},
	async 'all figures of the status are listed'() {
		const page = await stage.open(consumer.url);
		await isLive(page);
		await page.locator('#all summary').click();
		const names = ['calls ok', 'up ms', 'wheel pending', 'pool threads max', 'consumers 1 ready', 'consumers 1 ticket bytes'];
		for (const name of names)
			await until(name, async () => await page.locator('#figures dt', { hasText: new RegExp(`^${name}$`) }).count() === 1);
		await page.context().close();
	},
	async 'empty cards take no room'() {
		const page = await stage.open(idle.url);
		await isLive(page);
		const cards = await page.locator('main .card:visible').evaluateAll(all => all.map(card => card.id));
		must(cards.join() === 'wheel', `cards of a process that does nothing: ${cards}`);
		const [wheel, main] = await Promise.all(['#wheel', 'main'].map(at => page.locator(at).boundingBox()));
		must(wheel.width === main.width, `the wheel is ${wheel.width} px wide in ${main.width}`);
		await picture(page, 'idle');
		await page.context().close();
	},
	async 'a provider shows times of its handlers, and why requests are not OK'() {
		const page = await stage.open(one.url);
		await isLive(page);
		must(await text(page, '#p99-of') === 'p99 in the handler', await text(page, '#p99-of'));
		await until('a percentile', async () => /\d/.test(await text(page, '#p99')));
		const plots = await page.locator('#plots h2').allInnerTexts();
		must(plots.join() === 'Requests per second,Time in the handler', plots.join());
		await until('errors are counted', async () => /\d error/.test(await page.locator('#peers .row.method .who').allInnerTexts()));
		await picture(page, 'provider');
		await page.context().close();
	},
	async 'four plots leave no hole beside the wheel'() {
		const page = await stage.open(one.url);
		await isLive(page);
		await page.setViewportSize({ width: 1300, height: 1000 });
		await until('two plots', async () => await page.locator('#plots .card').count() === 2);
		/* A process that calls and serves has four. */
		const [wheel, ...plots] = await page.evaluate(() => {
			const box = document.getElementById('plots');
			box.append(box.children[0].cloneNode(true), box.children[1].cloneNode(true));
			return [document.getElementById('wheel'), ...box.children].map(e => e.getBoundingClientRect().toJSON());
		});
		must(Math.abs(plots[1].bottom - wheel.bottom) < 2, `the wheel ends at ${wheel.bottom}, the plots beside it at ${plots[1].bottom}`);
		must(plots[2].top > wheel.bottom && plots[2].left === wheel.left, 'the third plot is not below the wheel');
		must(plots[3].top === plots[2].top && plots[3].right === plots[0].right, 'the fourth plot is not beside the third');
		await page.context().close();
	},
	async 'consumer page links to the pages of its providers'() {
		const page = await stage.open(consumer.url);
		await until('links', async () => await page.locator('#peers a').count() === 2);
		const links = await page.locator('#peers a').evaluateAll(all => all.map(a => [a.href, a.rel]));
		must(links.map(l => l[0]).sort().join() === [one.url, two.url].sort().join(), `links lead to ${links}`);
		must(links.every(l => l[1].includes('noopener')), 'a link lacks noopener');
		const [there] = await Promise.all([page.context().waitForEvent('page'), page.locator('#peers a').first().click()]);
		await until('a provider shows its peers', async () => await there.locator('#peers .row.peer .pill').count() > 0);
		must((await there.title()).startsWith('provider'), await there.title());
		await page.context().close();
	},
	async 'page fits every width, light and dark'() {
		for (const [name, options] of Object.entries({
			'desktop-light': {}, 'desktop-dark': { colorScheme: 'dark' },
			'phone-light': { viewport: { width: 375, height: 812 } }, 'phone-dark': { viewport: { width: 375, height: 812 }, colorScheme: 'dark' },
		})) {
			const page = await stage.open(busy.url, options);
			await isLive(page);
			await sleep(600);
			const [wide, there, back] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth, getComputedStyle(document.body).backgroundColor]);
			must(wide <= there, `${name}: ${wide} px wide in ${there}`);
			const light = back.match(/\d+/g).reduce((sum, v) => sum + Number(v), 0) / 3;
			must(options.colorScheme === 'dark' ? light < 60 : light > 200, `${name} is ${back}`);
			must(page.wrong.length === 0, page.wrong.join('; '));
			await picture(page, name);
			await page.context().close();
		}
	},
	async 'chosen colours are kept'() {
		const page = await stage.open(consumer.url);
		const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
		const light = await back();
		must(await text(page, '#theme') === 'Dark colours', 'the button does not say what it does');
		await page.locator('#theme').click();
		const dark = await back();
		must(dark !== light, 'the page stays light');
		await page.reload();
		must(await back() === dark, 'the choice is lost');
		must(await text(page, '#theme') === 'Light colours', 'the button does not say what it does now');
		await page.locator('#theme').click();
		must(await back() === light, 'the page stays dark');
		await page.emulateMedia({ colorScheme: 'dark' });
		await until('the page follows the system again', async () => await back() === dark);
		await page.context().close();
	},
	async 'page works with reduced motion'() {
		const page = await stage.open(consumer.url, { reducedMotion: 'reduce' });
		await isLive(page);
		await until('the wheel is painted', () => page.evaluate(() => document.getElementById('dial').getContext('2d').getImageData(0, 0, 400, 400).data.some(v => v > 0)));
		must(page.wrong.length === 0, page.wrong.join('; '));
		await page.context().close();
	},
	async 'page without JavaScript leads to the status'() {
		const page = await stage.open(hostile.url, { javaScriptEnabled: false });
		must(!await page.locator('#app').isVisible(), 'the empty page is visible');
		await page.locator('p.plain a', { hasText: '/status' }).click();
		must((await text(page, 'body')).includes('"wheel":'), 'the link does not lead to the status');
		await page.context().close();
	},
	async 'foreign texts do not become markup'() {
		const page = await stage.open(hostile.url);
		await until('the event', async () => await page.locator('#happened', { hasText: '<img src=x' }).count());
		must(await page.title() === '<b>hostile</b> · spoke', await page.title());
		must(await text(page, 'h1') === '<b>hostile</b>', 'the name is changed');
		must(await page.locator('#happened img, #happened script, h1 b').count() === 0, 'a text became markup');
		must(page.wrong.length === 0, page.wrong.join('; '));
		await page.context().close();
	},
	async 'actions need the token and a confirmation'() {
		must((await post(consumer, 'act/note')).status === 401, 'a POST without a token was accepted');
		must((await post(consumer, 'act/note', { Authorization: 'Bearer wrong' })).status === 401, 'a wrong token was accepted');
		must((await post(consumer, 'act/note', { Authorization: `Bearer ${consumer.token}`, Origin: 'http://evil.example' })).status === 403, 'another origin was accepted');
		must(!consumer.said.includes('acted'), 'an action ran');
		const plain = await stage.open(consumer.url);
		await isLive(plain);
		must(!await plain.locator('#actions').isVisible(), 'buttons without a token');
		await plain.evaluate(token => { location.hash = `token=${token}`; }, consumer.token);
		await until('a later token is accepted', () => plain.locator('#actions button').count());
		must(!plain.url().includes(consumer.token), 'the later token stays in the address');
		const page = await stage.open(`${consumer.url}#token=${consumer.token}`);
		must((await text(page, '#actions button')).includes('Prints a line'), 'the button does not say what it does');
		await page.locator('#actions button', { hasText: 'note' }).click();
		must(await text(page, '#ask-yes') === 'Run “note”', await text(page, '#ask-yes'));
		must((await text(page, 'dialog p')).includes('<img'), 'the sentence is changed');
		await picture(page, 'question', false);
		await page.locator('#ask-no').click();
		await page.locator('#actions button', { hasText: 'note' }).click();
		must(!consumer.said.includes('acted'), 'the action ran before the confirmation');
		await page.locator('#ask-yes').click();
		await until('the action runs', () => consumer.said.includes('acted note'));
		must(!page.url().includes(consumer.token), 'the token stays in the address');
		must(page.wrong.length === 0, page.wrong.join('; '));
		await plain.context().close();
		await page.context().close();
	},
	async 'hidden tab has no stream'() {
		const page = await stage.open(consumer.url);
		const seen = hidden => page.evaluate(hidden => {
			Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
			document.dispatchEvent(new Event('visibilitychange'));
		}, hidden);
		const now = async () => (await (await fetch(consumer.url + 'status')).json()).wheel.classes.find(c => c.name === 'admin').pending;
		await isLive(page);
		const watched = await now();
		await seen(true);
		await until('the stream ends', async () => await now() < watched);
		await seen(false);
		await isLive(page);
		await until('the stream begins again', async () => await now() === watched);
		await page.context().close();
	},
	async 'frozen process is shown on its page and on its consumer\'s page'() {
		const page = await stage.open(consumer.url, { colorScheme: 'dark' });
		const own = await stage.open(two.url);
		await isLive(own);
		await until('the endpoint', async () => await page.locator('#peers a').count() === 2);
		const at = await page.locator('#peers .row', { has: page.locator(`a[href="${two.url}"]`) }).locator('.where').innerText();
		two.child.kill('SIGSTOP');
		await until('its heartbeats are missed', async () => /Suspect|Connecting|Reconnecting|probation/.test(await row(page, at).locator('.pill').innerText()) && await row(page, at).locator('.beats i.on').count() > 0);
		await until('the warning on its own page', async () => (await text(own, '#lost')).includes('has not answered'));
		await until('events about it', async () => await page.locator('#happened li', { hasText: at }).count() > 1);
		await picture(own, 'frozen', false);
		await picture(page, 'story');
		two.child.kill('SIGCONT');
		await until('its page is live again', async () => !await own.locator('#lost').isVisible());
		await until('the endpoint is ready again', async () => /Ready|Ejected/.test(await row(page, at).locator('.pill').innerText()));
		await page.context().close();
		await own.context().close();
	},
	async 'drained process is shown as gone'() {
		const page = await stage.open(one.url);
		await isLive(page);
		await picture(page, 'provider');
		must((await post(one, 'act/drain', { Authorization: `Bearer ${one.token}` })).status === 202, 'the drain was rejected');
		await until('the process exits', () => one.ended && one.ended.code === 0);
		await until('the warning on its page', async () => (await text(page, '#lost')).includes('has not answered'));
		await page.context().close();
		const other = await stage.open(consumer.url);
		await until('its consumer removes it', async () => await other.locator('#peers a').count() === 1);
		await other.context().close();
	},
};

let failed = 0;
const begun = Date.now();
try {
	[one, two] = await Promise.all([stage.process('provider', 'provider 1'), stage.process('provider', 'provider 2')]);
	[consumer, busy, hostile, idle] = await Promise.all([stage.process('consumer', 'consumer'), stage.process('consumer', 'busy consumer', '1000000'),
		stage.process('consumer', '<b>hostile</b>'), stage.process('idle', 'idle'), stage.browse()]);
	for (const [name, run] of Object.entries(tests)) {
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
	await stage.end();
}
console.log(`${Object.keys(tests).length - failed} of ${Object.keys(tests).length} passed, ${Date.now() - begun} ms; pictures in ${pictures}`);
process.exit(failed ? 1 : 0);
