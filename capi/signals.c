/*
 * Faults that are sent. Go's runtime handles SIGSEGV, SIGBUS and SIGFPE, since
 * its own faults become panics; it passes on those of other code, but not a
 * signal that somebody has sent, as with kill. For one that meets a thread inside
 * Go it prints all stacks, sends itself SIGQUIT for more of them, and where that
 * is ignored, as behind nohup, waits ten seconds for it: the process then ends
 * late, or by a signal that nobody has sent.
 *
 * So a signal that was sent goes past Go's handlers to what would have had it
 * without MALT; all others go to Go's.
 */
#include <signal.h>
#include <stddef.h>

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE};
enum { FATAL = sizeof fatal / sizeof *fatal };

static struct sigaction before[FATAL], of_go[FATAL];

/* Before Go's runtime, whose start is a constructor, too, but without a priority. */
__attribute__((constructor(101))) static void remember(void)
{
	for (int i = 0; i < FATAL; i++)
		sigaction(fatal[i], NULL, &before[i]);
}

static void call(const struct sigaction *a, int number, siginfo_t *info, void *context)
{
	if (a->sa_flags & SA_SIGINFO)
		a->sa_sigaction(number, info, context);
	else
		a->sa_handler(number);
}

static void handle(int number, siginfo_t *info, void *context)
{
	int i = 0;
	while (fatal[i] != number)
		i++;
	if (info->si_code > 0) { /* a fault */
		call(&of_go[i], number, info, context);
	} else if (before[i].sa_handler == SIG_DFL) {
		sigaction(number, &before[i], NULL);
		raise(number); /* blocked until this returns */
	} else if (before[i].sa_handler != SIG_IGN) {
		call(&before[i], number, info, context);
	}
}

/* After Go's runtime, which comes before the C files when the library is linked,
 * has set its handlers on this very thread. */
__attribute__((constructor)) static void route(void)
{
	for (int i = 0; i < FATAL; i++) {
		struct sigaction routed;
		sigaction(fatal[i], NULL, &of_go[i]);
		if (of_go[i].sa_handler == before[i].sa_handler)
			continue; /* not Go's */
		routed = of_go[i];
		routed.sa_sigaction = handle;
		sigaction(fatal[i], &routed, NULL);
	}
}
