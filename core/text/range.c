/* SPDX-License-Identifier: Apache-2.0 */
/* Reads addresses and ranges of addresses from text. */
#include "core/text/range.h"

#include "core/base/address.h"

#include <stdio.h>
#include <string.h>

#define GROUPS 8u                       /* of an IPv6 address, 16 bits each */
#define TEXT_MAX 64u                    /* bytes of an address in digits, and more than any has */
#define MAPPED UINT64_C(0xffff00000000) /* the bits before an IPv4 address in an IPv6 one */
#define MAPPED_BITS 96u

struct digits {
	const char *at;
	const char *end;
};

static bool take(struct digits *digits, char mark)
{
	if (digits->at == digits->end || *digits->at != mark)
		return false;
	digits->at++;
	return true;
}

/* Reads a decimal number without leading zeros. */
static bool read_number(struct digits *digits, unsigned max, unsigned *ret)
{
	const char *begin = digits->at;
	unsigned number = 0;

	for (; digits->at < digits->end && *digits->at >= '0' && *digits->at <= '9'; digits->at++) {
		if (digits->at > begin && *begin == '0')
			return false;
		number = number * 10 + (unsigned)(*digits->at - '0');
		if (number > max)
			return false;
	}
	*ret = number;
	return digits->at > begin;
}

static bool read_v4(struct digits *digits, uint64_t *ret)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < 4; i++) {
		unsigned part;

		if ((i > 0 && !take(digits, '.')) || !read_number(digits, 255, &part))
			return false;
		number = number << 8 | part;
	}
	*ret = number;
	return digits->at == digits->end;
}

static int hex_of(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f')
		return (digit | 0x20) - 'a' + 10;
	return -1;
}

/* Reads one to four hexadecimal digits. */
static bool read_group(struct digits *digits, unsigned *ret)
{
	unsigned count = 0;

	*ret = 0;
	for (; digits->at < digits->end && hex_of(*digits->at) >= 0; digits->at++, count++) {
		if (count == 4)
			return false;
		*ret = *ret << 4 | (unsigned)hex_of(*digits->at);
	}
	return count > 0;
}

/* Returns whether an IPv4 address is next, which can only be the end of an IPv6 one. */
static bool ends_in_v4(const struct digits *digits)
{
	size_t len = (size_t)(digits->end - digits->at);

	return memchr(digits->at, '.', len) != NULL && memchr(digits->at, ':', len) == NULL;
}

/* The groups of an address, and the place of "::" among them; GROUPS + 1: there is none. */
struct groups {
	unsigned of[GROUPS];
	unsigned count;
	unsigned gap;
};

static bool add_v4(struct digits *digits, struct groups *groups)
{
	uint64_t number;

	if (groups->count > GROUPS - 2 || !read_v4(digits, &number))
		return false;
	groups->of[groups->count++] = (unsigned)(number >> 16);
	groups->of[groups->count++] = (unsigned)(number & 0xffff);
	return true;
}

static bool read_groups(struct digits *digits, struct groups *groups)
{
	*groups = (struct groups){ .gap = GROUPS + 1 };
	if (take(digits, ':')) {
		if (!take(digits, ':'))
			return false;
		groups->gap = 0;
	}
	while (digits->at < digits->end) {
		if (ends_in_v4(digits))
			return add_v4(digits, groups);
		if (groups->count == GROUPS || !read_group(digits, &groups->of[groups->count++]))
			return false;
		if (digits->at == digits->end)
			return true;
		if (!take(digits, ':') || digits->at == digits->end)
			return false;
		if (!take(digits, ':'))
			continue;
		if (groups->gap <= GROUPS)
			return false;
		groups->gap = groups->count;
	}
	return groups->gap <= GROUPS;
}

static bool read_v6(struct digits *digits, struct spokei_machine *ret)
{
	struct groups groups;
	uint64_t halves[2] = { 0, 0 };
	unsigned missing;

	if (!read_groups(digits, &groups))
		return false;
	missing = GROUPS - groups.count;
	/* "::" stands for at least one group. */
	if ((groups.gap <= GROUPS) != (missing > 0))
		return false;
	for (unsigned i = 0; i < groups.count; i++) {
		unsigned place = i < groups.gap ? i : i + missing;

		halves[place / 4] |= (uint64_t)groups.of[i] << (48 - 16 * (place % 4));
	}
	*ret = (struct spokei_machine){ SPOKEI_MACHINE_V6, halves[0], halves[1] };
	return true;
}

