/* A forked child: every function refuses at once, none hangs, who am I is still
 * answered, MALT's descriptors are closed, and exit is clean. The parent goes on
 * as before. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

/* Every function that enters the library; the test's driver compares this with
 * the header. */
static void everything(void)
{
	void *p;
	const void *got;
	uint64_t u64;
	uint32_t u32;
	malt_handle h = 1;
	malt_array a = {.count = 1, .dtype = MALT_FLOAT32};
	malt_update u;
	malt_graph_measures m;

#define REFUSED(call) FAILS(MALT_EFORK, "fork", call)
	REFUSED(malt_init(NULL, -1));
	REFUSED(malt_witness(NULL));
	REFUSED(malt_finalize());
	REFUSED(malt_finalize_at_exit());
	REFUSED(malt_abort("x", NULL));
	REFUSED(malt_at("x"));
	REFUSED(malt_mark("x"));
	REFUSED(malt_log("x", 1));
	REFUSED(malt_alive(NULL, 0, &u32));
	REFUSED(malt_confirm(-1));
	REFUSED(malt_expel(1));
	REFUSED(malt_barrier(-1));
	REFUSED(malt_allreduce(NULL, 0, MALT_FLOAT32, "mean", -1));
	REFUSED(malt_allreduce_array(NULL, &a, "mean", -1));
	REFUSED(malt_allgather(NULL, 0, NULL, NULL, -1));
	REFUSED(malt_broadcast(NULL, 0, 0, -1));
	REFUSED(malt_received(0, &got, &u64));
	REFUSED(malt_vector_new(&a, 1, NULL, NULL, -1, &h));
	REFUSED(malt_vector_check(NULL, NULL));
	REFUSED(malt_object_data(h, 0, &p, &u64));
	REFUSED(malt_unmap(&h));
	REFUSED(malt_vector_scatter(h, NULL, 0, 1, -1, &u64));
	REFUSED(malt_vector_gather(h, NULL, -1, &u32));
	REFUSED(malt_vector_sync(h, 1, -1, &u32));
	REFUSED(malt_vector_scatter_rows(h, NULL, 0, NULL, 0, 1, -1, &u64));
	REFUSED(malt_vector_sync_rows(h, NULL, 0, 1, -1, &u32));
	REFUSED(malt_vector_sync_slack(h, 1, 1, -1, &u32));
	REFUSED(malt_vector_allreduce_weight(h, "mean", 1, -1));
	REFUSED(malt_vector_age(h, &u64));
	REFUSED(malt_vector_wanted(h, &p, NULL, &u64));
	REFUSED(malt_vector_configure_rows(h, &u64, 1, NULL, 0, -1));
	REFUSED(malt_vector_gather_rows(h, 0, &u, NULL, NULL, 0, &u64));
	REFUSED(malt_object_await(h, -1));
	REFUSED(malt_object_gather_begin(h, -1, &u32));
	REFUSED(malt_object_gather_update(h, 0, &u));
	REFUSED(malt_object_gather_end(h, 1));
	REFUSED(malt_vector_gather_with(h, (malt_fold)abort, NULL, -1, &u32));
	REFUSED(malt_vector_allreduce(h, "mean", -1));
	REFUSED(malt_vector_broadcast(h, 0, -1));
	REFUSED(malt_object_configure(h, "", -1));
	REFUSED(malt_object_clock(h, &u64));
	REFUSED(malt_object_lockstep(h, NULL));
	REFUSED(malt_object_describe(h, NULL, 0, &u64));
	REFUSED(malt_object_receivers(h, NULL, 0, &u32));
	REFUSED(malt_object_senders(h, NULL, 0, &u32));
	REFUSED(malt_object_stats(h, NULL, NULL, 0, &u32));
	REFUSED(malt_job_stats(NULL, NULL, 0, &u32));
	REFUSED(malt_object_close(h));
	REFUSED(malt_segment_new(1, NULL, NULL, -1, &h));
	REFUSED(malt_segment_scatter(h, 0, NULL, 0, -1, &u64));
	REFUSED(malt_graph_new("all", 2, 0, &h));
	REFUSED(malt_graph_receivers(h, 0, 1, NULL, 0, &u32));
	REFUSED(malt_graph_measure(h, &m));
	REFUSED(malt_graph_render(h, "text", NULL, 0, &u64));
	REFUSED(malt_graph_close(h));
	REFUSED(malt_inspect("doctor", NULL, 0, &u64));
}

static void in_child(void (*check)(void))
{
	fflush(NULL);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(20); /* a hang is a failure, too */
		check();
		exit(0); /* not _exit: atexit and destructors run */
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	if (status != 0)
		FAIL("the child ended with status %#x", status);
}

static int32_t rank, size;

static void child(void)
{
	CHECK(malt_rank() == rank && malt_size() == size && malt_local_rank() == rank && malt_generation() == 1);
	CHECK(malt_abi_version() == MALT_ABI_VERSION && strlen(malt_version()) > 0);
	everything();
	in_child(everything); /* a grandchild */
}

/* What another thread opens or closes at the moment of the fork stays open in that child; not in all of many. */
static void children_have_no_descriptors(void)
{
	int status = -1;
	for (int i = 0; i < 100 && status != 0; i++) {
		fflush(NULL);
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			_exit(open_descriptors());
		CHECK(waitpid(pid, &status, 0) == pid);
	}
	CHECK(status == 0);
}

static void child_of_nobody(void)
{
	FAILS(MALT_EINIT, "malt_init", malt_rank());
	FAILS(MALT_EINIT, "malt_init", malt_generation());
	everything();
}

int main(void)
{
	in_child(child_of_nobody); /* the library is loaded, the job not joined */
	OK(malt_init(NULL, -1));
	rank = malt_rank(), size = malt_size();
	malt_handle v = vector(1000, MALT_FLOAT32, "consistency=bsp");
	float *w = memory(v);
	w[0] = (float)rank;
	OK(malt_barrier(-1)); /* all have mapped the vector: from now on descriptors are only closed */
	int before = open_descriptors();
	CHECK(size == 1 || before > 0);
	in_child(child);
	children_have_no_descriptors();
	CHECK(open_descriptors() <= before);
	OK(malt_vector_sync(v, 1, -1, NULL));
	CHECK(w[0] == (float)(size - 1) / 2);
	in_child(child);
	OK(malt_barrier(-1));
	OK(malt_object_close(v));
	OK(malt_unmap(w));
	OK(malt_finalize());
	nothing_left();
	in_child(child_of_nobody);
	return 0;
}
