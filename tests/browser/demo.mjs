// SPDX-License-Identifier: Apache-2.0
// node demo.mjs <demo_driver> <folder for pictures>: the story of the demo, as its pages show it.
import { join } from 'node:path';
import { Stage, must, until } from './host.mjs';

const [program, pictures] = process.argv.slice(2);
const LONG = 60000; // ms; each of these comes in its time
const stage = new Stage(program);
const picture = (page, name) => page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
const happened = (page, what) => until(`"${what}" is told`, async () => await page.locator('#happened li', { hasText: what }).count() > 0, LONG);
const pill = (page, what) => until(`an endpoint is ${what}`, async () => await page.locator('#peers .pill', { hasText: what }).count() > 0, LONG);

// The browser first: it takes its time, and the story does not wait.
await stage.browse();
const driver = stage.start(['--live', '--plain', '--heartbeat', '1500ms', '--timeout', '200ms', '--retry-period', '500ms']);
const address = async who => (await until(`${who} has a page`, () => new RegExp(` ${who} +its page: (\\S+)`).exec(driver.said)))[1];

// A provider is frozen, as its consumer sees it: timeouts, retries, heartbeats, and all is well again.
async function frozen() {
	const page = await stage.open(await address('consumer-1'));
	await pill(page, /Suspect|probation|Reconnects/);
	await picture(page, 'demo-frozen');
	await happened(page, 'requests not answered within');
	await happened(page, /calls? deferred/);
	await happened(page, 'three heartbeats unanswered');
	await happened(page, 'has to answer first');
	await happened(page, 'answers again');
	await until('both are ready', async () => await page.locator('#peers .pill', { hasText: 'Ready' }).count() === 2, LONG);
	for (const user of ['timeout', 'retry', 'heartbeat'])
		must(await page.locator('#happened li', { hasText: user }).count() > 0, `nothing is the doing of ${user}`);
	const [there] = await Promise.all([page.context().waitForEvent('page'), page.locator('#peers a').first().click()]);
	await until('a provider names itself', async () => (await there.title()).startsWith('provider-'));
	must(page.wrong.length === 0, page.wrong.join('; '));
	await page.context().close();
}

// A consumer is frozen, as its provider sees it; then that provider is killed, and comes back.
async function closed() {
	const page = await stage.open(await address('provider-2'));
	await happened(page, 'heartbeat');
	await happened(page, /silent|three heartbeats/);
	const number = async () => /process (\d+)/.exec(await page.locator('#about').innerText())?.[1];
	const before = await number();
	await until('it is killed, and another process in its place', async () => ![undefined, before].includes(await number()), LONG);
	await page.context().close();
}

// The only provider of a service is killed: failback tasks wait, are due, and succeed.
async function killed() {
	const page = await stage.open(await address('consumer-2'));
	await pill(page, /Reconnects|Connecting/);
	await until('failback tasks wait', async () => await page.locator('.task').count() > 2, LONG);
	await picture(page, 'demo-killed');
	await happened(page, /tried again in vain/);
	await happened(page, /answered now/);
	await pill(page, 'Ready');
	await until('none waits any more', async () => await page.locator('.task').count() === 0, LONG);
	await page.context().close();
}

let failed = 0;
try {
	for (const one of await Promise.allSettled([frozen(), closed(), killed()]))
		if (one.status === 'rejected') {
			failed++;
			console.log(`FAILED  ${one.reason.stack}`);
		}
	await until('the story is over', () => driver.said.includes('goes on until Ctrl-C'), LONG);
	driver.child.kill('SIGINT');
	await until('the driver ends', () => driver.ended, LONG);
	must(driver.ended.code === 0 && driver.said.includes('It adds up'), `the demo: ${JSON.stringify(driver.ended)}`);
} catch (error) {
	failed++;
	console.log(`FAILED  ${error.stack}`);
} finally {
	await stage.end();
}
if (failed) console.log(driver.said);
console.log(failed ? 'the story is not as it should be' : `the story of the demo is on its pages; pictures in ${pictures}`);
process.exit(failed ? 1 : 0);
