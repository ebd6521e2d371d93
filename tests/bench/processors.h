/* Processors that a benchmark takes for its processes, and how much they, and others, ran on them. The first
 * call of any of these remembers which the process may use. */
#ifndef DM_BENCH_PROCESSORS_H
#define DM_BENCH_PROCESSORS_H

#include <glib.h>
#include <unistd.h>

/* The n-th processor that this process may use; -1: there are not so many. */
int processor(int n);
/* Seconds that programs ran on the n-th processor, whosever, and that the machine below took away. */
double processor_busy_seconds(int n);
/* The calling thread, and all that it starts, on the n-th processor that this process may use; FALSE: there
 * are not so many. */
gboolean processor_take(int n);
/* User and system time of a process, all its threads. */
double processor_seconds(pid_t process);

#endif
