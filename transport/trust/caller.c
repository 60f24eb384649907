/* SPDX-License-Identifier: Apache-2.0 */
/* Makes identities of peers, in one block of memory, and prints them; reads lists of callers, and
 * compares callers with them. */
#include "transport/trust/caller.h"

#include "core/base/address.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/base/siphash.h"
#include "core/base/span.h"
#include "core/text/option.h"

#include <stdio.h>
#include <string.h>

/* --- identities */

#define ADDRESS_TEXT 160u

static bool is_kept(struct spoke_span name)
{
	return name.len > 0 && name.len < SPOKEI_IDENTITY_NAME;
}

struct spokei_identity *spokei_identity_new(const struct spoke_env *env,
					    const struct spokei_identity_of *of)
{
	size_t size = sizeof(struct spokei_identity) + of->name_count * sizeof(*of->names);
	struct spokei_identity *identity;
	char *at;

	for (size_t i = 0; i < of->name_count; i++)
		size += is_kept(of->names[i]) ? of->names[i].len : 0;
	identity = spokei_alloc(env, 1, size);
	if (identity == NULL)
		return NULL;
	identity->env = env;
	identity->size = size;
	identity->shares = 1;
	if (of->user) {
		identity->has_user = true;
		identity->user = *of->user;
	}
	at = (char *)(identity->names + of->name_count);
	for (size_t i = 0; i < of->name_count; i++) {
		struct spoke_span name = of->names[i];

		if (!is_kept(name))
			continue;
		memcpy(at, name.data, name.len);
		identity->names[identity->name_count++] = (struct spoke_span){ at, name.len };
		at += name.len;
	}
	return identity;
}

struct spokei_identity *spokei_identity_share(struct spokei_identity *identity)
{
	if (identity)
		identity->shares++;
	return identity;
}

void spokei_identity_drop(struct spokei_identity *identity)
{
	if (identity && --identity->shares == 0)
		spokei_free(identity->env, identity, 1, identity->size);
}

static void set_token(struct spokei_identity *identity, bool token)
{
	if (atomic_load_explicit(&identity->token, memory_order_relaxed) == token)
		return;
	atomic_store_explicit(&identity->token, token, memory_order_relaxed);
	memset(identity->judged, 0, sizeof(identity->judged));
}

void spokei_identity_prove(struct spokei_identity *identity, uint64_t proof)
{
	identity->proof = proof;
	set_token(identity, true);
}

void spokei_identity_withdraw(struct spokei_identity *identity)
{
	identity->proof = 0;
	set_token(identity, false);
}

static size_t print_address(const struct spoke_env *env, const struct spoke_address *peer,
			    char *text, size_t size)
{
	char address[ADDRESS_TEXT];
	struct spoke_span host;

	env->net->print(env->ctx, peer, address, sizeof(address));
	host = spokei_address_host(address);
	if (host.len == 0)
		return 0;
	return (size_t)snprintf(text, size, "addr:%.*s", (int)host.len, (const char *)host.data);
}

size_t spokei_identity_print(const struct spoke_env *env, const struct spokei_identity *identity,
			     const struct spoke_address *peer, size_t index, char *text,
			     size_t size)
{
	size_t count = identity ? identity->name_count : 0;
	bool has_user = identity && identity->has_user;
	bool token = identity && atomic_load_explicit(&identity->token, memory_order_relaxed);

	if (index < count)
		return (size_t)snprintf(text, size, "%.*s", (int)identity->names[index].len,
					(const char *)identity->names[index].data);
	if (has_user && index == count)
		return (size_t)snprintf(text, size, "uid:%u", (unsigned)identity->user.uid);
	count += has_user;
	if (token && index == count)
		return (size_t)snprintf(text, size, "token");
	count += token;
	return index == count ? print_address(env, peer, text, size) : 0;
}

