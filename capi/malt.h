/*
 * malt.h: data-parallel training by one-sided updates.
 *
 * Every rank is a process that runs the same program on its own part of the
 * data. A vector is the model (or the gradient) of one rank, in memory that
 * your code reads and writes like any other array. A scatter makes its present
 * values available to the ranks that a graph names. A gather folds the updates
 * of other ranks into it. The consistency of the vector says how far ranks may
 * drift apart.
 *
 *     malt_init(NULL, -1);
 *     malt_array a = { .count = dim, .dtype = MALT_FLOAT32 };
 *     malt_handle v;
 *     malt_vector_new(&a, 1, "w", "graph=halton consistency=ssp:2", -1, &v);
 *     void *p;
 *     malt_object_data(v, 0, &p, NULL);
 *     float *w = p;
 *     for (...) {                                       // rows rank, rank + size, …
 *         step(w, ...);                                 // your code
 *         malt_vector_sync(v, 1.0, -1, NULL);           // scatter + gather (mean)
 *     }
 *     malt_vector_allreduce(v, "mean", -1);             // the same model everywhere
 *     malt_object_close(v);
 *     malt_unmap(w);
 *     malt_finalize();
 *
 * with every status checked: examples/c/regress.c is the complete program.
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
 * negative codes below. malt_errmsg() then gives the message: which value was
 * wrong, what was expected, what to do. malt_error() gives the same as data.
 * After an error, results are not stored. Each function lists its own codes.
 * In addition, every function may return MALT_EFORK (see Processes),
 * MALT_EINTERNAL (a defect of MALT: please report the message), MALT_EINVAL
 * (a result pointer is NULL, or a string is longer than 4 KiB; 64 MiB for
 * options with a graph),
 * and, if it needs the job, MALT_EINIT.
 *
 * Handles are 64-bit numbers; 0 is never valid. A closed handle, or one of
 * another kind, gets MALT_EHANDLE and never crashes. malt_object_* take those of
 * vectors and of segments. malt_finalize closes all of these.
 *
 * Memory. Memory that MALT hands out (vectors, segments, updates, received
 * bytes) does not come from malloc, and is yours for as long as the function
 * says. MALT reads your arguments before the call returns, and never afterwards.
 *
 * Timeouts are in milliseconds. 0 tries once and does not wait. A negative
 * number means the timeout of the job (MALT_TIMEOUT, else 300 s). A call that
 * runs out of time is given up and returns MALT_ETIMEOUT: its message names the
 * ranks that it waited for, and where they are. Updates that it has scattered stay
 * scattered, and after a sync malt_vector_gather folds late updates. Ranks that
 * need this rank in a collective call that it gave up get MALT_ELEFT, unless it
 * had sent its part. A program that must do something else during a wait, such as
 * handle signals, does it in a callback: malt_look_up. Another callback reports long
 * waits: malt_on_long_wait.
 *
 * Threads. Any thread may call, but an object serves one call at a time: a
 * second call gets MALT_EBUSY. The functions of the job (malt_barrier and
 * the like) count as one object. You may ask for names, ranks and clocks at
 * any time.
 *
 * Processes. The library runs its own threads from the moment it is loaded,
 * and they do not survive a fork. In a child that was forked afterwards every
 * function returns MALT_EFORK at once, except malt_rank, malt_size,
 * malt_local_rank and malt_generation, which return the parent's values, and
 * the functions under "the library". This does not concern children that only
 * exec. A rank that is killed, or ends without malt_finalize, leaves nothing
 * behind; other ranks that wait for it get MALT_EPEER, or go on (see Deaths).
 *
 * Deaths. By default the death of a rank ends the job: calls of the other ranks return
 * MALT_EPEER. With on_death=continue they go on, as long as min_ranks are left. On
 * several machines these vote; a rank without which the others go on, or that is on the
 * smaller side of a cut, gets MALT_EEXPELLED. Ranks
 * keep their numbers. The first call that notices the death repairs the graph of each
 * vector among the ranks that are left, and calls the function of malt_on_death. What
 * the dead rank had scattered is folded. A collective call counts it if all of its data
 * was there; otherwise the call is made without it. A call that needs the dead rank
 * itself returns MALT_EPEER: a broadcast from it, a scatter to it. The job still ends if
 * a rank dies before malt_init has returned on all, calls malt_abort, or ends with a
 * status other than 0 after malt_finalize_at_exit. A rank that is stopped is waited
 * for: malt_expel ends it.
 *
 * With on_death=replace, on one machine, malt_vector_sync of the vector that was synced
 * first also takes in processes with restart=. The process gets the values and the clock
 * of a rank that is left in malt_vector_new, and the results of the calls that the others made
 * before their first sync. Handles and memory stay as they are. What it
 * cannot take up is MALT_EUNSUPPORTED: segments, sparse vectors, other graphs than all,
 * async, notify-ack, and folds of changes.
 *
 * Signals. MALT handles only the signals that its runtime needs: SIGURG, and
 * SIGSEGV, SIGBUS and SIGFPE for its own faults. Other faults, and such signals
 * sent by a process, go to the handlers that were set before the library was
 * loaded. Handlers that a program sets must have SA_ONSTACK. Signals do not end
 * waits; use malt_look_up.
 *
 * Collective calls must be made by every rank, in the same order: malt_init,
 * malt_barrier, malt_allreduce, malt_broadcast, malt_allgather, making and
 * configuring vectors and segments, malt_vector_allreduce and
 * malt_vector_broadcast. Each rank makes all other calls independently. Gathers
 * and syncs do not wait for a rank that is inside a collective call or has left
 * the job, so ranks may make different numbers of them.
 *
 * Options are one string of key=value pairs, separated by blanks. The same
 * grammar is used in Python, on the command line and in the environment. An
 * unknown key or value gets MALT_EINVAL, and the message names the nearest one.
 *
 *     graph=        all  ring  chord  halton  halton-paper  random:K[:SEED]
 *                   hypercube  star  one-peer  butterfly[:AxB]  shards[:K[/D]]
 *                   butterfly:50MB/0.21 (the rows of a rank, and their share of all ids)
 *                   lists:1,2/2/0 (the receivers of rank 0, of rank 1, …)  [all]
 *     allow_disconnected=   false
 *                   true: accept a graph in which a rank cannot reach
 *                   another                                              [false]
 *     consistency=  bsp  async  ssp:SLACK  notify-ack[:DEPTH]              [bsp]
 *     fold=         mean  mean-received  sum  min  max  replace
 *                   sum-changes  mean-changes; see "Changes"              [mean]
 *     uneven=       ok: a gather continues without a rank that is in a
 *                   collective call, has closed the vector or has ended
 *                   error: it fails with MALT_ELEFT; for gradients. Without
 *                   effect in async, which waits for no rank                [ok]
 *     start=        same: every rank starts with rank 0's values
 *                   own: each rank keeps the values of init               [same]
 *     sparse=       false: a scatter sends the whole vector
 *                   model, gradient: it sends some rows; see "Sparse
 *                   vectors"                                             [false]
 *     filter=       dvf:D  dvf:D:U  dvf-l2:D  top:P%: with sparse=model, rows
 *                   that have changed little are held back        [none is held back]
 *     wire=         exact  bf16  f16  int8: between hosts, floats travel in so
 *                   many bits, and what that loses with the next sync; with
 *                   graph=all, consistency=bsp, fold=mean or sum         [exact]
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
	MALT_EINIT = -2,        /* malt_init is missing, or was called twice */
	MALT_EHANDLE = -3,      /* no such handle: null, closed, or another kind */
	MALT_EBUSY = -4,        /* the object is in a call of another thread, in a fold, or in a call that timed out */
	MALT_ETIMEOUT = -5,     /* the time is up; the call is given up */
	MALT_EPEER = -6,        /* a rank that the call needs is dead */
	MALT_ELEFT = -7,        /* a rank that the call needs has left the job, or gave the call up */
	MALT_EMISMATCH = -8,    /* the ranks disagree about a vector, or about which collective call this is */
	MALT_ENOMEM = -9,       /* lack of memory, here or on another rank of a collective call */
	MALT_EUNSUPPORTED = -10,/* not with this transport, graph or consistency */
	MALT_ESTATE = -11,      /* not now: such as too many scatters without a gather */
	MALT_EFORK = -12,       /* this process is a forked child of a rank */
	MALT_ECANCELLED = -13,  /* malt_finalize has ended malt_init */
	MALT_EIO = -14,         /* the system refused a request; the message names it */
	MALT_EINTERNAL = -15,   /* a defect of MALT */
	MALT_EEXPELLED = -16    /* the others have gone on without this rank, or it is on the smaller side of a cut: final */
};

