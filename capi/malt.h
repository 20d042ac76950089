/*
 * malt.h: data-parallel training by one-sided updates.
 *
 * Every rank is a process that runs the same program on its own part of the
 * data. A vector is the model (or the gradient) of one rank, in memory that
 * your code reads and writes like any other array. Scattering it makes its
 * present values available to the ranks that a dataflow graph names; gathering
 * folds what the others have scattered into it. How far ranks may drift apart
 * is the consistency of the vector.
 *
 *     malt_init(NULL, -1);
 *     malt_array a = { .count = dim, .dtype = MALT_FLOAT32 };
 *     malt_handle v;
 *     malt_vector_new(&a, 1, "w", "graph=halton consistency=ssp:2", -1, &v);
 *     void *p;
 *     malt_vector_data(v, 0, &p, NULL);
 *     float *w = p;
 *     for (...) {                                       // rows rank, rank + size, …
 *         step(w, ...);                                 // your code
 *         malt_vector_sync(v, 1.0, -1, NULL);           // scatter + gather (mean)
 *     }
 *     malt_vector_allreduce(v, "mean", -1);             // the same model everywhere
 *     malt_vector_close(v);
 *     malt_unmap(w);
 *     malt_finalize();
 *
 * with every status looked at: examples/c/regress.c is the whole of it.
 *
 * Build and run, with malt.h in INC and libmalt.so in LIB:
 *
 *     cc train.c -IINC -LLIB -lmalt -Wl,-rpath,LIB -o train
 *     malt run -n 3 -- ./train
 *
 * Without a launcher the same program runs as world size 1.
 *
 * CONVENTIONS
 *
 * Status. Every function that can fail returns a malt_status: 0, or one of the
 * negative codes below. malt_errmsg() then gives the sentence: which value was
 * wrong, what was expected, what to do, and malt_error() the same as data. On an error nothing is stored where
 * results go. Each function lists its own codes; besides those every function
 * may return MALT_EFORK (see Processes), MALT_EINTERNAL (a defect of MALT:
 * please report the message), MALT_EINVAL (a result pointer that must not be
 * NULL, a string without a final 0 in its first 64 MiB), and, if it needs the
 * job, MALT_EINIT.
 *
 * Handles are 64-bit numbers; 0 is never valid. A handle that was closed, or
 * that is of another kind, is refused with MALT_EHANDLE; it never crashes.
 * malt_finalize closes the handles of all vectors and segments.
 *
 * Memory. What MALT hands out (vectors, segments, updates, what was received)
 * lies outside of malloc and is yours for as long as the function says. What
 * you hand in is read before the call returns, and never afterwards.
 *
 * Timeouts are in milliseconds. 0 tries once and does not wait; a negative one
 * means the job's own (MALT_TIMEOUT, else 300 s). A call that runs into its
 * timeout returns MALT_ETIMEOUT and KEEPS ITS PLACE: the same call, made again,
 * goes on with it (a collective call with a buffer of the same length and
 * contents, which need not lie where it lay). To give it up, call malt_cancel.
 * Until one of the two is done, another call that waits on the same object is
 * refused with MALT_EBUSY. Its message names the ranks waited for, and where they
 * are. A program that must look up from its wait now and then, for signals say,
 * does so in a function of its own: malt_look_up.
 *
 * Threads. Any thread may call, but an object serves one call at a time:
 * MALT_EBUSY tells a second one. The functions of the job (malt_barrier and
 * the like) count as one object. Names, ranks, clocks and the like may be asked
 * for at any time.
 *
 * Processes. The library runs threads of its own from the moment it is loaded,
 * and they do not survive a fork. In a child that was forked afterwards every
 * function returns MALT_EFORK at once, but for malt_rank, malt_size,
 * malt_local_rank and malt_generation, which tell what they told in the parent,
 * and those of "the library". Children that only exec are not concerned. A rank
 * that is killed, or ends without malt_finalize, leaves nothing behind; the
 * others get MALT_EPEER where they wait for it.
 *
 * Signals. MALT handles none but what its runtime needs: SIGURG, and SIGSEGV,
 * SIGBUS and SIGFPE for faults of its own. Other faults, and such signals that are
 * sent, go to what handled them before the library was loaded. Handlers that a
 * program sets must have SA_ONSTACK. Waits are not ended by signals: malt_look_up
 * is for that.
 *
 * Collective calls must be made by every rank, in the same order: malt_init,
 * malt_barrier, malt_allreduce, malt_broadcast, malt_allgather, making and
 * configuring vectors and segments, malt_vector_allreduce and
 * malt_vector_broadcast. All other calls are a rank's own business. A rank that
 * waits inside a collective call, or has ended in good order, is not waited for
 * by gathers and syncs of the others, so ranks need not make equally many.
 *
 * Options are one string of key=value pairs, separated by blanks. The same
 * grammar is used in Python, on the command line and in the environment. An
 * unknown key or value is MALT_EINVAL, and the message names the nearest one.
 *
 *     graph=        all  ring  chord  halton  halton-paper  random:K[:SEED]
 *                   hypercube  star  one-peer  lists:1,2/2/0
 *                   (lists: the receivers of rank 0, of rank 1, …)         [all]
 *     allow_disconnected=   false  true: accept a graph in which some rank
 *                   cannot reach some other                              [false]
 *     consistency=  bsp  async  ssp:SLACK  notify-ack[:DEPTH]              [bsp]
 *     fold=         mean  mean-received  sum  min  max  replace           [mean]
 *     uneven=       error: a gather fails, with MALT_ELEFT, rather than go on
 *                   without a rank that it would wait for, but which is in a
 *                   collective call, has closed the vector or ended: for
 *                   gradients. async waits for no rank                    [ok]
 *     start=        same: every rank starts with rank 0's values
 *                   own: each rank keeps what init gave it                [same]
 *     sparse=       false: a scatter sends the whole vector
 *                   model, gradient: it sends some rows; see "sparse
 *                   vectors"                                             [false]
 */
