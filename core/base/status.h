/* SPDX-License-Identifier: Apache-2.0 */
/* The system's sentences about the statuses of the environment. Stateless; any thread. */
#ifndef SPOKEI_CORE_BASE_STATUS_H
#define SPOKEI_CORE_BASE_STATUS_H

#define SPOKEI_STATUS_TEXT 64u /* bytes of a sentence, with its 0 */

/* Writes the sentence about a negative errno into `text`, and returns it. */
const char *spokei_status_text(int status, char text[SPOKEI_STATUS_TEXT]);

#endif
