/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows 35, 38, 41, 42 and 43 of the table of faults, in network namespaces: two namespaces with a
 * wire between them, on which packets are lost, in both directions or in one, or rejected. A
 * namespace ends with its processes. Needs root and nft; skipped without them, but on Debian that
 * is a failure.
 */
#define _GNU_SOURCE
#include "tests/integration/rig.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SKIPPED 77
#define PROVIDER_AT "10.77.0.1"
#define CONSUMER_AT "10.77.0.2"
#define HARSH_PROVIDER_AT "10.79.0.1"
#define HARSH_CONSUMER_AT "10.79.0.2"
#define ELSEWHERE "10.78.0.1" /* has no route at first */
#define PORT "20880"

static struct rig_process *here;  /* in the provider's namespace */
static struct rig_process *there; /* in the consumer's namespace */
static struct rig_process *provider;
static struct rig_process *consumer;

/* --- two namespaces and a wire */

static void must(const struct rig_process *netns, const char *command)
{
	if (rig_run(netns, "%s", command) != 0)
		fail_msg("failed: %s", command);
}

static void plug_in(struct rig_process *netns, const char *address)
{
	char command[128];

	must(netns, "ip link set lo up");
	(void)snprintf(command, sizeof(command), "ip addr add %s/24 dev wire", address);
	must(netns, command);
	must(netns, "ip link set wire up");
	must(netns, "nft add table inet test");
	must(netns, "nft add chain inet test in { type filter hook input priority 0 ; }");
}

static int set_up(void **state)
{
	if (rig_set_up(state))
		return -1;
	here = rig_netns();
	there = rig_netns();
	if (rig_run(here, "ip link add wire type veth peer name wire netns %d", (int)there->pid))
		return -1;
	plug_in(here, PROVIDER_AT);
	plug_in(there, CONSUMER_AT);
	return 0;
}

FIXTURE(set_up, rig_tear_down);

/* Adds a firewall rule for packets that arrive in the consumer's namespace. */
static void rule(struct rig_process *netns, const char *what)
{
	char command[160];

	(void)snprintf(command, sizeof(command), "nft add rule inet test in iifname wire %s", what);
	must(netns, command);
}

static void heal(void)
{
	must(here, "nft flush chain inet test in");
	must(there, "nft flush chain inet test in");
}

static void start_provider(const char *at, const char *options)
{
	provider = rig_provider(here, "listen=dubbo://%s:" PORT " %s", at, options);
	(void)rig_address(provider);
}

static void start(const char *options)
{
	start_provider(PROVIDER_AT, options);
	consumer = rig_consumer(there, "url=dubbo://" PROVIDER_AT ":" PORT "/demo.EchoService %s",
				options);
	(void)rig_wait(consumer, "link connected *");
	(void)rig_wait(provider, "link connected *");
}

static void stop(void)
{
	assert_ends_well(consumer);
	assert_ends_well(provider);
}

/* Waits for the events of a peer that stays silent, in their order. */
static void assert_given_up(struct rig_process *process)
{
	(void)rig_wait(process, "link suspect missed 1 *");
	(void)rig_wait(process, "link suspect missed 2 *");
	(void)rig_wait(process, "link suspect missed 3 *");
	(void)rig_wait(process, "link closed missed 0 error ESILENT *");
}

/* Checks the recovery: the consumer has a usable connection, and every call has ended once. */
static void assert_recovers(void)
{
	(void)rig_wait(consumer, "link *ed missed 0 error OK *"); /* connected, or recovered */
	assert_call_works(consumer);
	(void)assert_all_ended_once(consumer);
	stop();
}

/* --- row 38 */

TEST(row_38_wire_cut_in_both_directions_is_detected_by_both)
{
	start("heartbeat=100 every=10 timeout=300");
	rule(here, "drop");
	rule(there, "drop");
	assert_given_up(consumer);
	assert_given_up(provider);
	(void)rig_wait(consumer, "link reconnecting * attempt 1 *");
	rig_until_stat(consumer, "connects", 2);
	heal();
	assert_recovers();
}

