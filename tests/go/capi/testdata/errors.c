/* Errors as data. Rank 2 fails; rank 1 ends because of that, and says so; rank 0,
 * which meets neither before, has the death of rank 2 from what rank 1 said. */
#include "check.h"

static malt_error_info error(void)
{
	malt_error_info e = {.size = sizeof e};
	malt_error(&e);
	CHECK(e.size == sizeof e && e.message == malt_errmsg());
	return e;
}

int main(void)
{
	malt_error_info e = error();
	CHECK(e.code == MALT_OK && e.rank == -1 && e.death == 0 && e.message[0] == 0 && e.why[0] == 0);

	OK(malt_init(NULL, -1));
	int rank = malt_rank();
	CHECK(malt_object_close(0) == MALT_EHANDLE);
	e = error();
	CHECK(e.code == MALT_EHANDLE && e.rank == -1 && e.death == 0 && e.why[0] == 0);
	struct { uint64_t size; malt_status code; int32_t rank; } old = {.size = 16, .rank = 7}; /* of an older header */
	old.size = 12;
	malt_error((malt_error_info *)&old);
	CHECK(old.size == 12 && old.code == MALT_EHANDLE && old.rank == 7);

	malt_error_info lie = {.code = MALT_EPEER, .rank = 5, .death = MALT_DEATH_ENDED, .why = "of a rank that is none"};
	OK(malt_barrier(-1));
	if (rank == 2) {
		OK(malt_abort("the loss is not a number", &lie));
		return 0;
	}
	if (rank == 0) {
		malt_error_info told = {.code = MALT_EPEER, .rank = 1, .death = MALT_DEATH_UNREACHABLE, .why = "no answer"};
		int64_t status;
		do
			status = malt_barrier(-1);
		while (status == MALT_OK);
		CHECK(status == MALT_EPEER);
		e = error();
		CHECK(e.code == MALT_EPEER && e.rank == 2 && e.death == MALT_DEATH_FAILED);
		CHECK(strcmp(e.why, "of a rank that is none") == 0 && strstr(e.message, e.why) != NULL);
		OK(malt_abort(e.message, &told));
		return 0;
	}
	CHECK(malt_barrier(-1) == MALT_EPEER);
	e = error();
	if (e.rank == 2)
		CHECK(e.death == MALT_DEATH_FAILED);
	else /* it has heard of rank 0 first, which takes this one for dead */
		CHECK(e.rank == 0 && e.death == MALT_DEATH_FAILED && strstr(e.why, "considers this rank dead: no answer"));
	OK(malt_abort(e.message, &e)); /* its end without a word would be another death */
	return 0;
}
