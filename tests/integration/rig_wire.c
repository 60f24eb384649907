/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wire between two network namespaces: a process that forwards packets and delays, drops,
 * duplicates or reorders them.
 */
#define _GNU_SOURCE
#include "tests/integration/rig_parts.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define UNDER_WAY 4096u
#define PACKET_MAX 2048u
#define THOUSAND 1000u

struct packet {
	uint64_t due_ns; /* 0: unused */
	int to;
	size_t len;
	unsigned char bytes[PACKET_MAX];
};

struct wire {
	int fds[2];
	const struct rig_wire *how;
	uint64_t dice;
	struct packet packets[UNDER_WAY];
};

static uint64_t throw(struct wire * wire, uint64_t below)
{
	wire->dice ^= wire->dice << 13;
	wire->dice ^= wire->dice >> 7;
	wire->dice ^= wire->dice << 17;
	return wire->dice % below;
}

/* Opens the end of the wire in the namespace of a process; this process changes to that namespace.
 */
static int open_end(pid_t pid)
{
	struct ifreq name = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd;

	(void)snprintf(name.ifr_name, sizeof(name.ifr_name), "harsh");
	if (!rig_enter_netns(pid))
		return -1;
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && ioctl(fd, TUNSETIFF, &name) == 0 ? fd : -1;
}

/* Queues a packet; drops it if there is no room. */
static void send_off(struct wire *wire, int to, const unsigned char *bytes, size_t len)
{
	for (unsigned i = 0; i < UNDER_WAY; i++) {
		struct packet *packet = &wire->packets[i];

		if (packet->due_ns > 0)
			continue;
		packet->due_ns = rig_now() + wire->how->delay_ns +
				 throw(wire, wire->how->jitter_ns + 1);
		packet->to = to;
		packet->len = len;
		memcpy(packet->bytes, bytes, len);
		return;
	}
}

static void take_from(struct wire *wire, unsigned end)
{
	unsigned char bytes[PACKET_MAX];
	ssize_t len;

	while ((len = read(wire->fds[end], bytes, sizeof(bytes))) > 0) {
		if (throw(wire, THOUSAND) < wire->how->lost_permille)
			continue;
		send_off(wire, wire->fds[!end], bytes, (size_t)len);
		if (throw(wire, THOUSAND) < wire->how->doubled_permille)
			send_off(wire, wire->fds[!end], bytes, (size_t)len);
	}
}

/* Delivers the packets that are due; returns ms until the next one. */
static int deliver(struct wire *wire)
{
	uint64_t now_ns = rig_now();
	uint64_t next_ns = now_ns + SECOND;

	for (unsigned i = 0; i < UNDER_WAY; i++) {
		struct packet *packet = &wire->packets[i];

		if (packet->due_ns > 0 && packet->due_ns <= now_ns) {
			(void)!write(packet->to, packet->bytes, packet->len);
			packet->due_ns = 0;
		} else if (packet->due_ns > 0 && packet->due_ns < next_ns) {
			next_ns = packet->due_ns;
		}
	}
	return (int)((next_ns - now_ns) / MS) + 1;
}

/* Forwards packets until the test ends the process. */
static void carry(struct wire *wire)
{
	struct pollfd fds[3] = { { wire->fds[0], POLLIN, 0 },
				 { wire->fds[1], POLLIN, 0 },
				 { STDIN_FILENO, POLLIN, 0 } };

	while (fds[2].revents == 0) {
		(void)poll(fds, 3, deliver(wire));
		take_from(wire, 0);
		take_from(wire, 1);
	}
}

struct rig_process *rig_wire(const struct rig_process *here, const struct rig_process *there,
			     const struct rig_wire *how)
{
	static struct wire wire;
	struct rig_process *process = rig_new_process("network");

	if (rig_fork(process)) {
		static const char said[] = "0 carries\n";

		wire = (struct wire){ .how = how, .dice = UINT64_C(0x9e3779b97f4a7c15) };
		wire.fds[0] = open_end(here->pid);
		wire.fds[1] = open_end(there->pid);
		if (wire.fds[0] >= 0 && wire.fds[1] >= 0) {
			(void)!write(STDOUT_FILENO, said, sizeof(said) - 1);
			carry(&wire);
		}
		_exit(0);
	}
	(void)rig_wait(process, "carries");
	return process;
}