#ifndef MALT_H
#define MALT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MALT_ABI_VERSION 3

typedef int32_t malt_status;
typedef uint64_t malt_handle;

enum {
	MALT_OK = 0,
	MALT_EINVAL = -1,       /* an argument or option is wrong */
	MALT_EINIT = -2,        /* malt_init first; or it was called twice */
	MALT_EHANDLE = -3,      /* no such handle: null, closed, or another kind */
	MALT_EBUSY = -4,        /* the object is in a call of another thread, a fold, or a call to be continued */
	MALT_ETIMEOUT = -5,     /* the time is up; the call keeps its place */
	MALT_EPEER = -6,        /* a rank that is needed is dead */
	MALT_ELEFT = -7,        /* a rank that a collective needs has ended in good order, or gave the call up */
	MALT_EMISMATCH = -8,    /* the ranks disagree: about a vector, or about which collective call this is */
	MALT_ENOMEM = -9,       /* the memory is not there, here or on another rank of a collective call */
	MALT_EUNSUPPORTED = -10,/* not with this transport, graph or consistency */
	MALT_ESTATE = -11,      /* not now: e.g. too many scatters without a gather */
	MALT_EFORK = -12,       /* this process is a forked child of a rank */
	MALT_ECANCELLED = -13,  /* given up by malt_cancel */
	MALT_EIO = -14,         /* the system refused something: the message says what */
	MALT_EINTERNAL = -15    /* a defect of MALT */
};

/* Element types. */
enum { MALT_FLOAT32 = 1, MALT_FLOAT64 = 2 };

/* ------------------------------------------------------------- the library */

/* The ABI of the library that is loaded; compare with MALT_ABI_VERSION. */
int32_t malt_abi_version(void);

/* The version, such as "0.1.0". Static memory. */
const char *malt_version(void);

/* The sentence of the last call of this thread that failed; "" if none has.
 * Valid until the next call of this thread. */
const char *malt_errmsg(void);

