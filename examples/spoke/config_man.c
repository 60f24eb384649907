/* SPDX-License-Identifier: Apache-2.0 */
/* The page spoke.conf(5), of which the keys are the table's. */
#include "examples/spoke/config.h"

#include <stdio.h>
#include <string.h>

static const char head[] =
	".\\\" SPDX-License-Identifier: Apache-2.0\n"
	".\\\" Printed by spoke config --man; what is changed here is lost.\n"
	".Dd November 21, 2026\n"
	".Dt SPOKE.CONF 5\n"
	".Os spoke 0.1\n"
	".Sh NAME\n"
	".Nm spoke.conf\n"
	".Nd settings of programs that use spoke\n"
	".Sh DESCRIPTION\n"
	"A program that uses\n"
	".Xr spoke 3\n"
	"may take settings from a file:\n"
	".Bd -literal -offset indent\n"
	"[registry]\n"
	"url = file:///run/spoke/providers\n"
	"\n"
	"[consumer]\n"
	"heartbeat    = 5s\n"
	"retry.period = 2s\n"
	"\n"
	"[method.demo.EchoService.echo]\n"
	"timeout = 200ms   # of this method alone\n"
	".Ed\n"
	".Pp\n"
	"A line is a section, a key with its value, a comment, or empty.\n"
	"A comment begins with\n"
	".Ql #\n"
	"or\n"
	".Ql \\&;\n"
	"at the begin of a line, or with\n"
	".Ql #\n"
	"behind a blank.\n"
	"A value in quotation marks keeps its blanks and such signs; inside,\n"
	".Ql \\e\\(dq\n"
	"is a quotation mark and\n"
	".Ql \\e\\e\n"
	"a backslash.\n"
	"A section may stand in several places, a key of it in one.\n"
	".Pp\n"
	"A file is read whole or refused whole, with a sentence for everything that is\n"
	"wrong;\n"
	".Dl spoke config --check FILE\n"
	"says them all.\n"
	"A file has at most 1 MiB, 1024 sections and 4096 keys, a line 4096 bytes.\n"
	".Ss Sections\n"
	".Bl -tag -width Ds\n"
	".It Li [consumer]\n"
	"All consumers that are given the file.\n"
	".It Li [service.NAME]\n"
	"Calls of this service, and what is served of it.\n"
	".It Li [method.NAME]\n"
	"The same of a method: NAME is that of the service, a dot and that of the method,\n"
	"or that of the method alone, which is then meant whatever its service is, but\n"
	"counts less.\n"
	".It Li [provider]\n"
	"All providers that are given the file.\n"
	".It Li [registry]\n"
	"Where providers are listed and found.\n"
	"Consumers ask it whose URL names no place, as\n"
	".Li consumer://any/demo.EchoService .\n"
	".It Li [engine]\n"
	"Engines, as far as the program asks the file about them.\n"
	".El\n"
	".Ss Values\n"
	".Bl -tag -width duration\n"
	".It duration\n"
	"a number, which may have decimals, and a unit: h, m, s, ms, us or ns.\n"
	"In URLs a number without a unit counts ms; here it is refused.\n"
	".It size\n"
	"bytes, or a number and a unit: B, KiB, MiB or GiB\n"
	".It count\n"
	"a whole number\n"
	".It boolean\n"
	"true or false, yes or no, on or off, 1 or 0\n"
	".It name\n"
	"one of those that are shown\n"
	".It text\n"
	"anything that can be printed, up to 2048 bytes\n"
	".It list\n"
	"texts with commas between\n"
	".El\n"
	".Ss What counts\n"
	"What is said of something narrower counts more: of a call, of its method, of its\n"
	"service, of all consumers or providers.\n"
	"A consumer in a program calls one service, so its URL and its options speak of\n"
	"that.\n"
	"Of what is said of the same the later counts, in this order: the default, the URL\n"
	"of a provider in the registry, the file, the URL in the program, the options in\n"
	"the program.\n"
	".Pp\n"
	"A consumer's URL says keys of [consumer] as its parameters, those of [registry]\n"
	"with\n"
	".Ql registry.\n"
	"before them, and those of a method with its name and a dot before them:\n"
	".Dl dubbo://10.0.0.1/demo.EchoService?retries=1&echo.timeout=200ms\n"
	".Ss Reload\n"
	"A program that asks for it reads its file again on\n"
	".Dv SIGHUP .\n"
	"If all of it is right, keys that are\n"
	".Em live\n"
	"count from the next call, connection or heartbeat on.\n"
	"Of others that have changed the log says that they count when the process is\n"
	"started again.\n"
	"If anything is wrong, the log says what, and nothing changes.\n"
	"The log is the program's: one that brings none in its\n"
	".Vt struct spoke_env\n"
	"has these lines in its events alone.\n"
	".Sh KEYS\n"
	"Each with its default, if it has one.\n";

static const char foot[] = ".El\n"
			   ".Sh SEE ALSO\n"
			   ".Xr spoke 1 ,\n"
			   ".Xr spoke 3\n";

static void print_key(const struct spoke_config_key *key)
{
	printf(".It Ic %s", key->name);
	if (*key->preset)
		printf(" No = %s", key->preset);
	printf("\n%s\n.br\n%s", key->sentence, key->kind);
	if (*key->range)
		printf(": %s", key->range);
	printf("%s\n", key->live ? "; live" : "");
}

void config_print_manual(void)
{
	struct config_walk walk = { 0 };
	bool open = false;

	printf("%s", head);
	while (config_walk(&walk)) {
		if (walk.first && open)
			printf(".El\n");
		if (walk.first) {
			printf(".Ss Keys in ");
			config_print_sections(walk.key.sections);
			printf("\n.Bl -tag -width Ds\n");
		}
		open = true;
		print_key(&walk.key);
	}
	printf("%s", foot);
}
