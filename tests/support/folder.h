/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary folders of tests. */
#ifndef TESTS_SUPPORT_FOLDER_H
#define TESTS_SUPPORT_FOLDER_H

#define FOLDER_PATH 32u /* least size of a path */

/* Makes an empty folder and writes its path. */
void folder_make(char *path);

/* Removes a folder and all that is in it. */
void folder_remove(const char *path);

#endif
