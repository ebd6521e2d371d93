/* Experiment files: whatever the text, an experiment whose numbers are in range or one error line. The first
 * line, up to a line end, is one --set argument if it begins with `!`. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "harness/experiment_parts.h"

static void expect_sound(const struct experiment *experiment)
{
  g_assert(experiment->models > 0 && experiment->pools > 0 && experiment->hardware_count > 0);
  g_assert(experiment->duration_ns >= 0 && experiment->warmup_ns >= 0 && experiment->timeout_ns >= 0);
  g_assert(isfinite(experiment->load) && isfinite(experiment->rate_rps) && isfinite(experiment->zipf));
  g_assert(experiment->speedup > 0);
  for (uint32_t i = 0; i < experiment->pools; i++)
    g_assert(experiment->pool[i].hw < experiment->hardware_count && experiment->pool[i].count > 0);
  for (uint32_t i = 1; i < experiment->events; i++)
    g_assert(experiment->event[i - 1].at_ns <= experiment->event[i].at_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const uint8_t *end = size && *data == '!' ? memchr(data, '\n', size) : NULL;
  g_autofree char *set = end ? g_strndup((const char *)data + 1, (gsize)(end - data - 1)) : NULL;
  char *sets[] = {set, NULL};
  size_t skipped = end ? (size_t)(end - data) : 0;
  g_autoptr(GError) error = NULL;
  g_autoptr(Keyfile) keyfile =
      keyfile_parse("fuzz.ini", (const char *)data + skipped, size - skipped, &error);
  g_autoptr(Experiment) experiment = keyfile ? experiment_parse(keyfile, "", sets, &error) : NULL;
  g_assert((experiment == NULL) == (error != NULL));
  if (error)
    g_assert(!strchr(error->message, '\n'));
  if (experiment)
    expect_sound(experiment);
  return 0;
}
