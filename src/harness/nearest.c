/* Edit distance over short words; see nearest.h. */
#include "harness/nearest.h"

#include <string.h>

enum { WORD_MAX = 64 };

unsigned edit_distance(const char *a, const char *b)
{
  size_t a_length = strnlen(a, WORD_MAX), b_length = strnlen(b, WORD_MAX);
  unsigned row[WORD_MAX + 1];
  for (size_t j = 0; j <= b_length; j++)
    row[j] = (unsigned)j;
  for (size_t i = 1; i <= a_length; i++) {
    unsigned diagonal = row[0];
    row[0] = (unsigned)i;
    for (size_t j = 1; j <= b_length; j++) {
      unsigned above = row[j];
      row[j] = MIN(diagonal + (a[i - 1] != b[j - 1]), MIN(above, row[j - 1]) + 1);
      diagonal = above;
    }
  }
  return row[b_length];
}

/* A word that was cut short or went on is nearer than any misspelling: "rate" means "rate_rps", not "trace".
 */
static unsigned word_distance(const char *word, const char *known)
{
  gboolean begins = *word && g_str_has_prefix(known, word);
  return begins ? MIN(1, edit_distance(word, known)) : edit_distance(word, known) + 1;
}

const char *nearest_word(const char *word, const char *const *known)
{
  const char *best = NULL;
  unsigned best_distance = 0;
  for (; *known; known++) {
    unsigned distance = word_distance(word, *known);
    if (!best || distance < best_distance) {
      best = *known;
      best_distance = distance;
    }
  }
  return best;
}