/* Turns IPv4 mapped into IPv6 into IPv4. */
static struct spokei_machine unmapped(struct spokei_machine machine)
{
	if (machine.kind == SPOKEI_MACHINE_V6 && machine.high == 0 &&
	    (machine.low & ~(uint64_t)UINT32_MAX) == MAPPED)
		return (struct spokei_machine){ SPOKEI_MACHINE_V4, 0, machine.low & UINT32_MAX };
	return machine;
}

/* Reads an address as it stands there. */
static bool read_plain(struct spoke_span text, struct spokei_machine *ret)
{
	struct digits digits = { text.data, (const char *)text.data + text.len };

	if (text.len == 0 || text.len > TEXT_MAX)
		return false;
	if (memchr(text.data, ':', text.len) != NULL)
		return read_v6(&digits, ret);
	*ret = (struct spokei_machine){ SPOKEI_MACHINE_V4, 0, 0 };
	return read_v4(&digits, &ret->low);
}

bool spokei_machine_read(struct spoke_span text, struct spokei_machine *ret)
{
	if (!read_plain(text, ret))
		return false;
	*ret = unmapped(*ret);
	return true;
}

bool spokei_machine_misspelt(struct spoke_span host)
{
	const char *text = host.data;
	struct spokei_machine machine;

	for (size_t i = 0; i < host.len; i++)
		if (text[i] != '.' && (text[i] < '0' || text[i] > '9'))
			return false;
	return host.len > 0 && !spokei_machine_read(host, &machine);
}

/* Reads the first `len` bytes of an address in the order of the network. */
static uint64_t read_bytes(const unsigned char *bytes, unsigned len)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < len; i++)
		number = number << 8 | bytes[i];
	return number;
}

/* Reads the printed form, which each network has. */
static struct spokei_machine of_text(const char *text)
{
	struct spokei_machine machine = { SPOKEI_MACHINE_OTHER, 0, 0 };
	struct spoke_span host = spokei_address_host(text);
	const char *zone;

	if (strncmp(text, "unix:", 5) == 0)
		return (struct spokei_machine){ SPOKEI_MACHINE_UNIX, 0, 0 };
	if (host.len == 0)
		return machine;
	zone = memchr(host.data, '%', host.len);
	if (zone)
		host.len = (size_t)(zone - (const char *)host.data);
	if (!spokei_machine_read(host, &machine))
		machine = (struct spokei_machine){ SPOKEI_MACHINE_OTHER, 0, 0 };
	return machine;
}

struct spokei_machine spokei_machine_of(const struct spoke_env *env,
					const struct spoke_address *address)
{
	struct spokei_machine machine = { SPOKEI_MACHINE_OTHER, 0, 0 };
	char text[160];
	size_t len;
	const unsigned char *bytes = spokei_address_bytes(address, &len);

	if (bytes && len == 0)
		return (struct spokei_machine){ SPOKEI_MACHINE_UNIX, 0, 0 };
	if (bytes == NULL) {
		env->net->print(env->ctx, address, text, sizeof(text));
		return of_text(text);
	}
	machine.kind = len == 4 ? SPOKEI_MACHINE_V4 : SPOKEI_MACHINE_V6;
	machine.high = len == 4 ? 0 : read_bytes(bytes, 8);
	machine.low = len == 4 ? read_bytes(bytes, 4) : read_bytes(bytes + 8, 8);
	return unmapped(machine);
}

/* Returns 64 bits of which the first `count` are 1. */
static uint64_t mask_of(unsigned count)
{
	return count == 0 ? 0 : UINT64_MAX << (64 - count);
}

struct spokei_machine spokei_machine_cut(const struct spokei_machine *machine, unsigned prefix6)
{
	struct spokei_machine cut = *machine;

	if (cut.kind == SPOKEI_MACHINE_V6) {
		cut.high &= mask_of(prefix6 < 64 ? prefix6 : 64);
		cut.low &= mask_of(prefix6 < 64 ? 0 : prefix6 - 64);
	}
	return cut;
}

