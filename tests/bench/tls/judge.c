/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of requests, and lists of addresses. */
#include "core/text/range.h"
#include "core/text/tokens.h"
#include "tests/bench/tls/bench.h"
#include "transport/listen/rules.h"

#include <spoke/host.h>

#include <stdio.h>
#include <string.h>

enum {
	CHECKS = 20000,
	ENTRIES = 64,
	ENTRY_TEXT = 24,
};

static void print(const char *figure, double *rounds)
{
	printf("%s\t\t%.3f\t\n", figure, bench_median(rounds, ROUNDS));
}

/* A UUID, the usual token, which is the second of two. */
void bench_token(void)
{
	static const char list[] = "1b4e28ba-2fa1-11d2-883f-0016d3cca427,"
				   "6fa459ea-ee8a-3ca4-894e-db77e160355e";
	struct spoke_span token = { strchr(list, ',') + 1, 36 };
	struct spokei_tokens tokens = { .count = 0 };
	double rounds[ROUNDS];
	unsigned right = 0;

	if (spokei_tokens_read_list(&tokens, list, NULL))
		bench_die("no tokens");
	for (unsigned round = 0; round < ROUNDS; round++) {
		double begun = bench_own_cpu();

		for (unsigned i = 0; i < CHECKS; i++)
			right += spokei_tokens_has(&tokens, token);
		rounds[round] = (bench_own_cpu() - begun) / CHECKS * 1e6;
	}
	if (right != ROUNDS * CHECKS)
		bench_die("a token is refused");
	print("token check, us", rounds);
}

/* The peer is in the last of the ranges. */
void bench_list(void)
{
	const struct spoke_env *env = spoke_host_env();
	char list[ENTRIES * ENTRY_TEXT] = "";
	struct spokei_rules_of of = { .allow_from = list };
	struct spokei_machine machine;
	struct spokei_rules *rules;
	char why[SPOKEI_RULES_WHY];
	double rounds[ROUNDS];
	unsigned admitted = 0;

	for (unsigned i = 0; i < ENTRIES; i++)
		(void)snprintf(list + strlen(list), ENTRY_TEXT, "%s10.%u.0.0/16", i > 0 ? "," : "",
			       i);
	bench_must("rules", spokei_rules_new(env, &of, &rules, why));
	if (!spokei_machine_read((struct spoke_span){ "10.63.1.2", 9 }, &machine))
		bench_die("no address");
	for (unsigned round = 0; round < ROUNDS; round++) {
		double begun = bench_own_cpu();

		for (unsigned i = 0; i < CHECKS; i++)
			admitted += spokei_rules_judge(rules, &machine) == SPOKEI_RULES_ADMIT;
		rounds[round] = (bench_own_cpu() - begun) / CHECKS * 1e6;
	}
	if (admitted != ROUNDS * CHECKS)
		bench_die("an address is refused");
	print("allow list of 64, us", rounds);
	spokei_rules_free(env, rules);
}