/* How a rank died. */
enum {
	MALT_DEATH_ENDED = 1,       /* its process has ended without a word */
	MALT_DEATH_FAILED = 2,      /* it said so itself: malt_abort, or it could not join */
	MALT_DEATH_UNREACHABLE = 3  /* its host gives no sign of life */
};

/* An error as data. */
typedef struct {
	uint64_t size;       /* you set it: sizeof(malt_error_info). Then: how much of it was filled in */
	malt_status code;
	int32_t rank;        /* MALT_EPEER: the rank that died first, which others may have died of; else -1 */
	int32_t death;       /* MALT_EPEER: how it died, MALT_DEATH_…; else 0 */
	const char *message; /* malt_errmsg(): the next four, a line each */
	const char *call;    /* that was being made, as a Python program writes it, such as "malt.barrier" or "w.sync" */
	const char *what;    /* happened */
	const char *where;   /* and which ranks; lines, as of what to do */
	const char *advice;  /* what to do */
	const char *topic;   /* more is in the guide: malt explain TOPIC */
	const char *why;     /* MALT_EPEER: how it is known to be dead, or what it said; else "" */
} malt_error_info;

/* The last call of this thread that failed, as data: decide by this, never by the
 * sentence. Texts that are missing are "". Code MALT_OK if none has. Texts are valid until the next call of this
 * thread. Later versions have more fields, behind these. */
void malt_error(malt_error_info *info);

/* Has look called by every thread that sleeps in a call of MALT, every 50 ms and
 * after each signal handler that ran in the thread; NULL: no longer, and when that
 * returns no thread is in it. If look returns a value other than 0 the call ends as if
 * its time were up. It may call MALT, but for malt_look_up(NULL); calls on what the
 * thread waits for get MALT_EBUSY. malt_init does not call it. */
typedef int32_t (*malt_look)(void);
void malt_look_up(malt_look look);

/* ----------------------------------------------------------------- the job */

/* Joins the job. options: NULL takes everything from the environment, where
 * malt run puts it; otherwise keys that override it:
 *     rank=  size=  store=  token=  timeout= (seconds)
 *     store_fd=   of rank 0: descriptors, with commas, of TCP sockets that listen at the
 *                 store; the library takes it over
 *     interface=  where other hosts can reach this rank: names and patterns of
 *                 interfaces, addresses, networks ("ib0,eth*,10.1.0.0/16"), with ^
 *                 before all of them: all others; without it, it finds out
 *     unreachable= seconds for which another host may give no sign of life before
 *                 its ranks count as dead: 2 or more, 5 by default; until all have
 *                 met, less than 5 counts as 5
 *     together=   the first and the last of the ranks that one launcher starts,
 *                 this one among them ("4-7"): ranks of launchers that overlap in
 *                 another way do not meet
 *     congestion= the congestion control of connections with other hosts, by the
 *                 kernel's name ("cubic"); without it, the system's
 *     encrypt=    1: what goes between hosts is encrypted; 0: it is not; without it:
 *                 where an address is neither private, loopback nor link-local
 *     transport=  auto  shm  tcp  inmem
 * Without any of those, here and in the environment, the job is this process
 * alone: rank 0 of 1.
 * Afterwards MALT_RANK and MALT_SIZE in the environment of this process are those
 * of a job of one, and MALT_STORE, MALT_STORE_FD, MALT_TOKEN and MALT_TOGETHER
 * are gone, so that programs which it starts do not take themselves for ranks.
 * (As this calls setenv, no other thread should be reading the environment.)
 * A malt_init that ran into timeout_ms keeps its place, too; one that runs into
 * the job's own timeout is over. Both messages name the ranks that have not
 * arrived.
 * MALT_EINVAL, MALT_EINIT (joined already), MALT_ETIMEOUT, MALT_ECANCELLED,
 * MALT_EBUSY (another thread is in it), MALT_EPEER, MALT_EIO, and MALT_ESTATE
 * where another live process already is this rank. */
malt_status malt_init(const char *options, int64_t timeout_ms);

