// SPDX-License-Identifier: Apache-2.0
// node demo.mjs <demo_driver> <folder for pictures>: checks the pages of the demo during its story.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Stage, must, until } from './host.mjs';

const [program, pictures] = process.argv.slice(2);
const stage = new Stage(program);
const picture = (page, name) => page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
// The pictures of README: a page down to its endpoints, as WebP, which is smaller than PNG.
async function small(page, name) {
	const peers = await page.locator('#peers').boundingBox();
	const png = await page.screenshot({ clip: { x: 0, y: 0, width: 1320, height: peers.y + peers.height + 16 } });
	const blank = await (await stage.browser.newContext()).newPage();
	const webp = await blank.evaluate(async url => {
		const image = new Image();
		image.src = url;
		await image.decode();
		const canvas = document.createElement('canvas');
		canvas.width = image.width;
		canvas.height = image.height;
		canvas.getContext('2d').drawImage(image, 0, 0);
		return canvas.toDataURL('image/webp', .8);
	}, `data:image/png;base64,${png.toString('base64')}`);
	writeFileSync(join(pictures, `${name}.webp`), Buffer.from(webp.split(',')[1], 'base64'));
	await blank.context().close();
}
const happened = (page, what) => until(`event "${what}"`, async () => await page.locator('#happened li', { hasText: what }).count() > 0);
const pill = (page, what) => until(`an endpoint is ${what}`, async () => await page.locator('#peers .pill', { hasText: what }).count() > 0);

// Start the slow browser first, because the story does not wait for it.
await stage.browse();
const driver = stage.start(['--live', '--plain', '--heartbeat', '1500ms', '--timeout', '200ms', '--retry-period', '500ms']);
const address = async name => (await until(`${name} has a page`, () => new RegExp(` ${name} +page at (\\S+)`).exec(driver.said)))[1];

// A provider is frozen. The page of its consumer shows timeouts, retries, heartbeats and the recovery.
async function frozen() {
	const at = await address('consumer-1');
	const page = await stage.open(at);
	const dark = await stage.open(at, { colorScheme: 'dark' });
	await pill(page, /Suspect|probation|Reconnecting/);
	await pill(dark, /Suspect|probation|Reconnecting/);
	await picture(page, 'demo-frozen');
	await Promise.all([small(page, 'page-light'), small(dark, 'page-dark')]);
	await dark.context().close();
	await happened(page, 'requests not answered within');
	await happened(page, /calls? deferred/);
	await happened(page, /closed.*ESILENT/);
	await happened(page, 'answer first');
	await happened(page, 'answers again');
	await until('both are ready', async () => await page.locator('#peers .pill', { hasText: 'Ready' }).count() === 2);
	for (const user of ['timeout', 'retry', 'heartbeat'])
		must(await page.locator('#happened li', { hasText: user }).count() > 0, `no event of ${user}`);
	const [there] = await Promise.all([page.context().waitForEvent('page'), page.locator('#peers a').first().click()]);
	await until('the page of a provider', async () => (await there.title()).startsWith('provider-'));
	must(page.wrong.length === 0, page.wrong.join('; '));
	await page.context().close();
}

// A consumer is frozen, as its provider sees it. Then that provider is killed and restarted.
async function closed() {
	const page = await stage.open(await address('provider-2'));
	await happened(page, 'heartbeat');
	await happened(page, /closed.*ESILENT/);
	const number = async () => /process (\d+)/.exec(await page.locator('#about').innerText())?.[1];
	const before = await number();
	await until('a new process in place of the killed one', async () => ![undefined, before].includes(await number()));
	await page.context().close();
}

// The only provider of a service is killed: failback tasks wait, are retried, and succeed.
async function killed() {
	const page = await stage.open(await address('consumer-2'));
	await pill(page, /Reconnecting|Connecting/);
	await until('failback tasks wait', async () => await page.locator('.task').count() > 2);
	await picture(page, 'demo-killed');
	await happened(page, /retried without success/);
	await happened(page, /answered after a retry/);
	await pill(page, 'Ready');
	await until('no failback task waits', async () => await page.locator('.task').count() === 0);
	await page.context().close();
}

let failed = 0;
try {
	for (const one of await Promise.allSettled([frozen(), closed(), killed()]))
		if (one.status === 'rejected') {
			failed++;
			console.log(`FAILED  ${one.reason.stack}`);
		}
	await until('the story is over', () => driver.said.includes('runs on until Ctrl-C'));
	driver.child.kill('SIGINT');
	await until('the driver ends', () => driver.ended);
	must(driver.ended.code === 0 && driver.said.includes('It adds up'), `the demo: ${JSON.stringify(driver.ended)}`);
} catch (error) {
	failed++;
	console.log(`FAILED  ${error.stack}`);
} finally {
	await stage.end();
}
if (failed) console.log(driver.said);
console.log(failed ? 'the demo is not as expected' : `the pages show the story of the demo; pictures in ${pictures}`);
process.exit(failed ? 1 : 0);
