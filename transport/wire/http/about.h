/* SPDX-License-Identifier: Apache-2.0 */
/* The service that describes a provider: GET / and GET /openapi.json call its methods. The fields
 * of an error, which are written and described. */
#ifndef SPOKEI_TRANSPORT_WIRE_HTTP_ABOUT_H
#define SPOKEI_TRANSPORT_WIRE_HTTP_ABOUT_H

#include "transport/wire/message.h"

#define SPOKEI_HTTP_ABOUT "spoke.Provider"
#define SPOKEI_HTTP_SERVICES "services"
#define SPOKEI_HTTP_OPENAPI "openapi"

/* The fields of an error's body: X(constant, name, type in a schema of JSON, always sent). */
#define SPOKEI_HTTP_ERROR_FIELDS(X)                                                                \
	X(ERROR, "error", "string", true)                                                          \
	X(CODE, "code", "integer", true)                                                           \
	X(TEXT, "text", "string", true)                                                            \
	X(WRITTEN, "written", "boolean", true)                                                     \
	X(CLASS, "class", "string", false)                                                         \
	X(MEMBERS, "fields", "object", false)

enum spokei_http_error_field {
#define SPOKEI_HTTP_ERROR_ENUM(constant, name, type, always) SPOKEI_HTTP_ERROR_##constant,
	SPOKEI_HTTP_ERROR_FIELDS(SPOKEI_HTTP_ERROR_ENUM)
#undef SPOKEI_HTTP_ERROR_ENUM
	SPOKEI_HTTP_ERROR_COUNT,
};

#endif
