/* A fatal signal that is sent to a thread inside Go ends the process, by that
 * signal, also where SIGQUIT is ignored. */
#include "check.h"

#include <signal.h>
#include <sys/syscall.h>

/* A thread of this process that is not the calling one: Go's. */
static pid_t thread_of_go(void)
{
	pid_t found = 0;
	while (found == 0) {
		struct dirent *e;
		DIR *d = opendir("/proc/self/task");
		CHECK(d != NULL);
		while ((e = readdir(d)) != NULL)
			if (atoi(e->d_name) > 0 && atoi(e->d_name) != getpid())
				found = atoi(e->d_name);
		closedir(d);
	}
	return found;
}

int main(void)
{
	CHECK(signal(SIGQUIT, SIG_IGN) != SIG_ERR);
	OK(malt_init(NULL, -1));
	CHECK(syscall(SYS_tgkill, getpid(), thread_of_go(), atoi(word("SIGNAL"))) == 0);
	for (;;)
		pause();
}