/* Element types. */
enum { MALT_FLOAT32 = 1, MALT_FLOAT64 = 2 };

/* ------------------------------------------------------------- the library */

/* The ABI of the loaded library; compare with MALT_ABI_VERSION. */
int32_t malt_abi_version(void);

/* The version, such as "0.1.0". Static memory. */
const char *malt_version(void);

/* The message of this thread's last failed call; "" if none has failed. Valid
 * until the next call of this thread. */
const char *malt_errmsg(void);

/* How a rank died. */
enum {
	MALT_DEATH_ENDED = 1,       /* its process ended without malt_finalize or malt_abort */
	MALT_DEATH_FAILED = 2,      /* it reported a failure: by malt_abort, or because it could not join */
	MALT_DEATH_UNREACHABLE = 3  /* its host does not answer */
};

/* An error as data. */
typedef struct {
	uint64_t size;       /* set it to sizeof(malt_error_info); then: the number of bytes filled in */
	malt_status code;
	int32_t rank;        /* MALT_EPEER: the rank that died first, perhaps the cause of other deaths; else -1 */
	int32_t death;       /* MALT_EPEER: how it died, MALT_DEATH_…; else 0 */
	const char *message; /* malt_errmsg(): the lines of what, where, advice and topic */
	const char *call;    /* the failed call as a Python program writes it, such as "malt.barrier" or "w.sync" */
	const char *what;    /* what happened */
	const char *where;   /* where, and which ranks; may have several lines */
	const char *advice;  /* what to do; may have several lines */
	const char *topic;   /* the section of the guide: malt explain TOPIC */
	const char *why;     /* MALT_EPEER: the evidence of the death, or the rank's own reason; else "" */
} malt_error_info;

/* Gives this thread's last failed call as data. Decide by these fields, never by
 * the message. A missing text is "". The code is MALT_OK if no call has failed.
 * Texts are valid until the next call of this thread. Later versions may append
 * fields. */
void malt_error(malt_error_info *info);

/* Sets a callback: every thread that sleeps in a call of MALT calls look every 50 ms,
 * and after each signal handler that ran in the thread. NULL removes it; after
 * malt_look_up(NULL) has returned, no thread is in look. If look returns a value
 * other than 0, the call ends as if its time were up. look may call MALT, except
 * malt_look_up(NULL); calls on the object that the thread waits for get
 * MALT_EBUSY. */
typedef int32_t (*malt_look)(void);
void malt_look_up(malt_look look);

