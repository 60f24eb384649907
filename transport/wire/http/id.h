/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP has no ids. The id of a request holds what its response depends on: these bits, the number
 * of the allowed origin, and the status if the request cannot become a call.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_HTTP_ID_H
#define SPOKEI_TRANSPORT_WIRE_HTTP_ID_H

#include "transport/wire/message.h"

#define SPOKEI_HTTP_ID_HEAD 1u     /* the response has no body */
#define SPOKEI_HTTP_ID_LAST 2u     /* the connection ends with the response */
#define SPOKEI_HTTP_ID_OLD 4u      /* the client of HTTP/1.0 wants to keep the connection */
#define SPOKEI_HTTP_ID_CONTINUE 8u /* the client waits to send the body */
#define SPOKEI_HTTP_ID_OPTIONS 16u /* asks for the allowed methods */
#define SPOKEI_HTTP_ID_ORIGIN 8u   /* shift; 8 bits */
#define SPOKEI_HTTP_ID_STATUS 16u  /* shift; 10 bits */

#define SPOKEI_HTTP_ORIGINS_MAX 255u

#endif
