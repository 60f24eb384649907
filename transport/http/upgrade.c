/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and answers the handshake of WebSocket. */
#include "transport/http/upgrade.h"

#include "core/text/digest.h"
#include "core/text/encoding.h"
#include "timer/base.h"
#include "transport/http/request.h"
#include "transport/http/text.h"

#include <stdint.h>
#include <string.h>

#define SWITCHING 101
#define BAD_REQUEST 400
#define UPGRADE_REQUIRED 426

#define KEY 24u /* bytes of Sec-WebSocket-Key: the base64 of 16 bytes */
#define KEY_BYTES 16u

static const char salt[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455, 1.3 */

/* Is it the canonical base64 of 16 bytes? */
static bool is_key(struct spoke_span key)
{
	char text[KEY];
	size_t len;

	if (key.len != KEY)
		return false;
	memcpy(text, key.data, KEY);
	return spokei_base64_read(text, KEY, &len) && len == KEY_BYTES;
}

int spokei_upgrade_check(const struct spokei_upgrade *request)
{
	if (!spokei_http_list_has(request->upgrade, "websocket"))
		return UPGRADE_REQUIRED;
	if (!spokei_http_list_has(request->connection, "upgrade") || request->version.data == NULL)
		return BAD_REQUEST;
	if (!spokei_http_is(request->version, "13"))
		return UPGRADE_REQUIRED;
	return is_key(request->key) ? SWITCHING : BAD_REQUEST;
}

bool spokei_upgrade_offers(const struct spokei_upgrade *request, const char *protocol)
{
	struct spoke_span field = request->protocols;
	struct spoke_span found;

	while (spokei_http_next_item(&field, &found)) {
		if (spokei_http_is(found, protocol))
			return true;
	}
	return false;
}

bool spokei_upgrade_accept(struct spoke_span key, char accept[SPOKEI_UPGRADE_ACCEPT])
{
	unsigned char salted[KEY + sizeof(salt)];
	unsigned char digest[SPOKEI_SHA1];

	if (!is_key(key))
		return false;
	memcpy(salted, key.data, KEY);
	memcpy(salted + KEY, salt, sizeof(salt));
	spokei_sha1(salted, sizeof(salted) - 1, digest); /* without the NUL */
	for (size_t i = 0; i < sizeof(digest); i += 3)
		spokei_base64_write(digest + i, sizeof(digest) - i, accept + i / 3 * 4);
	accept[SPOKEI_UPGRADE_ACCEPT - 1] = '\0';
	return true;
}

static size_t add(char *head, size_t at, const char *text)
{
	for (; *text != '\0'; text++) {
		SPOKE_ASSERT(at < SPOKEI_UPGRADE_HEAD_MAX);
		head[at++] = *text;
	}
	return at;
}

size_t spokei_upgrade_head(const struct spokei_upgrade *request, const char *protocol,
			   char head[SPOKEI_UPGRADE_HEAD_MAX])
{
	char accept[SPOKEI_UPGRADE_ACCEPT];
	size_t len = 0;
	bool is_valid = spokei_upgrade_accept(request->key, accept);

	SPOKE_ASSERT(is_valid);
	SPOKE_ASSERT(protocol == NULL || (strlen(protocol) < SPOKEI_UPGRADE_PROTOCOL &&
					  spokei_upgrade_offers(request, protocol)));
	len = add(head, len,
		  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		  "Connection: Upgrade\r\nSec-WebSocket-Accept: ");
	len = add(head, len, accept);
	if (protocol != NULL) {
		len = add(head, len, "\r\nSec-WebSocket-Protocol: ");
		len = add(head, len, protocol);
	}
	return add(head, len, "\r\n\r\n");
}
