/*
 * Linear regression by stochastic gradient descent, trained by several ranks.
 *
 *     cc -O2 examples/c/regress.c -Icapi -Lbuild -lmalt -Wl,-rpath,build -o regress
 *     malt run -n 3 -- ./regress
 *
 * Every rank runs this whole program. Each takes its own third of the rows; the
 * ranks average their models after every 100 rows of theirs. Started alone,
 * ./regress is world size 1 and trains on all rows.
 *
 * The data is made on the spot: row i is a function of i, and what has to be
 * found is y = 1·x[0] + 2·x[1] + … + 8·x[7], plus a little noise.
 */
#include <malt.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIM = 8, ROWS = 30001, EVERY = 100 };

/* A status other than 0 comes with a sentence that says what to do. Others may
 * be waiting for this rank: malt_abort tells them why it ends. */
static void check(malt_status status)
{
	if (status != MALT_OK) {
		fprintf(stderr, "%s\n", malt_errmsg());
		malt_error_info error = {.size = sizeof error};
		malt_error(&error);
		malt_abort(error.message, &error);
		exit(1);
	}
}

/* The next of a sequence of numbers in [-1, 1), the same on every machine. */
static double noise(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 33) / (1u << 30) - 1;
}

static double row(int i, double x[DIM])
{
	uint64_t state = (uint64_t)i * 0x9e3779b97f4a7c15u;
	double y = 0;
	noise(&state);
	for (int k = 0; k < DIM; k++) {
		x[k] = noise(&state);
		y += (k + 1) * x[k];
	}
	return y + 0.01 * noise(&state);
}

/* One step of plain SGD on (wx - y)²/2: nothing here knows of other ranks. */
static void step(double w[DIM], const double x[DIM], double y, double rate)
{
	double error = -y;
	for (int k = 0; k < DIM; k++)
		error += w[k] * x[k];
	for (int k = 0; k < DIM; k++)
		w[k] -= rate * error * x[k];
}

int main(void)
{
	/* -1 is the job's own timeout: MALT_TIMEOUT, or 300 seconds. */
	check(malt_init(NULL, -1));
	int rank = malt_rank(), size = malt_size();

	/* The model lives in memory that MALT provides. Making a vector is
	 * collective: every rank does the same, and all start with rank 0's values. */
	malt_array model = {.count = DIM, .dtype = MALT_FLOAT64};
	malt_handle v;
	void *memory;
	check(malt_vector_new(&model, 1, "w", "graph=all consistency=bsp fold=mean", -1, &v));
	check(malt_object_data(v, 0, &memory, NULL));
	double *w = memory; /* used like any other array */

	/* This rank's share: rows rank, rank + size, rank + 2·size, … */
	int seen = 0;
	for (int i = rank; i < ROWS; i += size) {
		double x[DIM], y = row(i, x);
		step(w, x, y, 0.1);
		if (++seen % EVERY == 0)
			check(malt_vector_sync(v, 1.0, -1, NULL)); /* send mine, fold theirs */
	}
	/* Ranks whose share is shorter are here already. They are not waited for in
	 * the syncs of the others: a rank inside a collective call is excused. */
	check(malt_vector_allreduce(v, "mean", -1));

	/* A number of each rank, combined over all: the mean loss. */
	double loss[2] = {0, 0};
	for (int i = rank; i < ROWS; i += size) {
		double x[DIM], error = -row(i, x);
		for (int k = 0; k < DIM; k++)
			error += w[k] * x[k];
		loss[0] += error * error;
		loss[1] += 1;
	}
	check(malt_allreduce(loss, 2, MALT_FLOAT64, "sum", -1));

	printf("rank %d of %d: %d rows, loss %.6f, w", rank, size, seen, loss[0] / loss[1]);
	for (int k = 0; k < DIM; k++)
		printf(" %.17g", w[k]);
	printf("\n");

	check(malt_object_close(v));
	check(malt_unmap(memory)); /* w is gone from here on */
	check(malt_finalize());
	return 0;
}
