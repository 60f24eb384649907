/* SPDX-License-Identifier: Apache-2.0 */
/* A program with the wheel alone: a timer of 20 ms fires. */
#include <spoke/wheel.h>

#include <stdio.h>
#include <stdlib.h>

static void fire(struct spoke_timer *timer, void *fired)
{
	(void)timer;
	*(int *)fired = 1;
}

int main(void)
{
	static struct spoke_timer timer;
	struct spoke_wheel *wheel;
	void *memory = NULL;
	unsigned class;
	size_t size;
	int fired = 0;

	if (spoke_wheel_size(NULL, &size) || (memory = malloc(size)) == NULL ||
	    spoke_wheel_init(memory, size, NULL, 0, &wheel) ||
	    spoke_wheel_add_class(wheel, "example", fire, &fired, &class) ||
	    spoke_wheel_schedule(wheel, &timer, class, 20000000) ||
	    spoke_wheel_advance(wheel, 19000000, 0) || fired ||
	    spoke_wheel_advance(wheel, 22000000, 0) || !fired)
		return 1;
	puts("fired");
	free(memory);
	return 0;
}