/* Packets to the provider are lost: it closes the connection, and the consumer notices. */
TEST(row_38_wire_cut_towards_the_provider_is_detected)
{
	start("heartbeat=100 every=10 timeout=300");
	rule(here, "drop");
	assert_given_up(provider);
	(void)rig_wait(consumer, "link closed *");
	rig_until_stat(consumer, "connects", 2);
	heal();
	assert_recovers();
}

/* Packets to the consumer are lost: it reconnects, and the provider notices. */
TEST(row_38_wire_cut_towards_the_consumer_is_detected)
{
	start("heartbeat=100 every=10 timeout=300");
	rule(there, "drop");
	assert_given_up(consumer);
	(void)rig_wait(provider, "link closed *");
	rig_until_stat(consumer, "connects", 2);
	heal();
	assert_recovers();
}

/* Without heartbeats, the kernel gives up a peer that acknowledges nothing. */
static void in_netns(const struct rig_process *netns, int *ret_back)
{
	char path[64];
	int fd;

	*ret_back = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)netns->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && *ret_back >= 0);
	assert_int_equal(setns(fd, CLONE_NEWNET), 0);
	(void)close(fd);
}

static void back_again(int back)
{
	assert_int_equal(setns(back, CLONE_NEWNET), 0);
	(void)close(back);
}

/* Opens a connection between the namespaces with sockets of this process. */
static int connect_across(int *ret_listener)
{
	const struct spoke_env *env = spoke_host_env();
	struct spoke_address at;
	struct pollfd writable = { .events = POLLOUT };
	int back;

	assert_int_equal(env->net->parse(env->ctx, PROVIDER_AT ":" PORT, &at), 0);
	in_netns(here, &back);
	assert_int_equal(env->net->listen(env->ctx, &at, 16, ret_listener), 0);
	back_again(back);
	in_netns(there, &back);
	assert_int_equal(env->net->connect(env->ctx, &at, &writable.fd), -EINPROGRESS);
	back_again(back);
	assert_int_equal(poll(&writable, 1, 60000), 1);
	assert_int_equal(env->net->finish(env->ctx, writable.fd), 0);
	return writable.fd;
}

TEST(row_38_unacknowledged_bytes_end_a_guarded_connection)
{
	const struct spoke_env *env = spoke_host_env();
	struct iovec part = { (unsigned char[]){ 'x' }, 1 };
	struct pollfd ended = { .events = 0 };
	int listener;

	ended.fd = connect_across(&listener);
	assert_int_equal(env->net->guard(env->ctx, ended.fd, 300 * MS, 0), 0);
	rule(here, "drop");
	assert_int_equal(env->net->write(env->ctx, ended.fd, &part, 1), 1);
	assert_int_equal(poll(&ended, 1, 60000), 1);
	assert_int_equal(env->net->read(env->ctx, ended.fd, part.iov_base, 1), -ETIMEDOUT);
	env->net->close(env->ctx, ended.fd);
	env->net->close(env->ctx, listener);
}

/* --- row 35 */

/* A device on the path resets the consumer's connection. The provider's half stays open and is
 * closed for silence. */
TEST(row_35_connection_reset_on_the_path_is_reconnected)
{
	start("heartbeat=100 every=10 timeout=300");
	rule(here, "reject with tcp reset");
	(void)rig_wait(consumer, "link closed missed 0 error ELOST *");
	(void)rig_wait(consumer, "link reconnecting * error ECONNECT attempt 2 *");
	assert_given_up(provider);
	heal();
	assert_recovers();
}

TEST(row_35_connection_killed_by_the_kernel_is_reconnected)
{
	start("heartbeat=100 every=10 timeout=300");
	must(there, "ss -K dst " PROVIDER_AT);
	(void)rig_wait(consumer, "link closed missed 0 error ELOST *");
	(void)rig_wait(provider, "link closed missed 0 error ELOST *");
	assert_recovers();
}

/* --- row 41 */

