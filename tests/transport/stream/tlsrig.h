/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS stream over the virtual network, and its peer: an SSL object of the library over memory,
 * whose bytes the test may cut, change and hold back. The stream is driven by the engine as a
 * connection does it. The network takes and gives everything at once.
 */
#ifndef TESTS_TRANSPORT_STREAM_TLSRIG_H
#define TESTS_TRANSPORT_STREAM_TLSRIG_H

#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"
#include "tests/transport/stream/tlscert.h"
#include "transport/stream/tls/parts.h"

#define TLSRIG_HOST "server.test"
#define TLSRIG_MS UINT64_C(1000000)

enum {
	TLSRIG_OPENING = SPOKEI_STREAM_MORE,
	TLSRIG_READING = 1, /* `ended`: neither an end nor an error */
	TLSRIG_ROOM = 1 << 20,
};

/* The authority of all, another one, and what both sides have by default. */
struct tlsrig_certs {
	struct tlscert authority;
	struct tlscert stranger;
	struct tlscert server; /* TLSRIG_HOST, 127.0.0.1 */
	struct tlscert client; /* dns:client.test, uri:spiffe://a/client */
};

/* All zero: the stream connects to TLSRIG_HOST, and trusts the authority. */
struct tlsrig_setting {
	bool accepts;
	bool or_plain;
	const char *host;             /* that is connected to; NULL: TLSRIG_HOST */
	const char *peers;            /* names that the peer has to bear; NULL: the host */
	enum spoke_tls_verify verify; /* 0: none */
	unsigned oldest;
	const struct tlscert *revoked; /* by a list; NULL: there is no list */
	const struct tlscert *peer;    /* of the peer; NULL: the default of its side */
	bool peer_has_none;            /* the peer has no certificate */
	/* Sets more of the peer, before it begins; NULL: nothing. */
	void (*set_context)(SSL_CTX *context);
};

struct tlsrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct tlsrig_setting setting;
	struct spokei_tls *tls;
	struct spokei_stream stream;
	int status;           /* of opening: TLSRIG_OPENING, 0, or a negative errno */
	int ended;            /* of reading: TLSRIG_READING, 0: the peer's end, or an errno */
	int broken;           /* of writing: 0, or an errno */
	unsigned turns;       /* how often the stream was called */
	unsigned opened_turn; /* the turn in which it opened */
	unsigned first_turn;  /* ... in which its first byte came */
	unsigned reads;       /* calls of read() */
	unsigned idle_reads;  /* ... that gave nothing */
	size_t piece;         /* of one read; 0: the size of the scratch */
	bool paused;          /* nothing is read */
	unsigned char *got;   /* TLSRIG_ROOM bytes */
	size_t got_len;
	int fd; /* the peer's descriptor; -1: closed */
	SSL_CTX *context;
	SSL *peer;
	int peer_status; /* of its handshake, of SSL_get_error() */
	bool peer_ended; /* the stream has closed its side */
	int alert;       /* that the peer has got last; -1: none */
	size_t answered; /* bytes that have come from the stream */
};

/* Called before and after each call of the stream's code; may be NULL. */
extern void (*tlsrig_inside)(bool inside);

/* The certificates; the first call makes them. */
const struct tlsrig_certs *tlsrig_certs(void);

/* Writes files of certificates and keys to the world: "authority", "server", "server.key", "client"
 * and so on. */
void tlsrig_put_files(struct spokei_world *world);

void tlsrig_begin(struct tlsrig *rig, const struct tlsrig_setting *setting);

/* Begins anew with another connection of the same setting. */
void tlsrig_again(struct tlsrig *rig);

/* Closes both, and asserts that nothing is left. */
void tlsrig_end(struct tlsrig *rig);

/* Watches for what the stream wants, e.g. after a pause. */
void tlsrig_watch(struct tlsrig *rig);

/* Lets the stream run for a millisecond. */
void tlsrig_run(struct tlsrig *rig);

/* Returns the stream's own part; NULL: its handshake has not begun. */
struct spokei_tls_link *tlsrig_link(const struct tlsrig *rig);

/* Sends raw bytes to the stream, and lets it run. */
void tlsrig_send(struct tlsrig *rig, const void *bytes, size_t len);

/* Sends the same one by one. */
void tlsrig_drip(struct tlsrig *rig, const unsigned char *bytes, size_t len);

/* Closes the peer's descriptor, and lets the stream run. */
void tlsrig_hang_up(struct tlsrig *rig);

/* Takes what the peer's library has made. Returns its length. */
size_t tlsrig_made(struct tlsrig *rig, unsigned char *bytes, size_t size);

/* Gives the peer's library what the stream has sent. */
void tlsrig_hear(struct tlsrig *rig);

/* Takes one step of the peer's handshake. */
void tlsrig_step(struct tlsrig *rig);

/* Passes everything to and fro until both sides are open, or one has failed, or nothing moves. */
void tlsrig_shake(struct tlsrig *rig);

/* The same, and asserts that both are open. */
void tlsrig_open(struct tlsrig *rig);

/* Has the peer's library write bytes. tlsrig_pass() sends them, and hears. */
void tlsrig_peer_write(struct tlsrig *rig, const void *bytes, size_t len);
void tlsrig_pass(struct tlsrig *rig);

/* Reads what the peer has got. Returns its length. */
size_t tlsrig_peer_read(struct tlsrig *rig, unsigned char *bytes, size_t size);

/* Writes bytes to the stream. Returns what write() does. */
ssize_t tlsrig_write(struct tlsrig *rig, const void *bytes, size_t len);

#endif
