/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of the conversion to ticks, for compilers without 128-bit integers. */
#define SPOKEI_SCALE_DIVIDES
#include "tests/timer/test_scale.c" /* NOLINT(bugprone-suspicious-include) */