/* Leaves the job in good order: closes what is open and tells the others, who
 * no longer wait for this rank. Memory from malt_vector_data stays valid until
 * malt_unmap. Not collective. MALT_OK also when malt_init was never called.
 * A rank cannot leave in good order after a failure: where a call has returned
 * MALT_EPEER, or MALT_ETIMEOUT and no later call that waits on the same object has
 * succeeded since, this is malt_abort for that reason, and then leaves.
 * MALT_EBUSY: another thread is in a call, or a fold is open; nothing is closed. */
malt_status malt_finalize(void);

/* Has the end of the process tell the others how it ends: by exit(0), or a return of
 * 0 from main, malt_finalize is called; with any other status, malt_abort. Waits of
 * other threads end. A process that ends in any other way, or without this call and
 * malt_finalize, is dead to the others. MALT_ENOMEM. */
malt_status malt_finalize_at_exit(void);

/* Publishes this rank's own death: waits of the others for it fail at once with
 * MALT_EPEER and this reason. For a rank that is about to end after an error.
 * because: that error, from malt_error, or NULL. If it is MALT_EPEER, the others
 * get the death of that rank in place of this one's. */
malt_status malt_abort(const char *reason, const malt_error_info *because);

/* Who am I. Before malt_init and after malt_finalize: MALT_EINIT. They take a
 * few nanoseconds. */
int32_t malt_rank(void);
int32_t malt_size(void);
int32_t malt_local_rank(void); /* among the ranks of its machine */
/* The membership number: 1, and one more each time the set of ranks changes. */
int64_t malt_generation(void);

/* One array. */
typedef struct {
	uint64_t count;    /* elements; 0 is allowed */
	int32_t dtype;     /* MALT_FLOAT32 or MALT_FLOAT64 */
	int32_t row;       /* elements of a row of a sparse vector; 0: 1 (must be 0 of other vectors) */
	const void *init;  /* first values of a vector, copied; NULL: zeros */
	const uint64_t *shape; /* lengths of its axes, whose product is count; NULL: one axis */
	uint64_t axes;     /* how many; 64 at most */
} malt_array;

/* Waits until every rank is in its barrier. What was scattered before can be
 * gathered after it, but in notify-ack: gather there before the barrier. (A rank
 * in a collective call does not hold up the others, who may use its queues again.)
 * MALT_ETIMEOUT, MALT_EPEER, MALT_ELEFT, MALT_EMISMATCH, MALT_EBUSY. */
malt_status malt_barrier(int64_t timeout_ms);

/* Combines count elements of dtype over all ranks, in place, in rank order, to
 * the same bits on every rank. op: mean, sum, min, max.
 * MALT_EINVAL and the codes of malt_barrier; data is unchanged on an error. */
malt_status malt_allreduce(void *data, uint64_t count, int32_t dtype, const char *op, int64_t timeout_ms);

/* The same of an array, on whose shape the ranks must agree as well; row and
 * init are not looked at. */
malt_status malt_allreduce_array(void *data, const malt_array *a, const char *op, int64_t timeout_ms);

/* Gives every rank every rank's bytes, which may differ in length. Fetch them
 * with malt_received, one's own included. call and with are for a call that is
 * built on this one: its name for messages, such as "sum_of_squares", and what it
 * is given, in which ranks must agree; both may be NULL. MALT_ENOMEM and the codes
 * of malt_barrier. */
malt_status malt_allgather(const void *data, uint64_t bytes, const char *call, const char *with, int64_t timeout_ms);

/* Gives every rank the bytes of root. data and bytes count at root only. Fetch
 * them with malt_received(root, …), also at root. MALT_EINVAL, MALT_ENOMEM and
 * the codes of malt_barrier. */
malt_status malt_broadcast(const void *data, uint64_t bytes, int32_t root, int64_t timeout_ms);

/* Tells the other ranks where in its program this one is, for their messages
 * about waits and disagreements: a file and a line, say. It holds until the next
 * malt_at. place is cut to 160 bytes; NULL or "" takes it back. */
malt_status malt_at(const char *place);

