/* What a trace reader tells its user: skipped rows by reason, quirks by kind. */
#include "harness/trace_format.h"

#include <string.h>

/* Layouts have fewer texts than TRACE_COUNTERS_MAX; the last counter takes what would not fit. */
static struct trace_counter *find_counter(struct trace_counter *counters, const char *text)
{
  unsigned i = 0;
  while (i < TRACE_COUNTERS_MAX - 1 && counters[i].text && strcmp(counters[i].text, text) != 0)
    i++;
  counters[i].text = text;
  return &counters[i];
}

int trace_skip(struct trace_notes *notes, const char *reason)
{
  notes->skipped++;
  find_counter(notes->reason, reason)->count++;
  return TRACE_SKIP;
}

void trace_quirk(struct trace_notes *notes, const char *text)
{
  find_counter(notes->quirk, text)->count++;
}

void trace_quirk_once(struct trace_notes *notes, const char *text)
{
  find_counter(notes->quirk, text)->count = 1;
}
