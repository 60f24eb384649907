/* SPDX-License-Identifier: Apache-2.0 */
/* spoke certs: makes an authority and certificates for trying TLS. */
#include "examples/spoke/ending.h"
#include "examples/spoke/issue.h"
#include "examples/spoke/options.h"
#include "examples/spoke/settings.h"

#include <spoke/host.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERB "certs"
#define NAMES_SIZE 2048u
#define FILE_NAME_MAX 64u
#define FILES_MAX 6u /* that one run makes: the authority's, and those of two certificates */
#define DAYS_MAX 36500u

enum {
	NAME,
	DAYS,
	ED25519,
	P256,
	FOR,
};

static const struct option_row rows[] = {
	[NAME] = { "name", 'n', "NAME",
		   "name to bear: dns:HOST, uri:URI or ip:ADDRESS; may be repeated (default: this "
		   "machine's loopback)" },
	[DAYS] = { "days", 'd', "COUNT", "days until the certificates end (default 365)" },
	[ED25519] = { "ed25519", 0, NULL, "make keys of the kind Ed25519" },
	[P256] = { "p256", 0, NULL, "make keys of the kind P-256 (default)" },
	[FOR] = { "for", 'f', "NAME",
		  "make NAME.pem and NAME.key only, instead of provider and consumer" },
};

static const struct usage usage = {
	.verb = VERB,
	.operands = "DIR",
	.about = "Makes certificates for trying TLS in the folder DIR: an authority (ca.pem,\n"
		 "ca.key), and certificates that it signs (provider.pem, consumer.pem) with their\n"
		 "keys. An authority that is there already signs further certificates. No file is\n"
		 "overwritten. Prints the lines for a configuration file. Every reader of ca.key\n"
		 "can make certificates of any name, so production needs another authority.",
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.examples = "  spoke certs certs > spoke.conf\n"
		    "  spoke certs certs --for orders --name dns:orders.test --days 30",
};

struct maker {
	const char *folder;
	const char *only; /* of --for; NULL: provider and consumer */
	char names[NAMES_SIZE];
	struct issue_options options;
	struct issued *ca;
	struct issued *issued;
	char made[FILES_MAX][PATH_MAX]; /* files of this run */
	unsigned made_count;
	bool new_ca;
};

/* --- files */

static int path_of(const struct maker *maker, const char *name, const char *end,
		   char path[PATH_MAX])
{
	int len = snprintf(path, PATH_MAX, "%s/%s%s", maker->folder, name, end);

	return len >= PATH_MAX
		       ? ending_say(VERB_USAGE, VERB, "%s: the path is too long", maker->folder)
		       : VERB_OK;
}

static int fail_file(const char *path)
{
	return ending_say(VERB_REMOTE, VERB, "%s: %s", path,
			  strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
}

static bool exists(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0;
}

static bool write_all(int fd, const char *text)
{
	size_t len = strlen(text);

	while (len > 0) {
		ssize_t took = write(fd, text, len);

		if (took < 0 && errno == EINTR)
			continue;
		if (took <= 0)
			return false;
		text += took;
		len -= (size_t)took;
	}
	return true;
}

/* Writes a file that must not be there yet. */
static int write_file(struct maker *maker, const char *name, const char *end, const char *text,
		      mode_t mode)
{
	char *path = maker->made[maker->made_count];
	int status = path_of(maker, name, end, path);
	int fd;

	if (status != VERB_OK)
		return status;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0 && errno == EEXIST) {
		return ending_say(VERB_REMOTE, VERB,
				  "%s exists and is not overwritten; remove it, or use --for with "
				  "another name",
				  path);
	}
	if (fd < 0)
		return fail_file(path);
	maker->made_count++;
	if (!write_all(fd, text) || fsync(fd) < 0)
		status = fail_file(path);
	(void)close(fd);
	return status;
}

static int write_pair(struct maker *maker, const char *name, const struct issued *issued)
{
	int end = write_file(maker, name, ".key", issued->key, 0600);

	return end == VERB_OK ? write_file(maker, name, ".pem", issued->cert, 0644) : end;
}