/* What the last malt_allgather or malt_broadcast brought from rank. Valid until
 * the next of them that succeeds, or malt_finalize. MALT_EINVAL, MALT_ESTATE
 * (nothing was received, or nothing from that rank). */
malt_status malt_received(int32_t rank, const void **data, uint64_t *bytes);

/* Gives up the call that keeps its place on object (0: on the job). Others that
 * need this rank in a collective call given up get MALT_ELEFT, but where its part
 * had been sent. MALT_OK also when there was none. A thread that is inside a call is
 * not disturbed: MALT_EBUSY; only in malt_init it is, which then returns
 * MALT_ECANCELLED. MALT_EHANDLE. */
malt_status malt_cancel(malt_handle object);

/* ----------------------------------------------------------------- vectors */

/* Makes a vector of n arrays that travel as one. Collective: all ranks must
 * agree on the arrays' shapes and types, the name and the options but fold=.
 * name: letters, digits and ._-/ ; NULL or "" numbers it. options: graph, allow_disconnected,
 * consistency, fold, start, sparse.
 * The arrays lie one after the other in one block of memory, each aligned to
 * its element size: without gaps where all have one type.
 * MALT_EINVAL, MALT_ENOMEM, MALT_EMISMATCH, and the codes of malt_barrier. */
malt_status malt_vector_new(const malt_array *arrays, uint32_t n, const char *name, const char *options,
                            int64_t timeout_ms, malt_handle *out);

/* What malt_vector_new would say of a name and options, before there are arrays:
 * MALT_EINVAL where it refuses them. Not collective. */
malt_status malt_vector_check(const char *name, const char *options);

/* The memory of array i, yours to read and write at any time but during a
 * gather, sync, allreduce or broadcast of this vector in another thread. It
 * stays valid, also after malt_vector_close and malt_finalize, until malt_unmap.
 * Of a vector made with graph=all and consistency=bsp other ranks write into it
 * during a sync or an allreduce. A forked child has the values of the fork, or later
 * ones of its parent until it writes there; what it writes stays its own.
 * MALT_EHANDLE, MALT_EINVAL. */
malt_status malt_vector_data(malt_handle v, uint32_t i, void **data, uint64_t *bytes);

/* Gives back the memory of a vector or segment that has been closed; data is
 * what malt_vector_data gave for array 0. NULL is allowed.
 * MALT_EINVAL (not such memory), MALT_EBUSY (not closed yet). */
malt_status malt_unmap(void *data);

/* Sends the present values. The clock of the vector, the number of its
 * scatters, goes up by one. to: nto ranks among the receivers; NULL means all.
 * weight: what they count in a mean. *sent: payload bytes times receivers; may
 * be NULL. Only notify-ack waits (for receivers to have folded an earlier one).
 * MALT_EHANDLE, MALT_EINVAL, MALT_ENOMEM, MALT_EBUSY, MALT_ESTATE (in bsp a second scatter, in
 * notify-ack:d one after d, without a gather), MALT_ETIMEOUT and MALT_EPEER
 * (notify-ack). */
malt_status malt_vector_scatter(malt_handle v, const int32_t *to, uint32_t nto, double weight, int64_t timeout_ms,
                                uint64_t *sent);

/* Folds what has arrived into the vector, as its consistency says, with one of
 * the folds above; fold NULL or "": the vector's own. *folded: how many updates;
 * may be NULL.
 * MALT_EHANDLE, MALT_EINVAL, MALT_EBUSY, MALT_ESTATE (bsp: nothing was scattered
 * since the last gather), MALT_ETIMEOUT, MALT_EPEER. */
malt_status malt_vector_gather(malt_handle v, const char *fold, int64_t timeout_ms, uint32_t *folded);

