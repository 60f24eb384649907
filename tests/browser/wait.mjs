// SPDX-License-Identifier: Apache-2.0
// Waits and demands of the tests in JavaScript.

export const sleep = ms => new Promise(done => setTimeout(done, ms));

export const HANGS = 120000; // ms: nothing takes that long, even on a busy machine

// Waits until `look` returns a truthy value, and returns it.
export async function until(what, look) {
	const end = Date.now() + HANGS;
	for (;;) {
		const seen = await look();
		if (seen) return seen;
		if (Date.now() > end) throw new Error(`timed out: ${what}`);
		await sleep(50);
	}
}

export function must(holds, what) {
	if (!holds) throw new Error(what);
}
