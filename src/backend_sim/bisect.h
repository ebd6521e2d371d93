/* The least index that holds, by bisection, as a function of what is known so far.
 *
 * Whoever calls it gives what is known of each index and is told which one to find out next; so points may be
 * found out in any order, by many processes, or beforehand on suspicion, and the search goes the same way. It
 * asks as if no index that holds were followed by one that does not; then it looks at two neighbours on each
 * side of its answer, and goes down as long as one below holds too. */
#ifndef DM_BISECT_H
#define DM_BISECT_H

#include <glib.h>
#include <stdint.h>

enum verdict { VERDICT_UNKNOWN, VERDICT_NO, VERDICT_YES };

struct bisection {
  gboolean done;
  uint32_t needed;   /* not done: this index must become known */
  gboolean found;    /* done: an index holds */
  uint32_t answer;   /* found: the least one that was met */
  gboolean monotone; /* done: of all that were asked for, none holds below one that does not */
};

/* asked is called for each index once at least; it answers what is known. */
struct bisection bisect(uint32_t count, enum verdict (*asked)(void *context, uint32_t index), void *context);

/* Indexes that will or may be needed next, the most certain first: the needed one, then those that would be
 * needed after it if it held, or did not, and so on. Returns how many, at most `most`. */
uint32_t bisect_ahead(uint32_t count, enum verdict (*asked)(void *context, uint32_t index), void *context,
                      uint32_t *index, uint32_t most);

#endif
