/* SPDX-License-Identifier: Apache-2.0 */
/* Records events, and reports violations with the last events and the command that repeats the run.
 */
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct sim_world *sim_world_now;
const char *sim_program = "sim";

static void print_note(const struct sim_note *note)
{
	const uint64_t *number = note->numbers;

	(void)printf("%12.6f  ", (double)note->at_ns / 1e9);
	for (const char *at = note->text; *at; at++) {
		const char *name = *at == '%' ? sim_name(at[1], *number) : NULL;

		if (*at != '%') {
			(void)putchar(*at);
			continue;
		}
		if (name)
			(void)printf("%s", name);
		else
			(void)printf("%" PRIu64, *number);
		at += name ? 1 : 0;
		number++;
	}
	(void)putchar('\n');
}

static void mix(struct sim_world *world, uint64_t number)
{
	world->hash = (world->hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
	world->hash ^= world->hash >> 29;
}

void sim_note(struct sim_world *world, const char *text, uint64_t a, uint64_t b, uint64_t c,
	      uint64_t d)
{
	struct sim_note *note = &world->notes[world->note_count++ % SIM_TRACE];

	*note = (struct sim_note){ world->virt.now_ns, text, { a, b, c, d } };
	mix(world, world->virt.now_ns);
	mix(world, (uint64_t)(unsigned char)text[0] << 8 | (unsigned char)text[1]);
	mix(world, a ^ b << 16 ^ c << 32 ^ d << 48);
	if (world->verbose)
		print_note(note);
}

static void print_last(const struct sim_world *world)
{
	uint64_t first = world->note_count > SIM_TRACE ? world->note_count - SIM_TRACE : 0;

	if (world->verbose)
		return;
	for (uint64_t i = first; i < world->note_count; i++)
		print_note(&world->notes[i % SIM_TRACE]);
}

static void print_again(const struct sim_world *world)
{
	const struct sim_plan *plan = world->plan;

	(void)printf("\nat %.6f s of seed %" PRIu64 "; again: %s", (double)world->virt.now_ns / 1e9,
		     plan->seed, sim_program);
	if (plan->outage_until_ns)
		(void)printf(" --outage");
	else if (plan->steady)
		(void)printf(" --steady %" PRIu64, plan->length_ns / SECOND);
	else
		(void)printf(" %s%s%s%s--seeds 1 --first %" PRIu64,
			     plan->gateways ? "--gateways " : "",
			     plan->shares_always ? "--shared " : "",
			     plan->journals.always ? "--journals " : "",
			     plan->secure.on && plan->secure.always ? "--secure " : "", plan->seed);
	(void)printf(" --verbose\n");
	(void)fflush(stdout);
}

void sim_violation(struct sim_world *world, enum sim_invariant invariant, const char *format, ...)
{
	static const struct {
		const char *name;
		const char *sentence;
	} invariants[] = {
#define INVARIANT(name, file, sentence) [SIM_##name] = { #name, sentence },
		SIM_INVARIANTS(INVARIANT)
#undef INVARIANT
	};
	va_list args;

	print_last(world);
	va_start(args, format);
	(void)printf("\nviolation of %s: ", invariants[invariant].name);
	(void)vprintf(format, args);
	va_end(args);
	(void)printf("\n%s: %s", invariants[invariant].name, invariants[invariant].sentence);
	print_again(world);
	sim_world_now = NULL;
	exit(1);
}

void sim_report(const char *what)
{
	const struct sim_world *world = sim_world_now;

	sim_world_now = NULL;
	if (world == NULL)
		return;
	print_last(world);
	(void)printf("\n%s", what);
	print_again(world);
}
