/* Calls that run into their timeout keep their place, and malt_cancel gives them
 * up. Two ranks; rank 1 makes each call only when rank 0 has been refused, which
 * it learns from a pipe of the driver's. */
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

/* The job's calls, one by one: refused with 0, refused again with a wait, while
 * another call is refused as busy; then gone on with. */
static void barrier(int rank)
{
	if (rank == 0) {
		FAILS(MALT_ETIMEOUT, "rank 1", malt_barrier(0));
		FAILS(MALT_ETIMEOUT, "rank 1", malt_barrier(20));
		FAILS(MALT_EBUSY, "barrier", malt_allgather("x", 1, NULL, NULL, 0));
		turn(rank);
	} else {
		turn(rank);
	}
	OK(malt_barrier(-1));
}

static void allreduce(int rank)
{
	double x[3] = {1 + rank, 2, 3 * rank};
	if (rank == 0) {
		double *gone = malloc(sizeof x); /* the buffer may be another one when the call goes on */
		memcpy(gone, x, sizeof x);
		FAILS(MALT_ETIMEOUT, "rank 1", malt_allreduce(gone, 3, MALT_FLOAT64, "sum", 0));
		CHECK(memcmp(gone, x, sizeof x) == 0);
		memset(gone, 0xff, sizeof x);
		free(gone);
		turn(rank);
	} else {
		turn(rank);
	}
	OK(malt_allreduce(x, 3, MALT_FLOAT64, "sum", -1));
	CHECK(x[0] == 3 && x[1] == 4 && x[2] == 3);
}

static void allgather(int rank)
{
	const void *got;
	uint64_t bytes;
	char *mine = malloc(8);
	memset(mine, 'a' + rank, 8);
	if (rank == 0) {
		FAILS(MALT_ETIMEOUT, "rank 1", malt_allgather(mine, 8, NULL, NULL, 0));
		memset(mine, '?', 8);
		free(mine);
		mine = malloc(8);
		memset(mine, 'a', 8);
		turn(rank);
	} else {
		turn(rank);
	}
	OK(malt_allgather(mine, 8, NULL, NULL, -1));
	for (int r = 0; r < 2; r++) {
		OK(malt_received(r, &got, &bytes));
		CHECK(bytes == 8 && ((const char *)got)[0] == 'a' + r && ((const char *)got)[7] == 'a' + r);
	}
	free(mine);
}

/* Making a vector is a collective, too: the handle comes when it is done, and
 * once. */
static malt_handle making(int rank)
{
	malt_handle v = 0;
	float first[2] = {rank, 10 * rank};
	malt_array a = {.count = 2, .dtype = MALT_FLOAT32, .init = first};
	if (rank == 0) {
		FAILS(MALT_ETIMEOUT, "rank 1", malt_vector_new(&a, 1, "w", "start=own", 0, &v));
		CHECK(v == 0);
		FAILS(MALT_EBUSY, "malt.Vector", malt_barrier(0));
		turn(rank);
	} else {
		turn(rank);
	}
	OK(malt_vector_new(&a, 1, "w", "start=own", -1, &v));
	CHECK(((float *)memory(v))[1] == 10 * rank);
	return v;
}

/* A sync that waits: bsp, rank 1 has not arrived. The vector keeps its value until
 * the sync is through. Its clock counts one: at the end, since on all in lock-step
 * vectors are averaged in place, and nothing is sent before. */
static void syncing(int rank, malt_handle v)
{
	float *w = memory(v);
	uint32_t folded = 99;
	uint64_t clock;
	if (rank == 0) {
		FAILS(MALT_ETIMEOUT, "rank 1", malt_vector_sync(v, 1, 0, &folded));
		FAILS(MALT_ETIMEOUT, "rank 1", malt_vector_sync(v, 1, 20, &folded));
		CHECK(folded == 99 && w[0] == 0);
		FAILS(MALT_EBUSY, "sync", malt_vector_scatter(v, NULL, 0, 1, 0, NULL));
		FAILS(MALT_EBUSY, "sync", malt_vector_gather(v, NULL, 0, NULL));
		OK(malt_vector_clock(v, &clock));
		CHECK(clock == 0);
		turn(rank);
	} else {
		turn(rank);
	}
	OK(malt_vector_sync(v, 1, -1, &folded));
	CHECK(folded == 1 && w[0] == 0.5f && w[1] == 5);
	OK(malt_vector_clock(v, &clock));
	CHECK(clock == 1);
}

/* A rank that waits looks up: it may call what it does not wait for, and what it
 * says the second time ends the wait. */
static malt_handle looked_from;
static int looks;

static int32_t look(void)
{
	uint64_t clock;
	FAILS(MALT_EBUSY, "in another call", malt_vector_gather(looked_from, NULL, 0, NULL));
	OK(malt_vector_clock(looked_from, &clock));
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
	} else {
		turn(rank);
	}
	OK(malt_vector_sync(v, 1, -1, NULL));
	CHECK(looks == (rank == 0 ? 2 : 0));
}

/* Given up: rank 0 is free for other calls, and rank 1 is told so when it makes
 * the call that is no more. The data is more than what is sent before anybody
 * takes it: a call whose part has been sent already goes well for the others. */
static void cancel(int rank)
{
	enum { COUNT = 1 << 20 };
	double *x = calloc(COUNT, sizeof *x);
	CHECK(x != NULL);
	if (rank == 0) {
		FAILS(MALT_ETIMEOUT, "rank 1", malt_allreduce(x, COUNT, MALT_FLOAT64, "sum", 0));
		OK(malt_cancel(0));
		OK(malt_cancel(0));
		turn(rank);
	} else {
		turn(rank);
		FAILS(MALT_ELEFT, "rank 0", malt_allreduce(x, COUNT, MALT_FLOAT64, "sum", -1));
	}
	free(x);
	OK(malt_barrier(-1));
}

/* Given up: a gather. Its updates come with the next one. */
static void cancel_gather(int rank, malt_handle v)
{
	uint32_t folded = 0;
	OK(malt_vector_configure(v, "consistency=notify-ack", -1));
	if (rank == 0) {
		FAILS(MALT_ETIMEOUT, "rank 1", malt_vector_gather(v, NULL, 0, NULL));
		OK(malt_cancel(v));
		OK(malt_vector_scatter(v, NULL, 0, 1, 0, NULL)); /* busy no more */
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
		FAILS(MALT_ETIMEOUT, "not here yet", malt_init(NULL, 20));
		FAILS(MALT_EBUSY, "other options", malt_init("timeout=7", 20));
		FAILS(MALT_EINIT, "malt_init", malt_barrier(0));
		turn(0);
	} else {
		turn(1);
	}
	OK(malt_init(NULL, -1));
	int rank = malt_rank();
	CHECK(malt_size() == 2);
	barrier(rank);
	allreduce(rank);
	allgather(rank);
	malt_handle v = making(rank);
	syncing(rank, v);
	looking(rank, v);
	cancel(rank);
	cancel_gather(rank, v);
	OK(malt_barrier(-1));
	void *w = memory(v);
	OK(malt_vector_close(v));
	OK(malt_unmap(w));
	OK(malt_finalize());
	nothing_left();
	return 0;
}