uint64_t spokei_identity_hash(const struct spokei_identity *identity, const uint64_t key[2])
{
	uint64_t chain[2] = { key[0], key[1] };
	struct {
		uint32_t has_user;
		uint32_t uid;
		uint32_t gid;
		uint32_t token;
	} facts = { 0 };

	if (!spokei_identity_is_known(identity))
		return 0;
	facts.token = atomic_load_explicit(&identity->token, memory_order_relaxed);
	if (identity->has_user) {
		facts.has_user = 1;
		facts.uid = identity->user.uid;
		facts.gid = identity->user.gid;
	}
	chain[1] ^= spokei_siphash(chain, &facts, sizeof(facts));
	for (size_t i = 0; i < identity->name_count; i++)
		chain[1] ^= spokei_siphash(chain, identity->names[i].data, identity->names[i].len);
	return chain[1] ^ key[1];
}

bool spokei_identity_is_known(const struct spokei_identity *identity)
{
	return identity && (identity->name_count > 0 || identity->has_user ||
			    atomic_load_explicit(&identity->token, memory_order_relaxed));
}

const struct spokei_identity_judged *spokei_identity_judged(const struct spokei_identity *identity,
							    uint64_t list)
{
	for (unsigned i = 0; i < SPOKEI_IDENTITY_JUDGED; i++)
		if (identity->judged[i].list == list)
			return &identity->judged[i];
	return NULL;
}

void spokei_identity_judge(struct spokei_identity *identity, uint64_t list, bool allowed)
{
	identity->judged[identity->next++ % SPOKEI_IDENTITY_JUDGED] =
		(struct spokei_identity_judged){ list, allowed };
}

/* --- lists: entries */

#define SHOWN 96u /* bytes of an entry in a sentence */

static const char no_kind[] =
	"unknown; write dns:NAME, uri:URI, ip:ADDRESS, uid:N, gid:N, addr:RANGE or token";

/* --- reading */

static bool is_label_byte(char byte)
{
	byte = spokei_lower(byte);
	return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
	       byte == '_';
}

/* Returns whether the text consists of labels with dots between them. */
static bool is_host(struct spoke_span host)
{
	const char *text = host.data;
	size_t label = 0;

	for (size_t i = 0; i < host.len; i++) {
		if (text[i] == '.' && label == 0)
			return false;
		if (text[i] != '.' && !is_label_byte(text[i]))
			return false;
		label = text[i] == '.' ? 0 : label + 1;
	}
	return label > 0;
}

static const char *read_dns(struct spoke_span entry, struct spokei_caller_rule *rule)
{
	bool any = spokei_span_begins(entry, "dns:*.");

	if (!is_host(spokei_span_after(entry, any ? 6 : 4)))
		return "not a host; write e.g. dns:a.pay.test or dns:*.pay.test";
	rule->kind = any ? SPOKEI_CALLER_SUFFIX : SPOKEI_CALLER_NAME;
	rule->text = spokei_span_after(entry, any ? 5 : 0);
	return NULL;
}

static const char *read_uri(struct spoke_span entry, struct spokei_caller_rule *rule)
{
	const char *text = entry.data;
	const char *star = memchr(text, '*', entry.len);
	bool any = star && star == text + entry.len - 1;

	if (entry.len == 4 || (star && !any) || (any && star[-1] != '/'))
		return "not a URI; write e.g. uri:spiffe://x/y, or uri:spiffe://x/* for all below";
	rule->kind = any ? SPOKEI_CALLER_PREFIX : SPOKEI_CALLER_NAME;
	rule->text = entry;
	rule->text.len -= any;
	return NULL;
}

static const char *read_ip(struct spoke_span entry, struct spokei_caller_rule *rule)
{
	if (!spokei_machine_read(spokei_span_after(entry, 3), &rule->range.base))
		return "not an address; write e.g. ip:10.0.0.7";
	rule->kind = SPOKEI_CALLER_IP;
	return NULL;
}

