/* SPDX-License-Identifier: Apache-2.0 */
/* Replies as Hessian 2: exceptions, values that it cannot express, and full buffers. */
#include "tests/support/test.h"
#include "tests/transport/codec/hessianbed.h"

/* --- replies */

FIXTURE(bed_set_up, bed_tear_down);

TEST(exception_is_object_with_detail_message)
{
	struct bed *bed = *state;

	ADD(bed, "\x00\xa3"
		 "a.E\x82\xa7message\xa2no\xa4"
		 "code\x03");
	WRITTEN(bed, REPLY,
		"\x90"
		"C\x03"
		"a.E\x92\x0d"
		"detailMessage\x04"
		"code\x60\x02no\x93");
	/* With attachments, which are never an object. */
	ADD(bed, "\x03\xa1"
		 "E\x80\xde\x00\x01\xa5"
		 "class\xa3"
		 "a.B");
	WRITTEN(bed, REPLY,
		"\x93"
		"C\x01"
		"E\x90\x60H\x05"
		"class\x03"
		"a.BZ");
	/* The class has a field "message" of its own. */
	ADD(bed, "\x00\xa1"
		 "E\x82\xa7message\xc0\xa7message\xc3");
	WRITTEN(bed, REPLY,
		"\x90"
		"C\x01"
		"E\x92\x0d"
		"detailMessage\x07message\x60NT");
	ADD(bed, "\x00\xa1"
		 "E\x82\xad"
		 "detailMessage\xc0\xa7message\xc3");
	WRITTEN(bed, REPLY,
		"\x90"
		"C\x01"
		"E\x92\x0d"
		"detailMessage\x07message\x60NT");
}

TEST(cause_is_exception_or_the_exception_itself)
{
	struct bed *bed = *state;

	ADD(bed, "\x00\xa1"
		 "E\x81\xa5"
		 "cause\xc0");
	WRITTEN(bed, REPLY,
		"\x90"
		"C\x01"
		"E\x91\x05"
		"cause\x60Q\x90");
	ADD(bed, "\x00\xa1"
		 "E\x82\xa5"
		 "cause\x82\xa7message\xa1m\xa5"
		 "class\xa1"
		 "F\xa1x\x90");
	WRITTEN(bed, REPLY,
		"\x90"
		"C\x01"
		"E\x92\x05"
		"cause\x01x\x60"
		"C\x01"
		"F\x91\x0d"
		"detailMessage\x61\x01m\x78");
	ADD(bed, "\x00\xa1"
		 "E\x81\xa5"
		 "cause\x81\xa7message\xa1m"); /* no class */
	WRITTEN(bed, REPLY,
		"\x90"
		"C\x01"
		"E\x91\x05"
		"cause\x60H\x07message\x01mZ");
}

TEST(reply_with_bad_exception_is_unsupported)
{
	struct bed *bed = *state;

	ADD(bed, "\x00\xa1"
		 "E\x01");
	assert_int_equal(write_all(bed, SPOKEI_CODEC_REPLY), SPOKE_EUNSUPPORTED);
	bed->len = 0;
	ADD(bed, "\x00\x01\x80");
	assert_int_equal(write_all(bed, SPOKEI_CODEC_REPLY), SPOKE_EUNSUPPORTED);
	bed->len = 0;
	ADD(bed, "\x00\xa1"
		 "E\x81\x01\x01");
	assert_int_equal(write_all(bed, SPOKEI_CODEC_REPLY), SPOKE_EUNSUPPORTED);
}

TEST(broken_or_foreign_ext_is_unsupported)
{
	struct bed *bed = *state;

	ADD_EXT(bed, 1, "abc");
	is_refused(bed);
	ADD_EXT(bed, TYPED, "");
	is_refused(bed);
	ADD(bed, "\x82\xa1x\x01\xa5"
		 "clas"); /* values that were not checked */
	is_refused(bed);
	ADD_EXT(bed, TYPED,
		"\xa1"
		"a");
	is_refused(bed);
	ADD_EXT(bed, TYPED,
		"\xa1"
		"a\x01");
	is_refused(bed);
	ADD_EXT(bed, TYPED, "\x01\x90");
	is_refused(bed);
	ADD_EXT(bed, TYPED,
		"\xa1"
		"a\x90\xc0");
	is_refused(bed);
	ADD_EXT(bed, TYPED,
		"\xa1"
		"a\x92\xc0"); /* the list ends after the ext */
	ADD(bed, "\xc0");
	is_refused(bed);
	ADD_EXT(bed, REF, "\x01");
	is_refused(bed);
	ADD_EXT(bed, REF, "\x00\x90");
	is_refused(bed);
	ADD_EXT(bed, REF, "\xff\x90");
	is_refused(bed);
	ADD_EXT(bed, REF, "\x01\x90\x90");
	is_refused(bed);
	ADD_EXT(bed, REF, "\xa1\x90");
	is_refused(bed);
}

/* --- the buffer */

TEST(full_buffer_is_etoolarge_and_no_memory_is_enomem)
{
	struct bed *bed = *state;

	for (unsigned i = 0; i < 100; i++)
		ADD(bed, "\xa8"
			 "01234567");
	bed->out.max = 899;
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), SPOKE_ETOOLARGE);
	bed->out.max = 900;
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), 0);
	spokei_buffer_fini(&bed->out);
	bed->memory.asked = 0;
	bed->memory.fail_at = 1;
	bed->out.max = 100000;
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), SPOKE_ENOMEM);
}
