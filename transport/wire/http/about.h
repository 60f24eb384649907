/* SPDX-License-Identifier: Apache-2.0 */
/* The service that describes a provider: GET / and GET /openapi.json call its methods. */
#ifndef SPOKEI_TRANSPORT_WIRE_HTTP_ABOUT_H
#define SPOKEI_TRANSPORT_WIRE_HTTP_ABOUT_H

#include "transport/wire/message.h"

#define SPOKEI_HTTP_ABOUT "spoke.Provider"
#define SPOKEI_HTTP_SERVICES "services"
#define SPOKEI_HTTP_OPENAPI "openapi"

#endif