/* Makes the range of a prefix of an address as it was written. */
static const char *make(struct spokei_machine base, unsigned bits, struct spokei_range *ret)
{
	bool v4 = base.kind == SPOKEI_MACHINE_V4;
	struct spokei_machine plain = unmapped(base);

	if (plain.kind != base.kind) {
		if (bits < MAPPED_BITS)
			return "a range of mapped IPv4 addresses has a prefix of at least 96 bits";
		bits -= MAPPED_BITS;
		v4 = true;
	}
	ret->base = plain;
	ret->high_mask = v4 ? 0 : mask_of(bits < 64 ? bits : 64);
	ret->low_mask = v4 ? mask_of(bits) >> 32 : mask_of(bits > 64 ? bits - 64 : 0);
	if ((plain.high & ~ret->high_mask) || (plain.low & ~ret->low_mask))
		return "the address has bits beyond its prefix; set them to 0";
	return NULL;
}

const char *spokei_range_read(struct spoke_span text, struct spokei_range *ret)
{
	const char *begin = text.data;
	const char *slash = text.len ? memchr(begin, '/', text.len) : NULL;
	struct digits digits = { begin, begin + text.len };
	struct spokei_machine base;
	unsigned bits;
	unsigned max;

	*ret = (struct spokei_range){ .base.kind = SPOKEI_MACHINE_UNIX };
	if (text.len == 4 && memcmp(begin, "unix", 4) == 0)
		return NULL;
	if (slash)
		text.len = (size_t)(slash - begin);
	if (!read_plain(text, &base))
		return "not an address in digits, a range like 10.0.0.0/8, or unix";
	max = base.kind == SPOKEI_MACHINE_V4 ? 32 : 128;
	bits = max;
	digits.at = begin + text.len + 1;
	if (slash && (!read_number(&digits, max, &bits) || digits.at != digits.end))
		return max == 32 ? "the prefix must be a number from 0 to 32"
				 : "the prefix must be a number from 0 to 128";
	return make(base, bits, ret);
}

bool spokei_machine_is_here(const struct spokei_machine *machine)
{
	switch (machine->kind) {
	case SPOKEI_MACHINE_UNIX:
		return true;
	case SPOKEI_MACHINE_V4:
		return machine->low >> 24 == 127;
	case SPOKEI_MACHINE_V6:
		return machine->high == 0 && machine->low == 1;
	case SPOKEI_MACHINE_OTHER:
		break;
	}
	return false;
}
/* --- printing */

#define GROUPS 8u /* of an IPv6 address */

/* Returns the first of the most zeros in a row, which "::" stands for; *ret_count 0: there are no
 * two. */
static unsigned find_zeros(const uint16_t groups[GROUPS], unsigned *ret_count)
{
	unsigned first = GROUPS;

	*ret_count = 0;
	for (unsigned i = 0; i < GROUPS; i++) {
		unsigned count = 0;

		while (i + count < GROUPS && groups[i + count] == 0)
			count++;
		if (count < 2 || count <= *ret_count)
			continue;
		first = i;
		*ret_count = count;
	}
	return first;
}

static size_t print_v6(const struct spokei_machine *machine, char *text, size_t size)
{
	uint16_t groups[GROUPS];
	unsigned count;
	unsigned zeros;
	size_t len = 0;

	for (unsigned i = 0; i < GROUPS; i++)
		groups[i] = (uint16_t)((i < 4 ? machine->high : machine->low) >> (48 - i % 4 * 16));
	zeros = find_zeros(groups, &count);
	for (unsigned i = 0; i < GROUPS && len < size; i++) {
		if (i == zeros) {
			len += (size_t)snprintf(text + len, size - len, "%s",
						zeros + count == GROUPS ? "::" : ":");
			i += count - 1;
			continue;
		}
		len += (size_t)snprintf(text + len, size - len, "%s%x", i > 0 ? ":" : "",
					(unsigned)groups[i]);
	}
	return len < size ? len : 0;
}

size_t spokei_machine_print(const struct spokei_machine *machine, char *text, size_t size)
{
	unsigned number = (unsigned)machine->low;
	size_t len;

	if (machine->kind == SPOKEI_MACHINE_V6)
		return print_v6(machine, text, size);
	if (machine->kind != SPOKEI_MACHINE_V4)
		return 0;
	len = (size_t)snprintf(text, size, "%u.%u.%u.%u", number >> 24, number >> 16 & 255,
			       number >> 8 & 255, number & 255);
	return len < size ? len : 0;
}