/* Makes a thread call report once, when it has waited for after_ms in a call that may
 * take longer. NULL ends this. In report, malt_error gives what the call would
 * return if its time were up; otherwise the rules for look apply. waited_ms is how
 * long the call has waited, left_ms how long it still may. */
typedef int32_t (*malt_report)(int64_t waited_ms, int64_t left_ms);
void malt_on_long_wait(int64_t after_ms, malt_report report);

/* ----------------------------------------------------------------- the job */

/* Joins the job. With options NULL, everything comes from the environment, as
 * malt run sets it. These keys override the environment:
 *     rank=  size=  store=  token=  timeout= (seconds)
 *     store_fd=   for rank 0: descriptors, separated by commas, of TCP sockets that
 *                 listen at the store; the library takes them over
 *     interface=  where other hosts can reach this rank: names and patterns of
 *                 interfaces, addresses, networks ("ib0,eth*,10.1.0.0/16"); with ^
 *                 in front, all others. By default MALT finds out.
 *     unreachable= seconds without an answer after which the ranks of another host
 *                 count as dead: 2 or more, by default 5; until all ranks have met,
 *                 at least 5. With on_death=continue 0.2 or more, by default 0.5
 *     together=   the first and the last of the ranks that this rank's launcher
 *                 starts ("4-7"); ranks of launchers that overlap in another way
 *                 do not meet
 *     congestion= the congestion control of connections with other hosts, by the
 *                 kernel's name ("cubic"); by default that of the system
 *     fabric=     by which provider of libfabric updates go to other hosts (RDMA); auto:
 *                 InfiniBand or RoCE, if there is a device; off                 [off]
 *     libfabric=  the file of that library                         [libfabric.so.1]
 *     encrypt=    1: encrypt connections between hosts; 0: do not. By default MALT
 *                 encrypts where an address is not private, loopback or link-local
 *     on_death=   stop: a rank's death ends the job; continue: the others go on;
 *                 replace: and a new process takes its place, on one machine. The
 *                 same on all ranks; on several machines these vote         [stop]
 *     min_ranks=  with fewer ranks the job ends all the same                   [1]
 *     restart=    of a process in the place of a dead rank: how many such processes
 *                 there were, from 1                                           [0]
 *     witnesses=  the number of processes in malt_witness, which vote           [0]
 *     events=     how many events each rank keeps for `malt top --events`       [0]
 *     record=     a folder: each rank notes what its gathers fold in async and ssp
 *     replay=     such a folder: each gather folds what it has folded there; a scatter
 *                 waits until its last update has been read
 *     transport=  auto  shm  tcp  inmem
 * If neither options nor the environment has any of these, the job is this process
 * alone: rank 0 of 1.
 * Afterwards MALT_RANK and MALT_SIZE in the environment of this process are those
 * of a job of one, and MALT_STORE, MALT_STORE_FD, MALT_TOKEN, MALT_TOGETHER, MALT_RESTART
 * and MALT_WITNESSES are removed, so that programs that this process starts do not join as ranks.
 * (This calls setenv, so no other thread should read the environment meanwhile.)
 * If timeout_ms or the timeout of the job runs out, the message names the ranks that
 * have not arrived.
 * MALT_EINVAL, MALT_EINIT (joined already), MALT_ETIMEOUT, MALT_ECANCELLED,
 * MALT_EBUSY (another thread is in it), MALT_EPEER, MALT_EIO, MALT_ESTATE if another live
 * process is this rank, and with restart= MALT_ELEFT if the job has ended. */
malt_status malt_init(const char *options, int64_t timeout_ms);

/* Votes for a host without ranks on who goes on after a death, and does nothing else: in a
 * process of its own, whose rank= is size= or, with more witnesses than one, above that.
 * The options are those of malt_init; on_death=continue and witnesses= are the same in
 * all processes of the job. Returns when no rank is left. The codes of malt_init, and
 * MALT_EEXPELLED if the others have gone on without this host. */
malt_status malt_witness(const char *options);

/* Leaves the job: closes everything that is open, and tells the other ranks, which
 * no longer wait for this one. Memory from malt_object_data stays valid until
 * malt_unmap. Not collective. MALT_OK even if malt_init was never called.
 * After a failure, this is malt_abort with that reason: if a call has returned
 * MALT_EPEER, or MALT_ETIMEOUT and no later call that waits on the same object has
 * succeeded.
 * Where changes of other ranks travel through this one (graph=butterfly or shards), it waits
 * until these have closed the vector, at most the timeout of the job.
 * MALT_EBUSY: another thread is in a call, or a fold is open; nothing is closed. */
malt_status malt_finalize(void);

/* When the process ends, tells the other ranks how it ended: exit(0), or a
 * return of 0 from main, calls malt_finalize; any other status calls malt_abort.
 * Waits of other threads end. If a process ends in any other way, or without both
 * this call and malt_finalize, it counts as dead. MALT_ENOMEM. */
malt_status malt_finalize_at_exit(void);

/* Declares this rank dead: waits of other ranks for it fail at once with MALT_EPEER
 * and this reason. For a rank that is about to end after an error. because: that
 * error, from malt_error, or NULL. If its code is MALT_EPEER, the other ranks get
 * the death of the rank that it names instead of this one's. */
malt_status malt_abort(const char *reason, const malt_error_info *because);

/* This rank's number, the number of ranks, and more. MALT_EINIT before malt_init
 * and after malt_finalize. These calls take a few nanoseconds. */
int32_t malt_rank(void);
int32_t malt_size(void);
int32_t malt_local_rank(void); /* number among the ranks of this machine */
/* The membership number: 1, and one more each time the set of ranks changes. */
int64_t malt_generation(void);