/* Reads the certificate of the authority. */
static int read_cert(const struct maker *maker, char *text)
{
	char path[PATH_MAX];
	int status = path_of(maker, "ca", ".pem", path);
	FILE *file;
	size_t len;

	if (status != VERB_OK)
		return status;
	file = fopen(path, "re");
	if (file == NULL)
		return fail_file(path);
	len = fread(text, 1, ISSUE_PEM, file);
	if (ferror(file) || len == ISSUE_PEM)
		status = ending_say(VERB_REMOTE, VERB, "%s: cannot be read, or is too large", path);
	else
		text[len] = '\0';
	(void)fclose(file);
	return status;
}

/* Every reader of the key can make certificates, so only its owner may be one. */
static int read_key(const struct maker *maker, char *text)
{
	const struct spoke_env *env = spoke_host_env();
	char path[PATH_MAX];
	int status = path_of(maker, "ca", ".key", path);
	ssize_t got;

	if (status != VERB_OK)
		return status;
	got = env->files->read_secret(env->ctx, path, text, ISSUE_PEM - 1);
	if (got == -EPERM)
		return ending_say(VERB_REMOTE, VERB,
				  "%s: its group or others may read it; chmod 600", path);
	if (got < 0) {
		errno = (int)-got;
		return fail_file(path);
	}
	text[got] = '\0';
	return VERB_OK;
}

/* --- the authority and certificates */

static int issue(const struct maker *maker, const struct issue_options *options, struct issued *ret)
{
	int error = issue_make(spoke_host_env(), options, ret);

	if (!error)
		return VERB_OK;
	return ending_say(error == SPOKE_EINVAL ? VERB_USAGE : VERB_REMOTE, VERB, "%s: %s",
			  maker->folder, ret->why);
}

static int find_ca(struct maker *maker)
{
	struct issue_options options = maker->options;
	char cert[PATH_MAX];
	char key[PATH_MAX];
	int end = path_of(maker, "ca", ".pem", cert);

	if (end == VERB_OK)
		end = path_of(maker, "ca", ".key", key);
	if (end != VERB_OK)
		return end;
	if (exists(cert) && !exists(key))
		return ending_say(VERB_REMOTE, VERB, "%s is missing, and %s is not overwritten",
				  key, cert);
	if (exists(cert)) {
		end = read_cert(maker, maker->ca->cert);
		return end == VERB_OK ? read_key(maker, maker->ca->key) : end;
	}
	maker->new_ca = true;
	options.name = "spoke certs";
	/* An authority ends in ten years, or with the certificates. */
	options.days = options.days > 3650 ? options.days : 0;
	end = issue(maker, &options, maker->ca);
	return end == VERB_OK ? write_pair(maker, "ca", maker->ca) : end;
}

static int make_one(struct maker *maker, const char *name, const char *names)
{
	struct issue_options options = maker->options;
	int end;

	options.name = name;
	options.names = names;
	options.ca = maker->ca->cert;
	options.ca_key = maker->ca->key;
	end = issue(maker, &options, maker->issued);
	if (end == VERB_OK)
		end = write_pair(maker, name, maker->issued);
	if (end == VERB_OK)
		(void)ending_say(VERB_OK, VERB, "%s/%s.pem: %s", maker->folder, name, names);
	return end;
}

/* A certificate that is not for a host bears its own name. */
static int make_own(struct maker *maker, const char *name)
{
	char names[FILE_NAME_MAX + 8];

	(void)snprintf(names, sizeof(names), "dns:%s", name);
	return make_one(maker, name, names);
}

static int make_all(struct maker *maker)
{
	static const char loopback[] = "dns:localhost,ip:127.0.0.1,ip:::1";
	const char *names = *maker->names ? maker->names : loopback;
	int end = find_ca(maker);

	if (end == VERB_OK && maker->only)
		return make_one(maker, maker->only, names);
	if (end == VERB_OK)
		end = make_one(maker, "provider", names);
	return end == VERB_OK ? make_own(maker, "consumer") : end;
}

