/* The event loop of a process: the one thread on which its actor runs. Descriptors, timers to the
 * microsecond, and notes that other threads leave. On GLib's main context.
 *
 * Everything here but note_post is called on the loop's thread only. */
#ifndef DM_LOOP_H
#define DM_LOOP_H

#include <glib.h>
#include <stdint.h>

struct loop;

struct loop *loop_new(void);
void loop_free(struct loop *loop);
/* Until loop_quit. */
void loop_run(struct loop *loop);
void loop_quit(struct loop *loop);
/* It was asked to, and this is what is left of its last round. */
gboolean loop_quits(const struct loop *loop);
/* CLOCK_MONOTONIC, ns. Frozen while a callback runs: read once for each round of the loop, after it waited.
 * Outside of loop_run it is not frozen. */
int64_t loop_now(const struct loop *loop);
/* The same clock, now, for any thread. */
int64_t loop_clock(void);

/* Calls back when fd is readable (level triggered) until unwatched. */
struct watch;
struct watch *loop_watch(struct loop *loop, int fd, void (*readable)(void *context), void *context);
/* The same for a descriptor that tells a change only once (edge triggered, as ZeroMQ's): `ready` is asked
 * too, before each wait, so a change that was told while nobody looked is not missed, and `readable` may
 * leave a rest for the next round. `readable` must bear that nothing is there. */
struct watch *loop_watch_edge(struct loop *loop, int fd, gboolean (*ready)(void *context),
                              void (*readable)(void *context), void *context);
/* Calls back when fd is writable (level triggered), or broken. */
struct watch *loop_watch_writable(struct loop *loop, int fd, void (*writable)(void *context), void *context);
/* NULL: nothing. */
void loop_unwatch(struct watch *watch);

/* One-shot; ids are never used twice. Timers due at one time come in the order in which they were set.
 * Steady use allocates nothing. */
uint64_t loop_timer(struct loop *loop, int64_t at_ns, void (*due)(void *context, uint64_t tag), void *context,
                    uint64_t tag);
void loop_timer_cancel(struct loop *loop,
                       uint64_t timer); /* one that is due or cancelled already, or 0: nothing */

/* Called before the loop waits, after all callbacks of a round: for what is better sent in one piece. In the
 * order in which they were added, until removed. */
void loop_before_wait(struct loop *loop, void (*flush)(void *context), void *context);
void loop_before_wait_remove(struct loop *loop, void (*flush)(void *context), void *context);

/* A note from any thread: embedded in what it is about, so leaving one allocates nothing. It may be posted
 * again once `read` has been called, which happens on the loop's thread, in order of posting. */
struct note {
  struct note *next;
  void (*read)(struct note *note);
};
void note_post(struct loop *loop, struct note *note);

/* Calls back on SIGTERM and SIGINT (interrupt_signals), which are blocked from now on (in threads begun later
 * too): on one that came. */
void loop_on_signals(struct loop *loop, void (*came)(void *context), void *context);
/* Reads the notes that are there now, outside of a round: who leaves notes has been stopped, and what they
 * are about is going to be freed. */
void loop_read_notes(struct loop *loop);
/* Cancels every timer with this context. */
void loop_forget(struct loop *loop, void *context);

#endif