/* The ranks that take part, ascending: all, unless on_death=continue and some have died.
 * Stores at most cap of them, and their number in n. They change in calls alone, and
 * with them malt_generation. The first of them does what one rank is to do, such as saving. */
malt_status malt_alive(int32_t *ranks, uint32_t cap, uint32_t *n);

/* Returns when this rank is known to take part still: before results are written, where
 * the others may have gone on without it. Where ranks are on several hosts it asks them.
 * The codes of malt_barrier. */
malt_status malt_confirm(int64_t timeout_ms);

/* Kills the process of a rank that hangs (SIGKILL). Nothing does so by itself: a rank
 * that is stopped or slow is waited for. The next call without it notices, as of any
 * death. Only on the machine of the rank.
 * MALT_EINVAL (no other rank), MALT_EUNSUPPORTED, MALT_EIO. */
malt_status malt_expel(int32_t rank);

/* Sets a callback: with on_death=continue the call that notices a death calls news, once
 * for each rank; why is the evidence. NULL removes it. The rules for malt_look_up apply. */
typedef void (*malt_news)(int32_t rank, const char *why);
void malt_on_death(malt_news news);

/* Something about the values of a vector that its user should look at. */
#define MALT_NOT_FINITE 1 /* a fold has brought NaN or infinity from that rank, perhaps this one */
#define MALT_SLOW 2       /* in async: that rank scatters less than half as often as this one */
#define MALT_TAPE_FULL 3  /* MALT_RECORD: this rank records no more: 64 MB, or its disk is full */
#define MALT_TAPE_ENDS 4  /* MALT_REPLAY: the recorded run ends here; gathers fold what has come */
#define MALT_MEMLOCK 5    /* this rank may lock too little memory for RDMA, and goes without */
#define MALT_NO_RDMA 6    /* RDMA with that rank has failed, and updates go by TCP */
typedef struct malt_trouble {
	int32_t kind, rank;
	const char *name;     /* of the vector; it is valid during the call */
	uint64_t own, theirs; /* MALT_SLOW: scatters of this rank and of the other, */
	double seconds;       /* within that time, 30 seconds or more */
	uint64_t limit, need; /* MALT_MEMLOCK: bytes that this rank may lock, and would have to */
	const char *why;      /* MALT_NO_RDMA, MALT_TAPE_FULL; it is valid during the call */
} malt_trouble;

/* Sets a callback: the call that finds a trouble calls troubled, once for each vector, kind
 * and rank. NULL removes it. The rules for malt_look_up apply. NaN is found in folds of
 * vectors that are not sparse, by functions of MALT, of two arrays or more. */
typedef void (*malt_troubled)(const malt_trouble *trouble);
void malt_on_trouble(malt_troubled troubled);

/* One array. */
typedef struct {
	uint64_t count;    /* elements; 0 is allowed */
	int32_t dtype;     /* MALT_FLOAT32 or MALT_FLOAT64 */
	int32_t row;       /* sparse vectors, and ids: elements of a row, 0 means 1; otherwise 0 */
	const void *init;  /* initial values, copied; NULL: zeros */
	const uint64_t *shape; /* lengths of the axes, whose product is count; NULL: one axis */
	uint64_t axes;     /* number of axes; 64 at most */
	const uint64_t *ids;   /* one for each row; see "Rows with ids". NULL: all ranks have the same rows */
	const uint64_t *wants; /* ids of the rows that a sync brings; NULL: those of the array */
	uint64_t nwants;       /* their number */
} malt_array;

/* Waits until every rank is in its barrier. Updates scattered before it can be
 * gathered after it. In notify-ack, gather before the barrier: a rank in a
 * collective call does not hold up its senders, which may reuse its queues.
 * MALT_ETIMEOUT, MALT_EPEER, MALT_ELEFT, MALT_EMISMATCH, MALT_EBUSY. */
malt_status malt_barrier(int64_t timeout_ms);

/* Combines count elements of dtype over all ranks, in place, in rank order, to
 * the same bits on every rank. op: mean, sum, min, max.
 * MALT_EINVAL and the codes of malt_barrier; data is unchanged on an error. */
malt_status malt_allreduce(void *data, uint64_t count, int32_t dtype, const char *op, int64_t timeout_ms);

/* The same for an array. The ranks must agree on its shape, too. Ignores row and
 * init. */
malt_status malt_allreduce_array(void *data, const malt_array *a, const char *op, int64_t timeout_ms);

/* Gives every rank the bytes of every rank, which may differ in length. Fetch them,
 * your own included, with malt_received; ranks that have died have sent nothing (see
 * malt_alive). call and with are for a call that is built on this one: its name for
 * messages, such as "sum_of_squares", and its arguments, on which the ranks must agree.
 * Both may be NULL. MALT_ENOMEM and the codes of malt_barrier. */
malt_status malt_allgather(const void *data, uint64_t bytes, const char *call, const char *with, int64_t timeout_ms);

/* Gives every rank the bytes of root; the other ranks' data and bytes are ignored.
 * Fetch them with malt_received(root, …), at root too. MALT_EINVAL, MALT_ENOMEM and
 * the codes of malt_barrier; MALT_EPEER where root has died before all had its bytes. */
malt_status malt_broadcast(const void *data, uint64_t bytes, int32_t root, int64_t timeout_ms);

/* Tells the other ranks this rank's place in its program, such as a file and a line,
 * for their messages about waits and disagreements. It holds until the next malt_at.
 * place is cut to 160 bytes; NULL or "" removes it. */
