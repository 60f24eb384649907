/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the addresses to listen at against other keys of [provider]. */
#include "cluster/config/listen.h"
#include "cluster/config/check.h"

/* Does the section ask for TLS? */
static bool has_tls(const struct spokei_part *provider)
{
	const struct spokei_entry *tls = spokei_sheet_entry(provider, SPOKEI_KEY_TLS);
	enum spokei_tls_mode mode = SPOKEI_TLS_OFF;

	return tls && spokei_check_tls_mode(tls->text, &mode) && mode != SPOKEI_TLS_OFF;
}

int spokei_listen_check_with(const struct spokei_sheet *sheet,
			     const struct spokei_entry **ret_entry, const char **ret_why)
{
	const struct spoke_span none = { NULL, 0 };
	const struct spokei_part *provider = spokei_sheet_part(sheet, SPOKEI_IN_PROVIDER, none);
	const struct spokei_entry *listen = spokei_sheet_entry(provider, SPOKEI_KEY_LISTEN);
	const bool concerns = listen && has_tls(provider);
	const char *at = concerns ? listen->text : NULL;
	struct spoke_span item;

	*ret_entry = listen;
	while (concerns && spokei_option_item(&at, &item)) {
		struct spoke_url url;
		bool refused;

		*ret_why = "out of memory";
		if (spoke_url_parse(sheet->env, item.data, item.len, &url, NULL))
			return SPOKE_ENOMEM;
		/* An address with a mode of its own has been checked. */
		refused = url.shm && spoke_url_get(&url, "tls") == NULL;
		spoke_url_fini(&url);
		*ret_why = "shared memory has no TLS; write shm:/PATH?tls=off, or use unix:/PATH";
		if (refused)
			return SPOKE_EINVAL;
	}
	return SPOKE_OK;
}