/* malt_vector_scatter to all, then malt_vector_gather with the vector's fold.
 * Their codes. MALT_ETIMEOUT: the call keeps its place; made again it goes on.
 *
 * With graph=all, consistency=bsp and the folds mean, sum, min and max the ranks
 * make the result in each other's arrays, each a part of it, to the same bits as
 * by the two calls and with fewer bytes moved. So from this call until it, or what
 * goes on from it, has returned 0, other ranks read the array and write into it:
 * leave it alone, also after MALT_ETIMEOUT, and after malt_cancel until
 * malt_vector_gather, which goes on from there. A thread, or a forked child, that
 * reads it meanwhile sees old and new parts mixed; what a thread writes may be folded,
 * or lost. After MALT_EPEER the array may hold parts of the result. */
malt_status malt_vector_sync(malt_handle v, double weight, int64_t timeout_ms, uint32_t *folded);

/* One received update, read-only. */
typedef struct {
	const void *data;   /* laid out as the vector is; valid until gather_end */
	uint64_t bytes;
	int32_t rank;       /* who sent it */
	int32_t reserved;
	uint64_t clock;     /* the sender's clock when it did */
	int64_t age;        /* this rank's clock minus that; negative: the sender is ahead */
	double weight;
} malt_update;

/* A fold of your own. begin waits as malt_vector_gather does and tells how many
 * updates there are; update describes one, in the order of ranks; end says that
 * they have been folded into the vector (folded = 1) or not (0: the next gather
 * gets them again). Every begin that returns MALT_OK needs its end, whatever *n;
 * in between, other calls on the vector return MALT_EBUSY.
 * begin: as malt_vector_gather; update: MALT_EINVAL, MALT_ESTATE (no begin); end:
 * MALT_ESTATE, MALT_EBUSY (from inside a malt_vector_gather_with, or beside one). */
malt_status malt_vector_gather_begin(malt_handle v, int64_t timeout_ms, uint32_t *n);
malt_status malt_vector_gather_update(malt_handle v, uint32_t i, malt_update *u);
malt_status malt_vector_gather_end(malt_handle v, int32_t folded);

/* The same with a function that is called once, in this thread, if there are
 * updates. own is the vector's memory, bytes long. A value other than 0 means
 * that it failed: restore what you changed; the updates come again, and the
 * call returns MALT_ESTATE. */
typedef int32_t (*malt_fold)(void *own, uint64_t bytes, const malt_update *updates, uint32_t n, void *user);
malt_status malt_vector_gather_with(malt_handle v, malt_fold fold, void *user, int64_t timeout_ms, uint32_t *folded);

/* Sparse vectors. A vector of one array can be sparse: of its rows, a number of
 * elements each (malt_array.row), those travel that matter. What a row means that
 * does not travel is what sparse= says.
 *
 * sparse=model: a row travels when its values differ, bit by bit, from those that
 * this rank sent last (at first: started with), whoever changed them: the loop, or
 * a fold, so that changes are passed on along the graph. A fold combines, row by
 * row, the own values with those of the updates that mention the row; a row that
 * none mentions keeps its values. Each row goes to each receiver once in each of its
 * values: where updates are overwritten, the next one has the rows of those that
 * its receivers have not folded. In notify-ack, gather before a barrier: what a
 * barrier makes count as seen does not come again until the row changes.
 *
 * sparse=gradient: a row travels that is not zero, and one that does not travel
 * counts as zero: a fold gives what it gives with whole vectors. Where so many
 * rows travel that the whole vector is cheaper, that is sent.
 *
 * malt_vector_scatter and malt_vector_sync look at all rows. The two below send
 * those that are named, changed or not, in any order, repeats allowed; rows NULL
 * (and nrows 0): as those above. What else has changed, also by a fold, waits for a call
 * that looks, or names it: with the graph all, where each rank hears of each
 * change at first hand, that is what one wants.
 * Codes of those above, and MALT_EINVAL where a row is none, or v is not sparse. */
malt_status malt_vector_scatter_rows(malt_handle v, const int64_t *rows, uint64_t nrows, const int32_t *to, uint32_t nto,
                                     double weight, int64_t timeout_ms, uint64_t *sent);
malt_status malt_vector_sync_rows(malt_handle v, const int64_t *rows, uint64_t nrows, double weight, int64_t timeout_ms,
                                  uint32_t *folded);

