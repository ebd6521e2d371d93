/* SIGTERM and SIGINT while a process is busy for long outside of its loop: it opens memory, devices and files
 * for a run, and could look at its loop only afterwards.
 *
 * Long work of our own asks between its steps; for what cannot ask (a driver that pins a hundred gigabytes) a
 * guard ends the process. Signals are those that loop_on_signals blocks: elsewhere none ever waits. */
#ifndef DM_INTERRUPT_H
#define DM_INTERRUPT_H

#include <glib.h>
#include <signal.h>

/* SIGTERM, and SIGINT unless it is ignored: then Ctrl-C is somebody else's (a blocked signal would come all
 * the same). */
void interrupt_signals(sigset_t *set);
/* One has come that the loop has not dealt with yet. Any thread. */
gboolean interrupt_waits(void);
/* FALSE + DM_ERROR_INTERRUPTED where one waits. */
gboolean interrupt_check(GError **error);

/* From guard to release, on one thread: the process ends (status 0, logged) grace_ms after such a signal. */
struct interrupt_guard;
struct interrupt_guard *interrupt_guard(guint grace_ms);
void interrupt_release(struct interrupt_guard *guard);

#endif
