/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of the scale, for compilers that have no 128-bit numbers. */
#define SPOKEI_SCALE_DIVIDES
#include "tests/timer/test_scale.c" /* NOLINT(bugprone-suspicious-include) */
