/* SPDX-License-Identifier: Apache-2.0 */
/* The list of uses of a lease. */
#include "cluster/lease/use.h"

#include "timer/base.h"

void spokei_lease_use_join(struct spokei_lease_use **uses, struct spokei_lease_use *use)
{
	SPOKE_ASSERT(use->at == NULL && use->over != NULL);
	use->next = *uses;
	use->at = uses;
	if (use->next)
		use->next->at = &use->next;
	*uses = use;
}

void spokei_lease_use_end(struct spokei_lease_use *use)
{
	if (use->at == NULL)
		return;
	*use->at = use->next;
	if (use->next)
		use->next->at = use->at;
	use->at = NULL;
}

void spokei_lease_uses_end(struct spokei_lease_use **uses)
{
	while (*uses) {
		struct spokei_lease_use *use = *uses;

		spokei_lease_use_end(use);
		use->over(use);
	}
}