/* --- the run */

static void print_section(const char *section, const char *folder, const char *name)
{
	printf("[%s]\ntls = on\ntls.cert = %s/%s.pem\ntls.key = %s/%s.key\ntls.ca = %s/ca.pem\n",
	       section, folder, name, folder, name, folder);
}

static int print_settings(const struct maker *maker)
{
	char *folder = realpath(maker->folder, NULL);

	if (folder == NULL)
		return fail_file(maker->folder);
	if (maker->only) {
		printf("tls = on\ntls.cert = %s/%s.pem\ntls.key = %s/%s.key\ntls.ca = %s/ca.pem\n",
		       folder, maker->only, folder, maker->only, folder);
	} else {
		print_section("provider", folder, "provider");
		(void)putchar('\n');
		print_section("consumer", folder, "consumer");
		if (*maker->names)
			printf("tls.peers = %s\n", maker->names);
	}
	free(folder);
	return VERB_OK;
}

static int run(struct maker *maker)
{
	bool is_new = mkdir(maker->folder, 0755) == 0;
	int end;

	if (!is_new && errno != EEXIST)
		return fail_file(maker->folder);
	end = make_all(maker);
	if (end == VERB_OK) {
		if (maker->new_ca)
			(void)ending_say(VERB_OK, VERB, "%s/ca.pem: the authority", maker->folder);
		return print_settings(maker);
	}
	/* Half of a set would only be in the way. */
	while (maker->made_count > 0)
		(void)unlink(maker->made[--maker->made_count]);
	if (is_new)
		(void)rmdir(maker->folder);
	return end;
}

/* --- options and operands */

static bool take_name(struct maker *maker, const struct options *options)
{
	size_t len = strlen(maker->names);
	int more = snprintf(maker->names + len, NAMES_SIZE - len, "%s%s", len > 0 ? "," : "",
			    options->value);

	if ((size_t)more < NAMES_SIZE - len)
		return true;
	(void)options_wrong(options, "the names are too long");
	return false;
}

/* A name of files, which are all in the folder. */
static bool take_for(struct maker *maker, const struct options *options)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";
	size_t len = strlen(options->value);

	maker->only = options->value;
	if (len > 0 && len < FILE_NAME_MAX && options->value[0] != '.' &&
	    options->value[0] != '-' && strspn(options->value, letters) == len &&
	    strcmp(options->value, "ca") != 0)
		return true;
	(void)options_wrong(options, "not a name of a file; use letters, digits, -, _ and ., and "
				     "not \"ca\"");
	return false;
}

static bool take_option(struct maker *maker, int row, const struct options *options)
{
	uint64_t days;

	switch (row) {
	case NAME:
		return take_name(maker, options);
	case DAYS:
		if (!options_count(options, 1, DAYS_MAX, &days))
			return false;
		maker->options.days = (uint32_t)days;
		return true;
	case FOR:
		return take_for(maker, options);
	case ED25519:
		maker->options.key = ISSUE_ED25519;
		return true;
	case P256:
	default:
		maker->options.key = ISSUE_P256;
		return true;
	}
}

int certs_verb(int argc, char **argv)
{
	struct options options = options_of(&usage, argc, argv);
	static struct maker maker; /* large: contains paths */
	static struct issued ca;
	static struct issued issued;
	int end;
	int row;

	maker.ca = &ca;
	maker.issued = &issued;
	while ((row = options_next(&options)) >= 0)
		if (!take_option(&maker, row, &options))
			return VERB_USAGE;
	if (row == OPTIONS_STOP)
		return options.end;
	if (options.operand_count != 1 || !*options.operands[0])
		return options_lacking(&options, "expected one DIR");
	maker.folder = options.operands[0];
	if (!settings_is_file(VERB, maker.folder))
		return VERB_USAGE;
	end = run(&maker);
	explicit_bzero(ca.key, sizeof(ca.key));
	explicit_bzero(issued.key, sizeof(issued.key));
	return end;
}
