// SPDX-License-Identifier: Apache-2.0
// node dashboard.mjs <demo_driver> <prometheus> <dashboard>: asks a Prometheus that scrapes the demo for the
// expressions of a dashboard. Each has to have a result, a finite one, once the demo has had its failures.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { must, sleep, until } from '../browser/wait.mjs';

const PAGES = 5;     // of the demo: three providers, two consumers
const [driver, prometheus, dashboard] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'spoke-dashboard-'));
const begun = Date.now();
const started = [];

function start(program, words) {
	const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'] });
	const it = { child, said: '', ended: false };
	for (const stream of [child.stdout, child.stderr]) stream.on('data', bytes => { it.said += bytes; });
	child.on('error', error => { it.said += error; it.ended = true; });
	child.on('exit', () => { it.ended = true; });
	started.push(it);
	return it;
}

// Returns all panels with queries, after a look at the layout.
function panelsOf({ panels }) {
	must(new Set(panels.map(p => p.id)).size === panels.length, 'two panels have the same id');
	const taken = new Set();
	for (const { title, gridPos: { x, y, w, h } } of panels)
		for (let column = x; column < x + w; column++)
			for (let row = y; row < y + h; row++) {
				must(column < 24 && !taken.has(`${column} ${row}`), `“${title}” lies on another panel`);
				taken.add(`${column} ${row}`);
			}
	const drawn = panels.filter(p => p.type !== 'row');
	for (const p of drawn) must(p.targets.length > 0 && p.targets.every(t => t.legendFormat), `“${p.title}” lacks a query or a legend`);
	return drawn;
}

async function ask(url, path) {
	const answer = await fetch(url + path);
	const { status, error, data } = await answer.json();
	must(status === 'success', `${decodeURIComponent(path)}: ${error}`);
	return data;
}

// Prometheus says its port only in the log.
async function scrape(addresses) {
	const config = join(folder, 'prometheus.yml');
	writeFileSync(config, JSON.stringify({
		global: { scrape_interval: '1s', scrape_timeout: '1s' },
		scrape_configs: [{ job_name: 'spoke', static_configs: [{ targets: addresses }] }],
	}));
	const it = start(prometheus, [`--config.file=${config}`, `--storage.tsdb.path=${folder}/data`, '--web.listen-address=127.0.0.1:0']);
	const [, address] = await until('Prometheus listens', () => {
		must(!it.ended, it.said);
		return /Listening on.*address=(127\.0\.0\.1:\d+)/.exec(it.said);
	});
	await until('Prometheus is ready', async () => (await fetch(`http://${address}/-/ready`)).ok);
	return `http://${address}`;
}

let failed = 0;
try {
	const panels = panelsOf(JSON.parse(readFileSync(dashboard, 'utf8')));
	const demo = start(driver, ['--live', '--plain', '--timeout', '200ms', '--heartbeat', '500ms']);
	const addresses = await until('the demo has its pages', () => {
		const found = [...demo.said.matchAll(/page at http:\/\/(\S+?)\/?\s/g)].map(m => m[1]);
		return found.length >= PAGES && found;
	});
	const url = await scrape(addresses);
	await until('all pages are scraped', async () => (await ask(url, '/api/v1/label/instance/values?match[]=spoke_info')).length === addresses.length);

	let open = panels.flatMap(p => p.targets.map(t => ({ title: p.title, expr: t.expr })));
	const all = open.length;
	await until('each expression has a result', async () => {
		await sleep(500);
		const left = [];
		for (const one of open) {
			const query = one.expr.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '10s');
			const { result } = await ask(url, `/api/v1/query?query=${encodeURIComponent(query)}`);
			if (!result.some(series => isFinite(Number(series.value[1])))) left.push(one);
		}
		open = left;
		return open.length === 0;
	}).catch(error => console.log(error.message));
	for (const one of open) console.log(`FAILED  no result for “${one.title}”: ${one.expr}`);
	failed = open.length;
	console.log(`${all - failed} of ${all} expressions of ${panels.length} panels have a result, ${Date.now() - begun} ms`);
} catch (error) {
	failed++;
	console.log(`FAILED  ${error.stack}`);
} finally {
	// The demo ends its processes itself; a second signal would leave them behind.
	for (const it of started) if (!it.ended) it.child.kill('SIGINT');
	await until('all processes end', () => started.every(it => it.ended)).catch(() => { for (const it of started) if (!it.ended) it.child.kill('SIGKILL'); });
	rmSync(folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