/* A fold of your own over a sparse vector: malt_vector_gather_update and
 * malt_vector_gather_with show each update laid out as the vector is, where rows
 * that it does not mention have, of a model, the vector's own values, of a gradient
 * zeros. This shows the rows alone: between begin and end it copies at most cap
 * of those of update i, ascending, and their values; *n is how many there are. u
 * gets the rest (data is NULL). u and n may be NULL.
 * MALT_EHANDLE, MALT_EINVAL, MALT_ESTATE (no begin). */
malt_status malt_vector_gather_rows(malt_handle v, uint32_t i, malt_update *u, uint32_t *rows, void *values,
                                    uint64_t cap, uint64_t *n);

/* Makes all replicas equal, in place, whatever graph and consistency. What was
 * unseen counts as seen, and all clocks become the largest. Collective.
 * op: mean, sum, min, max. After an error parts of the values may be combined
 * already. MALT_EHANDLE and the codes of malt_allreduce. */
malt_status malt_vector_allreduce(malt_handle v, const char *op, int64_t timeout_ms);
malt_status malt_vector_broadcast(malt_handle v, int32_t root, int64_t timeout_ms);

/* Changes graph, consistency or fold; what options does not name stays.
 * Collective; what was unseen counts as seen.
 * As malt_vector_new; on an error the vector is as it was. */
malt_status malt_vector_configure(malt_handle v, const char *options, int64_t timeout_ms);

/* How many times this vector has been scattered (or levelled up to). */
malt_status malt_vector_clock(malt_handle v, uint64_t *clock);

/* name= and the options in force, in the grammar above; of start and sparse only
 * what is not the default. Copies at most cap bytes with a final 0; *need is what the whole takes. */
malt_status malt_vector_describe(malt_handle v, char *text, uint64_t cap, uint64_t *need);

/* Stores 1 where each gather folds what was sent with this rank's last scatter, as
 * in bsp, else 0. */
malt_status malt_vector_lockstep(malt_handle v, int32_t *yes);

/* Ranks that this one sends to (at the next scatter), and hears from, in the
 * graph's order. Copies at most cap; *n is how many there are. */
malt_status malt_vector_receivers(malt_handle v, int32_t *ranks, uint32_t cap, uint32_t *n);
malt_status malt_vector_senders(malt_handle v, int32_t *ranks, uint32_t cap, uint32_t *n);

/* What went over one edge to or from rank, since the vector was made. */
typedef struct {
	int32_t rank;
	int32_t reserved;
	uint64_t sent_messages, sent_bytes;         /* to rank */
	uint64_t folded_messages, folded_bytes;     /* from rank */
	uint64_t overwritten;   /* in async and ssp, from rank, never to be folded: newer ones replaced them, they
	                         * were too old, a collective made them count as seen, or the vector was closed */
	int64_t age_sum;        /* over folded ones; mean age = age_sum / folded_messages */
	int64_t age_max;
	double waited;          /* seconds in which this rank was among those waited for */
} malt_edge;

typedef struct {
	uint64_t scatters, gathers;
	double scatter_seconds, wait_seconds, fold_seconds;
} malt_vector_totals;

/* edges: the present neighbours and those of former graphs, by rank; at most cap
 * are filled, *n is how many there are. totals, edges (with cap 0) and n may be
 * NULL. MALT_EHANDLE, MALT_EBUSY. */
malt_status malt_vector_stats(malt_handle v, malt_vector_totals *totals, malt_edge *edges, uint32_t cap, uint32_t *n);

/* Leaves the vector: others no longer wait for this rank in it. Its memory
 * stays until malt_unmap. Not collective. MALT_EHANDLE, MALT_EBUSY. */
malt_status malt_vector_close(malt_handle v);

/* ---------------------------------------------------------------- segments */

/* Opaque bytes in place of numbers: options graph, allow_disconnected and
 * consistency as for a vector, no fold. The calls below mean what their
 * namesakes above mean. All ranks must agree on bytes, the most that one scatter
 * can send. */
