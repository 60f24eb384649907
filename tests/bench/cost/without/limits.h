/* SPDX-License-Identifier: Apache-2.0 */
/* Included before every other header: limits of methods and the retry budget are not counted. */
#include "cluster/filter/limit.h"
#include "cluster/policy/budget.h"
#include "tests/bench/cost/without/stands_for.h"

STANDS_FOR(spokei_limit_take);
STANDS_FOR(spokei_limit_give);
STANDS_FOR(spokei_budget_called);

#define spokei_limit_take(limit, now_ns) ((void)(limit), (void)(now_ns), SPOKEI_LIMIT_FREE)
#define spokei_limit_give(limit) ((void)(limit))
#define spokei_budget_called(budget, now_ns) ((void)(budget), (void)(now_ns))
