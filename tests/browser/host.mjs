// SPDX-License-Identifier: Apache-2.0
// Processes with an admin page, and a browser.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { HANGS, until } from './wait.mjs';

export { must, sleep, until } from './wait.mjs';

// A registry, processes and a browser.
export class Stage {
	constructor(program) {
		this.program = program;
		this.folder = mkdtempSync(join(tmpdir(), 'spoke-browser-'));
		this.processes = [];
	}
	start(words) {
		const child = spawn(this.program, words, { stdio: ['ignore', 'pipe', 'inherit'] });
		const it = { child, said: '', ended: null };
		child.stdout.on('data', bytes => { it.said += bytes; });
		child.on('exit', (code, signal) => { it.ended = { code, signal }; });
		this.processes.push(it);
		return it;
	}
	async process(role, name, ...more) {
		const it = this.start([role, name, `file://${this.folder}/providers`, ...more]);
		const [, address, token] = await until(`page of ${name}`, () => /^page (\S+) (\S+)$/m.exec(it.said));
		return Object.assign(it, { name, address, token, url: `http://${address}/` });
	}
	async browse() {
		this.browser = await chromium.launch({
			executablePath: '/usr/bin/chromium',
			args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
		});
	}
	// Opens a page in its own context, and notes errors and foreign requests in page.wrong.
	async open(url, options = {}) {
		const context = await this.browser.newContext({ viewport: { width: 1320, height: 900 }, colorScheme: 'light', ...options });
		context.setDefaultTimeout(HANGS);
		const page = await context.newPage();
		page.wrong = [];
		page.on('console', line => { if (['error', 'warning'].includes(line.type())) page.wrong.push(line.text()); });
		page.on('pageerror', error => page.wrong.push(error.message));
		page.on('request', request => { if (!request.url().startsWith(new URL('/', url).href) && !request.url().startsWith('data:')) page.wrong.push(`foreign request: ${request.url()}`); });
		await page.goto(url);
		return page;
	}
	async end() {
		if (this.browser) await this.browser.close();
		for (const it of this.processes) if (!it.ended) it.child.kill('SIGKILL');
		rmSync(this.folder, { recursive: true, force: true });
	}
}
