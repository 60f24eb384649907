/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises programs that speak another protocol, by the first bytes that they send. */
#include "transport/conn/foreign.h"

#include "transport/stream/stream.h"

#include <string.h>

/* The answers of servers to bytes that they do not understand, or their greetings. */
static const struct {
	const char *begin;
	enum spokei_foreign foreign;
} begins[] = {
	{ "<!DOCTYPE ", SPOKEI_FOREIGN_HTTP }, /* to a request that looks like HTTP/0.9 */
	{ "<html", SPOKEI_FOREIGN_HTTP },      { "HTTP/", SPOKEI_FOREIGN_HTTP },
	{ "-ERR ", SPOKEI_FOREIGN_REDIS },     { "-NOAUTH ", SPOKEI_FOREIGN_REDIS },
	{ "-DENIED ", SPOKEI_FOREIGN_REDIS },  { "SSH-", SPOKEI_FOREIGN_SSH },
	{ "220 ", SPOKEI_FOREIGN_MAIL },       { "220-", SPOKEI_FOREIGN_MAIL },
};

/* A frame of settings on stream 0, the first one of each side. */
static bool begins_http2(const unsigned char *bytes, size_t len)
{
	static const unsigned char zeros[4];

	return len >= 9 && bytes[0] == 0 && bytes[1] == 0 && bytes[3] == 4 && bytes[4] == 0 &&
	       memcmp(bytes + 5, zeros, sizeof(zeros)) == 0;
}

enum spokei_foreign spokei_foreign_find(const void *bytes, size_t len, bool accepted)
{
	if (spokei_stream_begins_tls(bytes, len))
		return SPOKEI_FOREIGN_TLS;
	if (accepted)
		return SPOKEI_FOREIGN_UNKNOWN;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (len >= strlen(begins[i].begin) &&
		    memcmp(bytes, begins[i].begin, strlen(begins[i].begin)) == 0)
			return begins[i].foreign;
	return begins_http2(bytes, len) ? SPOKEI_FOREIGN_HTTP2 : SPOKEI_FOREIGN_UNKNOWN;
}

const char *spokei_foreign_sentence(enum spokei_foreign foreign, bool accepted)
{
	switch (foreign) {
	case SPOKEI_FOREIGN_TLS:
		return accepted ? "it speaks TLS; set tls=on or tls=optional here"
				: "it speaks TLS; set tls=on here";
	case SPOKEI_FOREIGN_HTTP:
		return "an HTTP server answers there";
	case SPOKEI_FOREIGN_HTTP2:
		return "a server of HTTP/2 answers there, e.g. of gRPC or triple";
	case SPOKEI_FOREIGN_REDIS:
		return "a Redis server answers there";
	case SPOKEI_FOREIGN_SSH:
		return "an SSH server answers there";
	case SPOKEI_FOREIGN_MAIL:
		return "a server of mail or FTP answers there";
	case SPOKEI_FOREIGN_UNKNOWN:
		break;
	}
	return NULL;
}
