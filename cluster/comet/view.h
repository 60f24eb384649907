/* SPDX-License-Identifier: Apache-2.0 */
/* Gateways as members of an engine, for the page. On the engine's thread. */
#ifndef SPOKEI_CLUSTER_COMET_VIEW_H
#define SPOKEI_CLUSTER_COMET_VIEW_H

#include <spoke/comet.h>

struct spokei_member;
struct spokei_settings;

/* The kind of the engine's members that are gateways: this very string. */
extern const char spokei_comet_kind[];

/* Returns the gateway of a member of this kind. */
const struct spoke_comet *spokei_comet_of_member(struct spokei_member *member);

const struct spokei_settings *spokei_comet_settings(const struct spoke_comet *comet);

/* Returns whether the gateway drains. */
bool spokei_comet_drains(const struct spoke_comet *comet);

#endif
