/* Bisection; see bisect.h. */
#include "backend_sim/bisect.h"

#define NEIGHBOURS 2

/* --- the search
 * -----------------------------------------------------------------------------------------------------*/

struct search {
  enum verdict (*asked)(void *context, uint32_t index);
  void *context;
  struct bisection *out;
  int64_t greatest_no; /* of those asked for; -1: none */
};

/* FALSE: the search cannot go on without this index. */
static gboolean ask(struct search *search, uint32_t index, gboolean *holds)
{
  enum verdict verdict = search->asked(search->context, index);
  if (verdict == VERDICT_UNKNOWN) {
    search->out->needed = index;
    return FALSE;
  }
  *holds = verdict == VERDICT_YES;
  if (!*holds)
    search->greatest_no = MAX(search->greatest_no, (int64_t)index);
  return TRUE;
}

/* Halves until `high` holds (or is count) and the one below does not. */
static gboolean halve(struct search *search, uint32_t count, int64_t *high)
{
  int64_t low = -1;
  *high = count;
  while (*high - low > 1) {
    int64_t middle = low + (*high - low) / 2;
    gboolean holds;
    if (!ask(search, (uint32_t)middle, &holds))
      return FALSE;
    *(holds ? high : &low) = middle;
  }
  return TRUE;
}

/* Goes down to an answer whose neighbours below do not hold. */
static gboolean go_down(struct search *search, int64_t *answer)
{
  for (int64_t below = *answer - 1; below >= 0 && below >= *answer - NEIGHBOURS; below--) {
    gboolean holds;
    if (!ask(search, (uint32_t)below, &holds))
      return FALSE;
    if (holds)
      *answer = below;
  }
  return TRUE;
}

static gboolean look_up(struct search *search, uint32_t count, int64_t answer)
{
  gboolean holds;
  for (int64_t above = answer + 1; above < count && above <= answer + NEIGHBOURS; above++)
    if (!ask(search, (uint32_t)above, &holds))
      return FALSE;
  return TRUE;
}

struct bisection bisect(uint32_t count, enum verdict (*asked)(void *context, uint32_t index), void *context)
{
  struct bisection out = {.done = FALSE};
  struct search search = {.asked = asked, .context = context, .out = &out, .greatest_no = -1};
  int64_t answer;
  if (!halve(&search, count, &answer))
    return out;
  out.found = answer < count;
  if (out.found && !(go_down(&search, &answer) && look_up(&search, count, answer)))
    return out;
  out.done = TRUE;
  out.answer = (uint32_t)answer;
  out.monotone = !out.found || search.greatest_no < answer;
  return out;
}

/* --- ahead of it
 * ----------------------------------------------------------------------------------------------------*/

/* What is supposed of indexes that are not known. */
struct guess {
  uint32_t index, parent; /* parent: number of the guess that it adds to */
  enum verdict verdict;
};

struct supposing {
  enum verdict (*asked)(void *context, uint32_t index);
  void *context;
  const struct guess *guess;
  uint32_t at; /* number of the last guess of the chain; 0: none */
};

static enum verdict suppose(void *context, uint32_t index)
{
  const struct supposing *s = context;
  enum verdict verdict = s->asked(s->context, index);
  for (uint32_t at = s->at; verdict == VERDICT_UNKNOWN && at > 0; at = s->guess[at].parent)
    if (s->guess[at].index == index)
      verdict = s->guess[at].verdict;
  return verdict;
}

static gboolean contains(const uint32_t *index, uint32_t count, uint32_t value)
{
  for (uint32_t i = 0; i < count; i++)
    if (index[i] == value)
      return TRUE;
  return FALSE;
}

uint32_t bisect_ahead(uint32_t count, enum verdict (*asked)(void *context, uint32_t index), void *context,
                      uint32_t *index, uint32_t most)
{
  /* Breadth first over chains of guesses; chain 0 supposes nothing. Each looks at one index and begets two,
   * so as many chains as indexes wanted, and some that wanted one that is there already, are enough. */
  uint32_t chains_most = 4 * most, chains = 1, found = 0;
  g_autofree struct guess *guess = g_new0(struct guess, chains_most + 2);
  for (uint32_t at = 0; at < chains && at < chains_most && found < most; at++) {
    struct supposing supposing = {asked, context, guess, at};
    struct bisection b = bisect(count, suppose, &supposing);
    if (b.done)
      continue;
    if (!contains(index, found, b.needed))
      index[found++] = b.needed;
    for (int holds = 0; holds <= 1 && chains < chains_most; holds++)
      guess[chains++] = (struct guess){b.needed, at, holds ? VERDICT_YES : VERDICT_NO};
  }
  return found;
}
