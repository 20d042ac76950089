/* Calls that run into their timeout are given up. Two ranks; rank 1 makes each call only
 * when rank 0 has been refused, which it learns from a pipe of the driver's. */
#include "check.h"

/* rank 0 tells rank 1 to go on; rank 1 waits for that. */
static void turn(int rank)
{
	char c = 'x';
	if (rank == 0)
		CHECK(write(atoi(word("PIPE_OUT")), &c, 1) == 1);
	else
		CHECK(read(atoi(word("PIPE_IN")), &c, 1) == 1);
}

/* The job's calls: refused with 0, and with a wait. Rank 1 is told so when it makes the
 * call that is no more: the data is more than what is sent before anybody takes it. The
 * next call finds both. */
static void calls_of_the_job(int rank)
{
	enum { COUNT = 1 << 20 };
	double *x = calloc(COUNT, sizeof *x);
	CHECK(x != NULL);
	for (int64_t ms = 0; ms <= 20; ms += 20) {
		x[0] = 1 + rank;
		if (rank == 0) {
			FAILS(MALT_ETIMEOUT, "rank 1", malt_allreduce(x, COUNT, MALT_FLOAT64, "sum", ms));
			CHECK(x[0] == 1);
			turn(rank);
		} else {
			turn(rank);
			FAILS(MALT_ELEFT, "rank 0", malt_allreduce(x, COUNT, MALT_FLOAT64, "sum", -1));
			CHECK(x[0] == 2);
		}
		OK(malt_barrier(-1));
	}
	OK(malt_allreduce(x, 1, MALT_FLOAT64, "sum", -1));
	CHECK(x[0] == 3);
	free(x);
}

/* Making a vector is a collective, too: no handle comes of one that is given up. */
static malt_handle making(int rank)
{
	malt_handle v = 0;
	float first[2] = {rank, 10 * rank};
	malt_array a = {.count = 2, .dtype = MALT_FLOAT32, .init = first};
	if (rank == 0) {
		FAILS(MALT_ETIMEOUT, "rank 1", malt_vector_new(&a, 1, "w", "start=own", 0, &v));
		CHECK(v == 0);
		turn(rank);
	} else {
		turn(rank);
		FAILS(MALT_ELEFT, "rank 0", malt_vector_new(&a, 1, "w", "start=own", -1, &v));
	}
	OK(malt_vector_new(&a, 1, "w", "start=own", -1, &v));
	CHECK(((float *)memory(v))[1] == 10 * rank);
	return v;
}

/* A sync that waits: bsp, rank 1 has not arrived. A gather folds what it brings. */
static void syncing(int rank, malt_handle v)
{
	float *w = memory(v);
	uint32_t folded = 99;
	uint64_t clock;
	if (rank == 0) {
		FAILS(MALT_ETIMEOUT, "rank 1", malt_vector_sync(v, 1, 20, &folded));
		CHECK(folded == 99 && w[0] == 0);
		FAILS(MALT_ESTATE, "gather", malt_vector_sync(v, 1, 20, &folded));
		FAILS(MALT_ETIMEOUT, "rank 1", malt_vector_gather(v, NULL, 0, &folded));
		turn(rank);
		OK(malt_vector_gather(v, NULL, -1, &folded));
	} else {
		turn(rank);
		OK(malt_vector_sync(v, 1, -1, &folded));
	}
	CHECK(folded == 1 && w[0] == 0.5f && w[1] == 5);
	OK(malt_object_clock(v, &clock));
	CHECK(clock == 1);
}

/* A rank that waits looks up: it may call what it does not wait for, and what it
 * says the second time ends the wait. */
static malt_handle looked_from;
static int looks;

static int32_t look(void)
{
	uint64_t clock;
	FAILS(MALT_EBUSY, "serves one call at a time", malt_vector_gather(looked_from, NULL, 0, NULL));
	OK(malt_object_clock(looked_from, &clock));
	return ++looks == 2;
}

static void looking(int rank, malt_handle v)
{
	if (rank == 0) {
		looked_from = v;
		malt_look_up(look);
		FAILS(MALT_ETIMEOUT, "rank 1", malt_vector_sync(v, 1, -1, NULL));
		CHECK(looks == 2);
		malt_look_up(NULL);
		turn(rank);
		OK(malt_vector_gather(v, NULL, -1, NULL));
	} else {
		turn(rank);
		OK(malt_vector_sync(v, 1, -1, NULL));
	}
}

/* A rank that has waited for long says so once, with what it waits for, and goes on; or
 * it ends the wait. */
static int reports;
static int32_t end_it;

static int32_t report(int64_t waited_ms, int64_t left_ms)
{
	malt_error_info e = {.size = sizeof e};
	malt_error(&e);
	CHECK(e.code == MALT_ETIMEOUT && strstr(e.where, "rank 1") != NULL);
	CHECK(waited_ms >= 10 && waited_ms + left_ms >= 19990 && waited_ms + left_ms <= 20000);
	if (!end_it)
		turn(0); /* and only now rank 1 comes */
	reports++;
	return end_it;
}

static void reporting(int rank, malt_handle v)
{
	for (int i = 0; i < 2; i++) {
		if (rank == 0) {
			end_it = i;
			malt_on_long_wait(10, report);
			if (end_it) {
				FAILS(MALT_ETIMEOUT, "rank 1", malt_vector_sync(v, 1, 20000, NULL));
				turn(rank);
				OK(malt_vector_gather(v, NULL, -1, NULL));
			} else {
				malt_error_info e = {.size = sizeof e};
				FAILS(MALT_EHANDLE, "", malt_object_close(0));
				OK(malt_vector_sync(v, 1, 20000, NULL));
				malt_error(&e); /* still of the last call that failed */
				CHECK(e.code == MALT_EHANDLE);
			}
			CHECK(reports == 1 + i);
			malt_on_long_wait(0, NULL);
		} else {
			turn(rank);
			OK(malt_vector_sync(v, 1, -1, NULL));
		}
		OK(malt_barrier(-1));
	}
}

/* A gather of a queue is given up. Its updates come with the next one. */
static void gathering(int rank, malt_handle v)
{
	uint32_t folded = 0;
	OK(malt_object_configure(v, "consistency=notify-ack", -1));
	if (rank == 0) {
		FAILS(MALT_ETIMEOUT, "rank 1", malt_vector_gather(v, NULL, 0, NULL));
		OK(malt_vector_scatter(v, NULL, 0, 1, 0, NULL));
		turn(rank);
	} else {
		turn(rank);
		OK(malt_vector_scatter(v, NULL, 0, 1, -1, NULL));
	}
	OK(malt_vector_gather(v, NULL, -1, &folded));
	CHECK(folded == 1);
}

int main(void)
{
	if (strcmp(word("MALT_RANK"), "0") == 0) { /* malt_init itself */
		FAILS(MALT_ETIMEOUT, "not here yet", malt_init(NULL, 0));
		FAILS(MALT_ETIMEOUT, "not here yet", malt_init("timeout=7", 20));
		FAILS(MALT_EINIT, "malt_init", malt_barrier(0));
		turn(0);
	} else {
		turn(1);
	}
	OK(malt_init(NULL, -1));
	int rank = malt_rank();
	CHECK(malt_size() == 2);
	calls_of_the_job(rank);
	malt_handle v = making(rank);
	syncing(rank, v);
	looking(rank, v);
	reporting(rank, v);
	gathering(rank, v);
	OK(malt_barrier(-1));
	void *w = memory(v);
	OK(malt_object_close(v));
	OK(malt_unmap(w));
	OK(malt_finalize());
	nothing_left();
	return 0;
}