malt_status malt_at(const char *place);

/* Show a text, such as "epoch 3", and a value, to people who watch this rank with
 * `malt top`. Both are also events, of which the last events= are kept. The text is cut to 88 bytes. `malt top` has a
 * column for the value named "loss". Neither is sent to other ranks. */
malt_status malt_mark(const char *text);
malt_status malt_log(const char *name, double value);

/* The bytes that the last malt_allgather or malt_broadcast received from rank. Valid
 * until the next such call succeeds, or malt_finalize. MALT_EINVAL, MALT_ESTATE (no
 * bytes received, or none from that rank). */
malt_status malt_received(int32_t rank, const void **data, uint64_t *bytes);

/* ----------------------------------------------------------------- vectors */

/* Makes a vector of n arrays that are sent as one. Collective: all ranks must
 * agree on the arrays' shapes and types, the name, and all options except fold.
 * name: letters, digits and ._-/ ; NULL or "" numbers the vector. options: those
 * above.
 * The arrays lie one after the other in one block of memory, each aligned to
 * its element size; without gaps if all have one type.
 * MALT_EINVAL, MALT_ENOMEM, MALT_EMISMATCH, the codes of malt_barrier, and MALT_EIO
 * where the process has closed descriptors that the library uses. */
malt_status malt_vector_new(const malt_array *arrays, uint32_t n, const char *name, const char *options,
                            int64_t timeout_ms, malt_handle *out);

/* Checks a name and options before there are arrays: MALT_EINVAL if
 * malt_vector_new would refuse them. Not collective. */
malt_status malt_vector_check(const char *name, const char *options);

/* The memory of array i (a segment has one), yours to read and write at any time
 * except during a gather, sync, allreduce or broadcast of it in another thread. It
 * stays valid until malt_unmap, even after malt_object_close and malt_finalize.
 * If the vector was made with graph=all and consistency=bsp, other ranks write into
 * it during a sync or an allreduce. A forked child sees the values at the fork, or
 * later values of its parent until it writes there; its own writes stay private.
 * MALT_EHANDLE, MALT_EINVAL. */
malt_status malt_object_data(malt_handle o, uint32_t i, void **data, uint64_t *bytes);

/* Frees the memory of a closed vector or segment; data is the result of
 * malt_object_data for array 0. NULL is allowed.
 * MALT_EINVAL (not such memory), MALT_EBUSY (not closed yet). */
malt_status malt_unmap(void *data);

/* Sends the present values. The clock of the vector, the number of its
 * scatters, goes up by one. to: nto ranks among the receivers; NULL means all.
 * weight: the weight of the values in a mean. *sent: payload bytes times
 * receivers; may be NULL. Only notify-ack waits, until receivers have folded an
 * earlier update.
 * MALT_EHANDLE, MALT_EINVAL, MALT_ENOMEM, MALT_EBUSY, MALT_ESTATE (in bsp a second scatter, in
 * notify-ack:d one after d, without a gather), MALT_ETIMEOUT and MALT_EPEER
 * (notify-ack). */
malt_status malt_vector_scatter(malt_handle v, const int32_t *to, uint32_t nto, double weight, int64_t timeout_ms,
                                uint64_t *sent);

/* Folds updates into the vector, as its consistency says, with one of the folds
 * above; NULL or "" means the vector's fold. *folded: the number of updates; may be
 * NULL.
 * MALT_EHANDLE, MALT_EINVAL, MALT_EBUSY, MALT_ESTATE (bsp: nothing was scattered
 * since the last gather), MALT_ETIMEOUT, MALT_EPEER. */
malt_status malt_vector_gather(malt_handle v, const char *fold, int64_t timeout_ms, uint32_t *folded);

/* Waits, in ssp and async, until an update has come that no gather has folded, and leaves it to
 * the next gather. The wait also ends when no update can come, because all senders have ended, have
 * closed the object or are in a collective call, and after timeout_ms: that is not an error. In a
 * replay it does not wait: the gather does.
 * MALT_EHANDLE, MALT_EBUSY, MALT_EUNSUPPORTED (bsp and notify-ack, where gathers wait for what they
 * fold; vectors with ids, or with changes on butterfly or shards), MALT_EPEER, MALT_ETIMEOUT (a
 * callback has ended the wait). */
malt_status malt_object_await(malt_handle o, int64_t timeout_ms);

/* malt_vector_scatter to all, then malt_vector_gather with the vector's fold. It
 * returns their codes. After MALT_ETIMEOUT, continue with malt_vector_gather.
 *
 * With graph=all, consistency=bsp and the folds mean, sum, min and max, each rank
 * computes a part of the result in the arrays of all ranks. This gives the same
 * bits as the two calls and moves fewer bytes. So until this call has returned 0,
 * other ranks read and write the array. Do not touch it, and after MALT_ETIMEOUT not
 * before malt_vector_gather has returned 0. A thread or forked child that reads it
 * meanwhile sees old and new parts mixed; a thread's writes may be folded or lost.
 * After MALT_EPEER the array may hold parts of the result. */
malt_status malt_vector_sync(malt_handle v, double weight, int64_t timeout_ms, uint32_t *folded);

/* The same, with slack instead of that of ssp:SLACK, or in async with that bound; of any
 * fold. MALT_EINVAL if slack is more than 65536, MALT_EUNSUPPORTED in bsp and notify-ack. */
malt_status malt_vector_sync_slack(malt_handle v, uint64_t slack, double weight, int64_t timeout_ms, uint32_t *folded);

