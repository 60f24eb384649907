/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scalars that Java declares as a class of its own: constants of an enum, BigDecimal, BigInteger. A
 * value that the class does not fit is written as without a type. Owned by one function call; any
 * thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_MADE_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_MADE_H

#include "transport/codec/hessian2/writer.h"

/* Opens an object whose one field is called "value", and which follows. Returns false if it is too
 * deep; else the caller closes it. */
SPOKE_MUST_USE bool spokei_hessian2_open_holder(struct spokei_hessian2_writer *writer,
						struct spokei_hessian2_name name);

/* Writes the next value, a text, as the constant of an enum. */
void spokei_hessian2_write_enum(struct spokei_hessian2_writer *writer,
				const struct spokei_hessian2_name *class);

/* Writes the next value, a number or a decimal text, as a BigDecimal. */
void spokei_hessian2_write_decimal(struct spokei_hessian2_writer *writer);

/* Writes the next value, an integer or a decimal text of at most 64 bits, as a BigInteger: its
 * sign, and the words of the magnitude. Java derives the other fields. */
void spokei_hessian2_write_big(struct spokei_hessian2_writer *writer);

#endif