bool spokei_caller_id(struct spoke_span digits, uint32_t *ret_id)
{
	const char *at = digits.data;
	uint64_t id = 0;

	for (size_t i = 0; i < digits.len && id < UINT32_MAX; i++) {
		if (at[i] < '0' || at[i] > '9')
			return false;
		id = id * 10 + (uint64_t)(at[i] - '0');
	}
	if (digits.len == 0 || (*at == '0' && digits.len > 1) || id >= UINT32_MAX)
		return false;
	*ret_id = (uint32_t)id;
	return true;
}

static const char *read_id(struct spoke_span entry, struct spokei_caller_rule *rule)
{
	rule->kind = spokei_span_begins(entry, "uid:") ? SPOKEI_CALLER_USER : SPOKEI_CALLER_GROUP;
	return spokei_caller_id(spokei_span_after(entry, 4), &rule->id) ? NULL : "not a number";
}

/* Reads an entry, whose text is the caller's. Returns NULL, or why it is wrong. */
static const char *read_rule(struct spoke_span entry, struct spokei_caller_rule *rule)
{
	static const char token[] = "token";

	if (spokei_span_begins(entry, "dns:"))
		return read_dns(entry, rule);
	if (spokei_span_begins(entry, "uri:"))
		return read_uri(entry, rule);
	if (spokei_span_begins(entry, "ip:"))
		return read_ip(entry, rule);
	if (spokei_span_begins(entry, "uid:") || spokei_span_begins(entry, "gid:"))
		return read_id(entry, rule);
	if (spokei_span_begins(entry, "addr:")) {
		rule->kind = SPOKEI_CALLER_ADDRESS;
		return spokei_range_read(spokei_span_after(entry, 5), &rule->range);
	}
	rule->kind = SPOKEI_CALLER_TOKEN;
	return entry.len == sizeof(token) - 1 && spokei_span_begins(entry, token) ? NULL : no_kind;
}

static int read_rules(struct spokei_callers *callers, const char *at, char why[SPOKEI_CALLERS_WHY])
{
	struct spoke_span entry;
	char shown[SHOWN];

	for (unsigned number = 1; spokei_option_item(&at, &entry); number++) {
		const char *wrong = read_rule(entry, &callers->rules[callers->count++]);

		if (wrong == NULL)
			continue;
		(void)spokei_log_escape(shown, sizeof(shown), entry.data, entry.len);
		(void)snprintf(why, SPOKEI_CALLERS_WHY, "entry %u, %s: %s", number, shown, wrong);
		return SPOKE_EINVAL;
	}
	return SPOKE_OK;
}

int spokei_callers_new(const struct spoke_env *env, const char *text, uint64_t number,
		       struct spokei_callers **ret_callers, char why[SPOKEI_CALLERS_WHY])
{
	struct spokei_callers *callers;
	const char *at = text;
	struct spoke_span entry;
	size_t count = 0;
	size_t size;
	char *copy;
	int error;

	*ret_callers = NULL;
	if (strcmp(text, "all") == 0)
		return SPOKE_OK;
	while (*text && spokei_option_item(&at, &entry))
		count++;
	if (count == 0 || count > SPOKEI_CALLERS_MAX) {
		(void)snprintf(why, SPOKEI_CALLERS_WHY, "%s",
			       count == 0 ? "the list is empty; remove it to let all callers in"
					  : "too many entries; at most 64");
		return SPOKE_EINVAL;
	}
	size = sizeof(*callers) + count * sizeof(*callers->rules) + strlen(text) + 1;
	callers = spokei_alloc(env, 1, size);
	if (callers == NULL)
		return SPOKE_ENOMEM;
	callers->size = size;
	callers->number = number;
	copy = (char *)(callers->rules + count);
	memcpy(copy, text, strlen(text) + 1);
	error = read_rules(callers, copy, why);
	if (error)
		spokei_callers_free(env, callers);
	else
		*ret_callers = callers;
	return error;
}

void spokei_callers_free(const struct spoke_env *env, struct spokei_callers *callers)
{
	if (callers)
		spokei_free(env, callers, 1, callers->size);
}