malt_status malt_segment_new(uint64_t bytes, const char *name, const char *options, int64_t timeout_ms, malt_handle *out);
malt_status malt_segment_data(malt_handle s, void **data, uint64_t *bytes);
/* Sends the first n bytes. */
malt_status malt_segment_scatter(malt_handle s, uint64_t n, const int32_t *to, uint32_t nto, int64_t timeout_ms,
                                 uint64_t *sent);
malt_status malt_segment_gather_begin(malt_handle s, int64_t timeout_ms, uint32_t *n);
malt_status malt_segment_gather_update(malt_handle s, uint32_t i, malt_update *u);
malt_status malt_segment_gather_end(malt_handle s, int32_t folded);
malt_status malt_segment_clock(malt_handle s, uint64_t *clock);
malt_status malt_segment_describe(malt_handle s, char *text, uint64_t cap, uint64_t *need);
malt_status malt_segment_receivers(malt_handle s, int32_t *ranks, uint32_t cap, uint32_t *n);
malt_status malt_segment_senders(malt_handle s, int32_t *ranks, uint32_t cap, uint32_t *n);
malt_status malt_segment_stats(malt_handle s, malt_vector_totals *totals, malt_edge *edges, uint32_t cap, uint32_t *n);
malt_status malt_segment_lockstep(malt_handle s, int32_t *yes);
malt_status malt_segment_close(malt_handle s);

/* ------------------------------------------------------------------ graphs */

/* A dataflow graph, by itself; malt_init is not needed. spec as after graph=.
 * MALT_EINVAL: no such graph, size out of range, or some rank cannot reach some
 * other (allow_disconnected = 0). */
malt_status malt_graph_new(const char *spec, int32_t size, int32_t allow_disconnected, malt_handle *out);

/* Ranks that rank sends to at its clock-th scatter (clock matters for one-peer
 * only), nearest to a priority first. */
malt_status malt_graph_receivers(malt_handle g, int32_t rank, uint64_t clock, int32_t *ranks, uint32_t cap, uint32_t *n);

typedef struct {
	int32_t size;
	int32_t edges;
	int32_t degree_min, degree_max;   /* receivers per rank */
	int32_t diameter;                 /* hops between the farthest two; -1: not connected */
	int32_t connected;                /* 1: every rank reaches every other */
	double second_eigenvalue;         /* modulus, of the averaging matrix: smaller mixes faster */
	double smallest_real_part;        /* below 0: averaging gradients over it drifts apart */
} malt_graph_measures;
malt_status malt_graph_measure(malt_handle g, malt_graph_measures *m);

/* format: "spec" (parses back), "text", "dot", "svg". As malt_vector_describe. */
malt_status malt_graph_render(malt_handle g, const char *format, char *text, uint64_t cap, uint64_t *need);
malt_status malt_graph_close(malt_handle g);

/* ----------------------------------------------------------- this machine */

/* What MALT knows without a job; malt_init is not needed. what:
 * "meant WORD KNOWN KNOWN ..." gives the one of the known words that WORD probably
 * means, by its spelling or because other systems call it so; "" if none.
 * "names" gives the values that the options "graph", "consistency", "fold" and
 * "transport" may have or begin with, as JSON text: an object of lists by those keys.
 * "doctor" gives what MALT finds on this machine, as JSON text. The text is an object
 * with these keys, and may get more:
 *     version, abi   of the library
 *     system         operating system, kernel release, architecture
 *     cores          {online, usable}: that this process may run on, and as many
 *                    as a control group's quota lets it use
 *     memory         {total, free, limit}: bytes of the machine, bytes that can
 *                    still be used, and what sets that limit
 *     open_files     {used, soft, hard}: descriptors
 *     kernels        how folds are computed here: "avx512", "avx2", "go"
 *     transports     list of {name, works, why}: tried just now; why not
 * As malt_vector_describe. What it finds changes from call to call, and so may
 * its length. MALT_EINVAL. */
malt_status malt_inspect(const char *what, char *text, uint64_t cap, uint64_t *need);

#ifdef __cplusplus
}
#endif
#endif