/* Changes. With fold=sum-changes and fold=mean-changes, with graph=all in bsp, ssp and
 * async, or butterfly or shards in ssp and async, ranks add up what they have changed: after
 * a sync, a vector is the start values plus the changes of all ranks that have arrived,
 * each times the weight of its sync. mean-changes also divides each by the number of
 * ranks that the job began with: a model's loop takes it at the learning rate of mean.
 * With sum-changes the steps of N ranks add up.
 *
 * On all and butterfly each rank sends the total of its changes, so nothing is lost if an
 * update is overwritten. On shards:K each of the first K ranks, and on shards each rank, keeps
 * the sum of one part, to which the others push what they have changed. Own changes are all in; of each other rank, in ssp:S all but
 * those of its last S syncs, or what it had changed before a collective call that it is in. malt_vector_allreduce with the vector's fold makes all
 * ranks the start values plus all changes, sent or not. After it, as after any
 * malt_vector_allreduce and malt_vector_broadcast, changes count from the new values on.
 * malt_object_configure loses none. *folded: from how many other ranks new changes have
 * come. A rank that is alone keeps its values.
 *
 * On shards, sparse=model pushes only the rows that have changed, and publishes the rows that a reader
 * lacks; filter= holds some of both back. malt_vector_allreduce brings what is held back, too.
 *
 * All ranks must agree on such a fold. There is no other fold for one gather, no
 * function, no row and no receiver to choose. On butterfly and shards malt_object_configure
 * returns MALT_EUNSUPPORTED. With on_death=continue malt_vector_new does, except on all and, on
 * one machine, on shards:K where some ranks keep no part and none passes one on. Changes that a
 * dead rank had sent count, the same on all others; changes that it had not sent do not. If a rank
 * dies that keeps a part, the next call that needs it returns MALT_EPEER. */

/* The age of a vector of changes: how many clocks of the rank that was farthest behind the last
 * gather lacked; 0 … S in ssp:S. A rank that is away does not count once all its changes have
 * come. 0 with other folds. */
malt_status malt_vector_age(malt_handle v, uint64_t *age);

/* Rows with ids. Each rank of a vector of one array can hold other rows: malt_array.ids
 * has a 64-bit number for each, and may repeat. malt_vector_sync is then a collective call that
 * combines the rows with equal ids of all ranks: their sum, mean, min or max, in the same order on
 * all ranks. Without wants the result goes into the array. With wants the array stays as it is,
 * and the rows with these ids are copied to where malt_vector_wanted says; a row that no rank
 * holds is 0. Only these rows travel. graph=all takes one step; butterfly takes several, of fewer
 * messages. Counts, ids and values differ between ranks; the length of a row, the element type, graph
 * and fold do not. init counts on every rank.
 *
 * The consistency is bsp, and a weight is 1. There is no scatter, no gather, no allreduce, no
 * broadcast and no malt_object_configure, and no on_death=continue. A sync that times out or fails
 * is given up: the other ranks get MALT_ELEFT, and nothing has changed. */

/* Where the wanted rows are, in the order of wants, and for each a byte: 1 if no rank holds it. Both
 * are valid as long as the array. Without wants: the array itself, and NULL. n may be NULL.
 * MALT_EHANDLE, MALT_EINVAL (v has no ids). */
malt_status malt_vector_wanted(malt_handle v, void **rows, const uint8_t **missing, uint64_t *n);

/* Gives v other rows: n of them with these ids, all 0, in new memory (malt_object_data), and other wants,
 * or none (NULL). Free the old memory with malt_unmap. Collective. The codes of malt_vector_new;
 * after an error the vector is unchanged. */
malt_status malt_vector_configure_rows(malt_handle v, const uint64_t *ids, uint64_t n, const uint64_t *wants,
                                       uint64_t nwants, int64_t timeout_ms);

/* One received update, read-only. */
typedef struct {
	const void *data;   /* in the layout of the vector; valid until gather_end */
	uint64_t bytes;
	int32_t rank;       /* the sender */
	int32_t reserved;
	uint64_t clock;     /* the sender's clock when it sent this */
	int64_t age;        /* this rank's clock minus that; negative: the sender is ahead */
	double weight;
} malt_update;

/* Your own fold. begin waits as malt_vector_gather does, and gives the number of
 * updates. update describes one; they are in the order of ranks. end says whether
 * you have folded them into the vector (folded = 1) or not (0: the next gather gets
 * them again). Every begin that returns MALT_OK needs its end, even if *n is 0; in
 * between, other calls on the vector return MALT_EBUSY.
 * begin: as malt_vector_gather; update: MALT_EINVAL, MALT_ESTATE (no begin); end:
 * MALT_ESTATE, MALT_EBUSY (during a malt_vector_gather_with). */
malt_status malt_object_gather_begin(malt_handle o, int64_t timeout_ms, uint32_t *n);
malt_status malt_object_gather_update(malt_handle o, uint32_t i, malt_update *u);
malt_status malt_object_gather_end(malt_handle o, int32_t folded);

/* The same with a function, called once in this thread if there are updates. own is
 * the vector's memory, and bytes its length. If the function fails, it must undo its
 * changes and return a value other than 0: the next gather gets the updates again,
 * and this call returns MALT_ESTATE. */
typedef int32_t (*malt_fold)(void *own, uint64_t bytes, const malt_update *updates, uint32_t n, void *user);
malt_status malt_vector_gather_with(malt_handle v, malt_fold fold, void *user, int64_t timeout_ms, uint32_t *folded);