bool spokei_callers_limit_hosts(const struct spokei_callers *callers)
{
	for (size_t i = 0; callers && i < callers->count; i++) {
		const struct spokei_caller_rule *rule = &callers->rules[i];

		if (rule->kind == SPOKEI_CALLER_ADDRESS && spokei_range_is_whole(&rule->range))
			return false;
	}
	return callers != NULL;
}

bool spokei_callers_ask_address(const struct spokei_callers *callers)
{
	for (size_t i = 0; callers && i < callers->count; i++)
		if (callers->rules[i].kind == SPOKEI_CALLER_ADDRESS)
			return true;
	return false;
}

/* --- comparing */

/* In hosts capital letters count as small ones. */
static bool is_same_name(const struct spokei_caller_rule *rule, struct spoke_span name)
{
	return spokei_span_begins(name, "dns:") ? spokei_span_same_letters(name, rule->text)
						: spokei_span_same(name, rule->text);
}

/* Returns whether the name is one label and the end that the rule names. */
static bool has_suffix(const struct spokei_caller_rule *rule, struct spoke_span name)
{
	const char *text = name.data;
	size_t label;

	if (!spokei_span_begins(name, "dns:") || name.len <= 4 + rule->text.len)
		return false;
	label = name.len - 4 - rule->text.len;
	for (size_t i = 0; i < label; i++)
		if (!is_label_byte(text[4 + i]))
			return false;
	return spokei_span_same_letters(spokei_span(text + 4 + label, rule->text.len), rule->text);
}

/* Addresses are compared as numbers: an IPv6 address has more than one text. */
static bool is_same_address(const struct spokei_caller_rule *rule, struct spoke_span name)
{
	struct spokei_machine machine;

	return spokei_span_begins(name, "ip:") &&
	       spokei_machine_read(spokei_span_after(name, 3), &machine) &&
	       spokei_machine_same(&machine, &rule->range.base);
}

static bool fits_name(const struct spokei_caller_rule *rule, struct spoke_span name)
{
	switch ((int)rule->kind) {
	case SPOKEI_CALLER_NAME:
		return is_same_name(rule, name);
	case SPOKEI_CALLER_IP:
		return is_same_address(rule, name);
	case SPOKEI_CALLER_SUFFIX:
		return has_suffix(rule, name);
	case SPOKEI_CALLER_PREFIX:
		return name.len > rule->text.len &&
		       memcmp(name.data, rule->text.data, rule->text.len) == 0;
	default:
		return false;
	}
}

static bool fits_any_name(const struct spokei_caller_rule *rule,
			  const struct spokei_identity *identity)
{
	for (size_t i = 0; i < identity->name_count; i++)
		if (fits_name(rule, identity->names[i]))
			return true;
	return false;
}

static bool fits(const struct spokei_caller_rule *rule, const struct spokei_identity *identity,
		 const struct spokei_machine *machine)
{
	if (rule->kind == SPOKEI_CALLER_ADDRESS)
		return spokei_range_has(&rule->range, machine);
	if (identity == NULL)
		return false;
	switch ((int)rule->kind) {
	case SPOKEI_CALLER_USER:
		return identity->has_user && identity->user.uid == rule->id;
	case SPOKEI_CALLER_GROUP:
		return identity->has_user && identity->user.gid == rule->id;
	case SPOKEI_CALLER_TOKEN:
		return atomic_load_explicit(&identity->token, memory_order_relaxed);
	default:
		return fits_any_name(rule, identity);
	}
}

bool spokei_callers_fit(const struct spokei_callers *callers, const struct spoke_env *env,
			const struct spokei_identity *identity, const struct spoke_address *peer)
{
	struct spokei_machine machine = spokei_machine_of(env, peer);

	for (size_t i = 0; i < callers->count; i++)
		if (fits(&callers->rules[i], identity, &machine))
			return true;
	return false;
}
