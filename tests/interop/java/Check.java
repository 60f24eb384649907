// SPDX-License-Identifier: Apache-2.0
// Assertions, which are on without an option of the virtual machine.

import java.util.Objects;

class Check {
	static void that(boolean right, String what) {
		if (!right)
			throw new AssertionError(what);
	}

	static void same(Object wanted, Object seen, String what) {
		that(Objects.equals(wanted, seen), what + ": " + seen + ", instead of " + wanted);
	}
}
