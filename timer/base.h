/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal basics of all floors: compiler hints, assertions, and operations on the intrusive list.
 * Stateless; any thread.
 */
#ifndef SPOKEI_TIMER_BASE_H
#define SPOKEI_TIMER_BASE_H

#include <spoke/base.h>

#include <stdbool.h>

#if defined(__GNUC__)
#define SPOKEI_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define SPOKEI_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define SPOKEI_NORETURN __attribute__((noreturn, cold))
/* Keeps a rare path out of its caller, so that the common one needs no stack frame. */
#define SPOKEI_NOINLINE __attribute__((noinline))
/* Puts a function into all its callers, even a long one. */
#define SPOKEI_INLINE inline __attribute__((always_inline))
#define SPOKEI_PRINTF(at, args) __attribute__((format(printf, at, args)))
#else
#define SPOKEI_LIKELY(condition) (condition)
#define SPOKEI_UNLIKELY(condition) (condition)
#define SPOKEI_NORETURN
#define SPOKEI_NOINLINE
#define SPOKEI_INLINE inline
#define SPOKEI_PRINTF(at, args)
#endif

/*
 * Asserts a condition that only a bug of spoke or a misuse of its API can violate; never input,
 * lack of memory or an error of the system. Enabled in release builds too. The condition must have
 * no side effects.
 */
#define SPOKE_ASSERT(condition)                                                                    \
	(SPOKEI_LIKELY(condition) ? (void)0 : spokei_assert_failed(#condition, __FILE__, __LINE__))

/* Prints the condition and its place on stderr and aborts. */
SPOKEI_NORETURN void spokei_assert_failed(const char *condition, const char *file, int line);

static inline void spokei_list_init(struct spoke_list *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool spokei_list_empty(const struct spoke_list *head)
{
	return head->next == head;
}

static inline void spokei_list_append(struct spoke_list *head, struct spoke_list *node)
{
	struct spoke_list *last = head->prev;

	node->next = head;
	node->prev = last;
	last->next = node;
	head->prev = node;
}

/* Removes the node, whose own links become invalid. */
static inline void spokei_list_unlink(struct spoke_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
}

/* Removes the node and marks it as not in a list: next == NULL. */
static inline void spokei_list_remove(struct spoke_list *node)
{
	spokei_list_unlink(node);
	node->next = NULL;
}

/* Returns the first node of a list that is not empty. */
static inline struct spoke_list *spokei_list_first(const struct spoke_list *head)
{
	struct spoke_list *first = head->next;

	SPOKE_ASSERT(first->next != NULL);
	return first;
}

/* Moves all nodes of `from`, in order, into the empty list `to`. */
static inline void spokei_list_move(struct spoke_list *from, struct spoke_list *to)
{
	if (spokei_list_empty(from))
		return;
	to->next = from->next;
	to->prev = from->prev;
	to->next->prev = to;
	to->prev->next = to;
	spokei_list_init(from);
}

#endif
