/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether every host that reaches an address is let in there. */
#include "cluster/config/exposure.h"

#include "transport/conn/callers.h"
#include "transport/listen/rules.h"

enum spokei_exposed spokei_exposure_judge(const struct spokei_exposure *of)
{
	if (of->local || of->asks || spokei_rules_limit_hosts(of->of_owner) ||
	    spokei_rules_limit_hosts(of->of_address) ||
	    spokei_callers_limit_hosts(of->of_provider) ||
	    spokei_callers_limit_hosts(of->of_service))
		return SPOKEI_EXPOSED_NOT;
	if (of->plain)
		return SPOKEI_EXPOSED_PLAIN;
	if (of->verify == SPOKE_TLS_VERIFY_REQUIRED)
		return SPOKEI_EXPOSED_NOT;
	return of->verify == SPOKE_TLS_VERIFY_DEFAULT ? SPOKEI_EXPOSED_NO_CA
						      : SPOKEI_EXPOSED_UNVERIFIED;
}

const char *spokei_exposed_why(enum spokei_exposed exposed)
{
	static const char *const sentences[] = {
		[SPOKEI_EXPOSED_NOT] = "",
		[SPOKEI_EXPOSED_PLAIN] = ", in plain text; set tls with tls.ca",
		[SPOKEI_EXPOSED_NO_CA] = ", because TLS asks for no certificate; set tls.ca",
		[SPOKEI_EXPOSED_UNVERIFIED] =
			", because TLS requires no certificate; set tls.verify = required",
	};

	return sentences[exposed];
}
