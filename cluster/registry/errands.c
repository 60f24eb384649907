/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the requests to a registry, and reports their results one at a time. */
#include "cluster/registry/errands.h"
#include "core/base/env.h"

#include "core/engine/engine.h"

static void free_errand(struct spokei_errands *errands, struct spokei_errand *errand)
{
	const struct spoke_env *env = errands->engine->env;

	spokei_list_remove(&errand->node);
	if (errand->told.next)
		spokei_list_remove(&errand->told);
	spoke_url_fini(&errand->url);
	spokei_buffer_fini(&errand->found);
	spokei_free(env, errand->list, errand->list_size, 1);
	spokei_free(env, errand->text, strlen(errand->text) + 1, 1);
	spokei_free(env, errand, 1, sizeof(*errand));
}

static struct spokei_errand *first_news(struct spokei_errands *errands)
{
	return spoke_container_of(spokei_list_first(&errands->news), struct spokei_errand, told);
}

/* Reports one result as the last step, because `errands` may be closed by the callback. */
static void tell_one(struct spokei_errands *errands)
{
	struct spokei_errand *errand = first_news(errands);
	const struct spoke_registry_up *up = errands->up;
	uint64_t intent = errand->intent;
	int error = errand->error;

	if (errand->has_done) {
		errand->has_done = false;
		if (error || errand->kind == SPOKEI_ERRAND_WITHDRAW ||
		    errand->kind == SPOKEI_ERRAND_UNSUBSCRIBE)
			free_errand(errands, errand);
		up->done(errands->up_arg, intent, error);
	} else if (errand->has_lost) {
		free_errand(errands, errand);
		up->lost(errands->up_arg, intent, SPOKE_ENOENT);
	} else if (errand->has_list) {
		errand->has_list = false;
		up->list(errands->up_arg, intent, (const char *const *)errand->list,
			 errand->list_count);
	} else {
		spokei_list_remove(&errand->told);
	}
}

static void tell(struct spokei_task *task)
{
	struct spokei_errands *errands = spoke_container_of(task, struct spokei_errands, tell);

	while (!errands->closed && !spokei_list_empty(&errands->news))
		tell_one(errands);
}

void spokei_errands_init(struct spokei_errands *errands, struct spoke_engine *engine,
			 const struct spoke_registry_up *up, void *up_arg)
{
	*errands = (struct spokei_errands){
		.engine = engine, .up = up, .up_arg = up_arg, .tell = { .run = tell }
	};
	spokei_list_init(&errands->all);
	spokei_list_init(&errands->news);
}

void spokei_errands_close(struct spokei_errands *errands)
{
	errands->closed = true;
	spokei_task_drop(&errands->tell);
}

void spokei_errands_fini(struct spokei_errands *errands)
{
	SPOKE_ASSERT(errands->closed);
	while (!spokei_list_empty(&errands->all))
		free_errand(errands, spokei_errand_of(spokei_list_first(&errands->all)));
}

static void add_news(struct spokei_errands *errands, struct spokei_errand *errand)
{
	if (errand->told.next == NULL)
		spokei_list_append(&errands->news, &errand->told);
	spokei_engine_soon(errands->engine, &errands->tell);
}

int spokei_errands_add(struct spokei_errands *errands, enum spokei_errand_kind kind,
		       uint64_t intent, const char *text, struct spokei_errand **ret_errand)
{
	const struct spoke_env *env = errands->engine->env;
	size_t len = strlen(text);
	struct spokei_errand *errand = spokei_alloc(env, 1, sizeof(*errand));
	int error = SPOKE_OK;

	if (errand == NULL)
		return SPOKE_ENOMEM;
	errand->text = spokei_alloc_unset(env, len + 1);
	if (errand->text == NULL)
		goto err_after_alloc;
	memcpy(errand->text, text, len + 1);
	if (kind == SPOKEI_ERRAND_PUBLISH)
		error = spoke_url_parse(env, text, len, &errand->url, NULL);
	if (error == SPOKE_ENOMEM)
		goto err_after_text;
	errand->kind = kind;
	errand->intent = intent;
	spokei_buffer_init(&errand->found, env, SIZE_MAX);
	spokei_list_append(&errands->all, &errand->node);
	if (error)
		spokei_errand_done(errands, errand, error);
	*ret_errand = errand;
	return SPOKE_OK;

err_after_text:
	spokei_free(env, errand->text, len + 1, 1);
err_after_alloc:
	spokei_free(env, errand, 1, sizeof(*errand));
	return SPOKE_ENOMEM;
}

static struct spokei_errand *find(struct spokei_errands *errands, enum spokei_errand_kind kind,
				  uint64_t intent)
{
	for (struct spoke_list *at = errands->all.next; at != &errands->all; at = at->next) {
		struct spokei_errand *errand = spokei_errand_of(at);

		if (errand->intent == intent && errand->kind == kind)
			return errand;
	}
	return NULL;
}

int spokei_errands_undo(struct spokei_errands *errands, enum spokei_errand_kind kind,
			uint64_t intent, uint64_t which, struct spokei_errand **ret_errand)
{
	enum spokei_errand_kind undone = kind == SPOKEI_ERRAND_WITHDRAW ? SPOKEI_ERRAND_PUBLISH
									: SPOKEI_ERRAND_SUBSCRIBE;
	struct spokei_errand *errand = find(errands, undone, which);

	if (errand == NULL)
		return spokei_errands_add(errands, kind, intent, "", ret_errand);
	spokei_list_remove(&errand->node);
	spokei_list_append(&errands->all, &errand->node);
	errand->kind = kind;
	errand->intent = intent;
	errand->error = SPOKE_OK;
	errand->has_done = errand->has_list = errand->has_lost = false;
	errand->answered = errand->todo = errand->holds = false;
	*ret_errand = errand;
	return SPOKE_OK;
}

void spokei_errand_done(struct spokei_errands *errands, struct spokei_errand *errand, int error)
{
	SPOKE_ASSERT(!errand->answered);
	errand->answered = true;
	errand->error = error;
	errand->has_done = true;
	errand->todo = false;
	add_news(errands, errand);
}

void spokei_errand_lost(struct spokei_errands *errands, struct spokei_errand *errand)
{
	errand->holds = false;
	errand->has_lost = true;
	add_news(errands, errand);
}

int spokei_errand_list(struct spokei_errands *errands, struct spokei_errand *errand)
{
	const struct spoke_env *env = errands->engine->env;
	size_t len = spokei_buffer_len(&errand->found);
	size_t pointers = errand->found_count * sizeof(char *);
	char *text;
	char **list;

	if (errand->list && errand->list_count == errand->found_count &&
	    errand->list_size == pointers + len + 1 &&
	    (len == 0 ||
	     memcmp((char *)errand->list + pointers, spokei_buffer_data(&errand->found), len) == 0))
		return SPOKE_OK;
	/* Never empty, because the list is recognised by its memory. */
	list = spokei_alloc_unset(env, pointers + len + 1);
	if (list == NULL)
		return SPOKE_ENOMEM;
	text = (char *)list + pointers;
	if (len > 0)
		memcpy(text, spokei_buffer_data(&errand->found), len);
	for (size_t i = 0; i < errand->found_count; i++) {
		list[i] = text;
		text += strlen(text) + 1;
	}
	spokei_free(env, errand->list, errand->list_size, 1);
	errand->list = list;
	errand->list_count = errand->found_count;
	errand->list_size = pointers + len + 1;
	errand->has_list = true;
	add_news(errands, errand);
	return SPOKE_OK;
}