/* Sparse vectors. A vector of one array can be sparse: it sends only some of its
 * rows, of malt_array.row elements each. sparse= says which rows, and how a
 * receiver treats a missing one.
 *
 * sparse=model sends a row if its values differ, bit by bit, from the values that
 * this rank sent last (or started with), whether the loop or a fold has changed them. So
 * changes are passed on along the graph. A fold combines, row by row, the rank's
 * own values with those of the updates that contain the row; a row that no update
 * contains keeps its values. Each receiver gets each value of a row once: if an
 * update is overwritten, the next one also has the rows that receivers have not
 * folded. In notify-ack, gather before a barrier: a barrier counts updates as seen,
 * and their rows are not sent again until they change.
 *
 * filter= holds back rows of sparse=model that have changed little, until they have changed more. At
 * the sender's clock t, dvf:D sends a row of which an element is more than D/sqrt(t) away from what was
 * sent last. dvf:D:U takes U instead of D while a receiver has not folded the last update that was meant
 * for it. dvf-l2:D holds back the smallest changes, whose squares add up to at most D*D*d/t in a vector
 * of d elements: of all ways to hold back so much it sends the fewest rows. top:P% sends the P % of the
 * rows that are farthest away. A row with NaN is always sent, and so are rows that you name. D = 0 and
 * top:100% hold nothing back. malt_vector_allreduce sends what is held back.
 *
 * sparse=gradient sends the rows that are not zero. A missing row counts as zero, so
 * a fold has the same result as with whole vectors. If so many rows are not zero
 * that the whole vector is cheaper, it is sent.
 *
 * malt_vector_scatter and malt_vector_sync look at all rows. The two calls below
 * send the rows that you name, changed or not, in any order, repeats allowed; with
 * rows NULL and nrows 0 they look at all rows. Other changed rows, such as those
 * changed by a fold, wait for a call that looks at all rows or names them. With
 * graph=all, each rank gets each change directly, so naming rows is enough.
 * The same codes, and MALT_EINVAL if a row does not exist or v is not sparse. */
malt_status malt_vector_scatter_rows(malt_handle v, const int64_t *rows, uint64_t nrows, const int32_t *to, uint32_t nto,
                                     double weight, int64_t timeout_ms, uint64_t *sent);
malt_status malt_vector_sync_rows(malt_handle v, const int64_t *rows, uint64_t nrows, double weight, int64_t timeout_ms,
                                  uint32_t *folded);

/* Your own fold over a sparse vector. malt_object_gather_update and
 * malt_vector_gather_with show each update in the layout of the vector, and fill
 * missing rows with the vector's own values (model) or zeros (gradient). This call
 * shows only the rows that were sent: between begin and end, it copies at most cap
 * rows of update i, ascending, and their values; *n is the number of rows. u gets
 * the other fields (data is NULL). u and n may be NULL.
 * MALT_EHANDLE, MALT_EINVAL, MALT_ESTATE (no begin). */
malt_status malt_vector_gather_rows(malt_handle v, uint32_t i, malt_update *u, uint32_t *rows, void *values,
                                    uint64_t cap, uint64_t *n);

/* Makes the vector equal on all ranks, in place, whatever graph and consistency.
 * Unseen updates count as seen, and all clocks become the largest. Collective.
 * op: mean, sum, min, max, or the fold of a vector of changes. After an error, parts of
 * the values may already be combined. MALT_EHANDLE and the codes of malt_allreduce.
 *
 * With the fold of changes, the changes that this rank has not sent are multiplied by weight; if it is negative, and
 * in malt_vector_allreduce, by that of its last scatter or sync, or by 1 if there was none. */
malt_status malt_vector_allreduce(malt_handle v, const char *op, int64_t timeout_ms);
malt_status malt_vector_allreduce_weight(malt_handle v, const char *op, double weight, int64_t timeout_ms);
malt_status malt_vector_broadcast(malt_handle v, int32_t root, int64_t timeout_ms);

/* Changes graph, consistency or fold; options that are not named stay the same.
 * Collective; unseen updates count as seen.
 * Codes as malt_vector_new; after an error the vector is unchanged. */
malt_status malt_object_configure(malt_handle o, const char *options, int64_t timeout_ms);

/* The number of scatters of this vector; collective calls make it equal on all
 * ranks. */
malt_status malt_object_clock(malt_handle o, uint64_t *clock);

/* name= and the present options, in the grammar above; start, sparse, filter and
 * wire only if they are not the default. Copies at most cap bytes with a final 0; *need is
 * the size of the whole text. */
malt_status malt_object_describe(malt_handle o, char *text, uint64_t cap, uint64_t *need);

/* Stores 1 if each gather folds the updates of the same step as this rank's last
 * scatter, as in bsp, else 0. */
malt_status malt_object_lockstep(malt_handle o, int32_t *yes);

/* The receivers of this rank (at the next scatter) and its senders, in the graph's
 * order. Copies at most cap; *n is their number. */
malt_status malt_object_receivers(malt_handle o, int32_t *ranks, uint32_t cap, uint32_t *n);
malt_status malt_object_senders(malt_handle o, int32_t *ranks, uint32_t cap, uint32_t *n);

/* Why updates to a rank go by RDMA, or not; 0: it shares memory with this one. */
#define MALT_RDMA_ON 1
#define MALT_RDMA_NONE 2       /* none did yet, or that rank goes without */
#define MALT_RDMA_OFF 3        /* MALT_FABRIC */
#define MALT_RDMA_NO_DEVICE 4
#define MALT_RDMA_NO_LIBRARY 5
#define MALT_RDMA_MEMLOCK 6    /* this process may lock too little memory */
#define MALT_RDMA_ENCRYPTED 7  /* the connection is encrypted */
#define MALT_RDMA_FAILED 8     /* the device cannot be used, a write has failed, or the connection was lost once */