/* 10 % of the packets are lost and 5 % are duplicated; the delay of 25 to 75 ms reorders them. */
TEST(row_41_loss_duplicates_and_reordering_cause_no_wrong_result)
{
	static const struct rig_wire harsh = { 25 * MS, 50 * MS, 100, 50 };

	(void)rig_wire(here, there, &harsh);
	must(here, "ip addr add " HARSH_PROVIDER_AT "/24 dev harsh");
	must(there, "ip addr add " HARSH_CONSUMER_AT "/24 dev harsh");
	must(here, "ip link set harsh up");
	must(there, "ip link set harsh up");
	start_provider(HARSH_PROVIDER_AT, "heartbeat=5000");
	consumer = rig_consumer(there,
				"url=dubbo://" HARSH_PROVIDER_AT ":" PORT "/demo.EchoService "
				"heartbeat=5000 every=4 timeout=60000");
	rig_until_stat(consumer, "calls_ok", 400);
	rig_tell(consumer, "large 200000");
	(void)rig_wait(consumer, "end large 200000 OK *");
	(void)assert_all_ended_once(consumer);
	assert_int_equal(rig_count(consumer, "link closed *"), 0);
	stop();
}

/* --- row 42 */

TEST(row_42_unreachable_address_is_retried_until_reachable)
{
	must(there, "ip route add unreachable " ELSEWHERE);
	consumer = rig_consumer(there, "url=dubbo://" ELSEWHERE ":" PORT "/demo.EchoService "
				       "heartbeat=100 every=10 timeout=300");
	(void)rig_wait(consumer, "link reconnecting * error ECONNECT attempt 4 *");
	must(here, "ip addr add " ELSEWHERE "/32 dev wire");
	start_provider(ELSEWHERE, "heartbeat=100");
	must(there, "ip route del unreachable " ELSEWHERE);
	must(there, "ip route add " ELSEWHERE " dev wire");
	assert_recovers();
}

/* A connect that is not answered within 5 s fails and is repeated. */
TEST(row_42_silent_address_is_retried_until_it_answers)
{
	start_provider(PROVIDER_AT, "heartbeat=100");
	rule(here, "drop");
	consumer = rig_consumer(there, "url=dubbo://" PROVIDER_AT ":" PORT "/demo.EchoService "
				       "heartbeat=100 every=10 timeout=300");
	(void)rig_wait(consumer, "link reconnecting * error ECONNECT attempt 1 *");
	heal();
	assert_recovers();
}

/* --- row 43 */

/* If the only ephemeral port is the destination port, a connect reaches its own socket. */
static void set_ports(const char *range)
{
	char pid[16];
	char command[96];
	const char *const arguments[] = { "-t", pid, "-n", "sh", "-c", command, NULL };

	(void)snprintf(pid, sizeof(pid), "%d", (int)here->pid);
	(void)snprintf(command, sizeof(command), "echo %s >/proc/sys/net/ipv4/ip_local_port_range",
		       range);
	assert_int_equal(rig_end(rig_start("nsenter", NULL, arguments)), 0);
}

TEST(row_43_connection_to_itself_is_detected_and_backs_off)
{
	set_ports("20880 20880");
	consumer = rig_consumer(here, "url=dubbo://127.0.0.1:" PORT
				      "/demo.EchoService heartbeat=100 every=10 timeout=300");
	(void)rig_wait(consumer, "link reconnecting * error ESELF attempt 1 *");
	/* For a while the kernel then has no free port. */
	(void)rig_wait(consumer, "link reconnecting * attempt 4 *");
	assert_in_range(rig_stat(consumer, "connects"), 4, 8);
	assert_in_range(rig_stat(consumer, "connects_self"), 1, 8);
	assert_int_equal(rig_count(consumer, "link connected *"), 0);
	(void)assert_all_ended_once(consumer);
	assert_ends_well(consumer);
}

/* --- can the tests run? */

static bool is_debian(void)
{
	FILE *file = fopen("/etc/os-release", "re");
	char line[256];
	bool found = false;

	if (file == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = strcmp(line, "ID=debian\n") == 0;
	(void)fclose(file);
	return found;
}

/* Returns 0, or the exit status of main() after printing the reason. */
static int absent(void)
{
	bool has_tools = rig_run(NULL, "nft --version") == 0 && rig_run(NULL, "ip -V") == 0;
	bool is_ours = geteuid() == 0 && is_debian();

	(void)rig_tear_down(NULL);
	if (geteuid() == 0 && has_tools)
		return 0;
	(void)fprintf(stderr, "%s: network namespaces need root, ip and nft\n",
		      is_ours ? "failed" : "skipped");
	return is_ours ? 1 : SKIPPED;
}

NEEDS(absent);
