/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files again, now and then, on a thread of the pool. */
#include "core/engine/reread.h"

#include "core/engine/engine.h"

static void run(struct spoke_work *work)
{
	struct spokei_reread *reread = spoke_container_of(work, struct spokei_reread, work);

	reread->up->read(reread);
}

static void done(struct spoke_work *work)
{
	struct spokei_reread *reread = spoke_container_of(work, struct spokei_reread, work);
	uint64_t delay_ns;

	reread->busy = false;
	if (reread->dead) {
		reread->up->free(reread);
		return;
	}
	delay_ns = reread->up->end(reread, work->status == 0 && !reread->stale);
	if (work->status)
		return; /* the engine ends */
	if (reread->stale || reread->again)
		spokei_reread_now(reread);
	else
		spokei_reread_later(reread, delay_ns);
}

static void alarm_due(struct spoke_alarm *alarm)
{
	spokei_reread_now(spoke_container_of(alarm, struct spokei_reread, alarm));
}

void spokei_reread_now(struct spokei_reread *reread)
{
	const struct spoke_loop *loop = reread->engine->env->loop;

	reread->again = reread->busy;
	if (reread->busy)
		return;
	reread->stale = false;
	if (!reread->up->begin(reread))
		return;
	reread->work = (struct spoke_work){ .run = run, .done = done };
	reread->busy = loop->offload(reread->engine->loop, &reread->work) == 0;
	if (!reread->busy) /* the queue of the pool is full */
		spokei_reread_later(reread, reread->up->end(reread, false));
}

void spokei_reread_later(struct spokei_reread *reread, uint64_t delay_ns)
{
	if (!reread->busy &&
	    spoke_alarm_after(reread->engine, &reread->alarm, delay_ns, alarm_due)) {
		spokei_event(reread->engine, SPOKE_ELIMIT,
			     "%s: no timer is left; changes of the files are not noticed",
			     reread->up->key);
	}
}

void spokei_reread_overtake(struct spokei_reread *reread)
{
	reread->stale = reread->busy;
}

bool spokei_reread_end(struct spokei_reread *reread)
{
	(void)spoke_alarm_cancel(&reread->alarm);
	reread->dead = true;
	return !reread->busy;
}