/* Counts of one edge to or from rank, since the vector was made. */
typedef struct {
	int32_t rank;
	int32_t rdma;                               /* MALT_RDMA_… */
	uint64_t sent_messages, sent_bytes;         /* to rank */
	uint64_t folded_messages, folded_bytes;     /* from rank */
	uint64_t overwritten;   /* async and ssp: messages from rank that are never folded: newer ones replaced them, they
	                         * were too old, a collective call counted them as seen, or the vector was closed */
	int64_t age_sum;        /* of folded messages; mean age = age_sum / folded_messages */
	int64_t age_max;
	double waited;          /* seconds in which this rank waited for rank: its share where the wait was for several */
	uint64_t rdma_bytes;    /* payload of all vectors that RDMA has put into rank's memory */
} malt_edge;

typedef struct {
	uint64_t scatters, gathers;
	double scatter_seconds, wait_seconds, fold_seconds;
} malt_totals;

/* edges: the present neighbours and those of former graphs, by rank. Fills at most
 * cap of them; *n is their number. totals, edges (with cap 0) and n may be NULL.
 * MALT_EHANDLE, MALT_EBUSY. */
malt_status malt_object_stats(malt_handle o, malt_totals *totals, malt_edge *edges, uint32_t cap, uint32_t *n);

/* The same of the collective calls of the job, of which only waits are counted. MALT_EBUSY. */
malt_status malt_job_stats(malt_totals *totals, malt_edge *edges, uint32_t cap, uint32_t *n);

/* Closes the vector: other ranks no longer wait for this one in it. Its memory
 * stays until malt_unmap. On several hosts with on_death=continue, what came from others in
 * bsp stays until the next collective call. Not collective. MALT_EHANDLE, MALT_EBUSY. */
malt_status malt_object_close(malt_handle o);

/* ---------------------------------------------------------------- segments */

/* A segment holds opaque bytes instead of numbers. It has the options graph,
 * allow_disconnected and consistency of a vector, and no fold: gather with
 * malt_object_gather_begin. All ranks must agree on bytes, the most that one scatter
 * can send. */
malt_status malt_segment_new(uint64_t bytes, const char *name, const char *options, int64_t timeout_ms, malt_handle *out);
/* Sends the first n bytes. */
malt_status malt_segment_scatter(malt_handle s, uint64_t n, const int32_t *to, uint32_t nto, int64_t timeout_ms,
                                 uint64_t *sent);

/* ------------------------------------------------------------------ graphs */

/* A graph without a vector; needs no malt_init. spec: a value of graph=.
 * MALT_EINVAL: no such graph, size out of range, or, with allow_disconnected = 0, a
 * rank cannot reach another. */
malt_status malt_graph_new(const char *spec, int32_t size, int32_t allow_disconnected, malt_handle *out);

/* The receivers of rank at its clock-th scatter (clock matters for one-peer only), the
 * most useful first. */
malt_status malt_graph_receivers(malt_handle g, int32_t rank, uint64_t clock, int32_t *ranks, uint32_t cap, uint32_t *n);

typedef struct {
	int32_t size;
	int32_t edges;
	int32_t degree_min, degree_max;   /* receivers per rank */
	int32_t diameter;                 /* hops between the farthest two; -1: not connected */
	int32_t connected;                /* 1: every rank reaches every other */
	double second_eigenvalue;         /* modulus, of the averaging matrix: smaller mixes faster */
	double smallest_real_part;        /* below 0: ranks that average gradients over this graph drift apart */
} malt_graph_measures;
malt_status malt_graph_measure(malt_handle g, malt_graph_measures *m);

/* format: "spec" (malt_graph_new reads it), "text", "dot", "svg". As
 * malt_object_describe. */
malt_status malt_graph_render(malt_handle g, const char *format, char *text, uint64_t cap, uint64_t *need);
malt_status malt_graph_close(malt_handle g);

/* ----------------------------------------------------------- this machine */

/* Answers questions that need no job and no malt_init. what is one of:
 * "meant WORD KNOWN KNOWN ...": the known word that WORD probably means, by its
 * spelling or because other systems use it; "" if none.
 * "names": the values, or their first words, of the options "graph", "consistency",
 * "fold" and "transport", as a JSON object of lists by those keys.
 * "shares BYTES RANKS RANKS ...": "true" where hosts of so many ranks each, on the graph
 * "all" in "bsp", average so many bytes in shares, each summed by its owner; "false"
 * where each rank sends all of them to each other rank.
 * "doctor": the facts about this machine, as a JSON object. Later versions may add
 * keys to these:
 *     version, abi   of the library
 *     system         operating system, kernel release, architecture
 *     cores          {online, usable}: cores that this process may run on, and how
 *                    many of them the quota of its control group lets it use
 *     memory         {total, free, limit}: bytes of the machine, bytes that are
 *                    available, and the name of the limit that sets them
 *     open_files     {used, soft, hard}: descriptors
 *     kernels        the code that folds here: "avx512", "avx2", "go"
 *     transports     list of {name, works, why}: tested by this call; why: the reason
 *                    if it does not work
 *     fabric         {state, wanted, provider, device, library, hardware, why}: what MALT_FABRIC
 *                    (wanted) finds here for RDMA, which this call has write to itself.
 *                    state: "works", "off", "no device", "no library", "memlock", "failed"; why: the reason
 * As malt_object_describe. The text, and its length, may change from call to call.
 * MALT_EINVAL. */
malt_status malt_inspect(const char *what, char *text, uint64_t cap, uint64_t *need);

#ifdef __cplusplus
}
#endif
#endif
