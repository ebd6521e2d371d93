/* Profile files: whatever the text, a model whose sums agree or one error line. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "harness/profile_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  g_autoptr(GError) error = NULL;
  struct profile *profile = profile_parse("fuzz.csv", "fuzz", (const char *)data, size, &error);
  g_assert((profile == NULL) == (error != NULL));
  if (!profile) {
    g_assert(!strchr(error->message, '\n'));
    return 0;
  }
  uint64_t bytes = 0;
  double ns = 0;
  for (uint32_t i = 0; i < profile->layers; i++) {
    bytes += profile->layer_bytes[i];
    ns += profile->timing[0].layer_ns[i];
    g_assert(isfinite(profile->timing[0].layer_ns[i]) && profile->timing[0].layer_ns[i] >= 0);
  }
  g_assert(bytes == profile->param_bytes && bytes > 0);
  g_assert(fabs(ns - profile->timing[0].warm_ns) <= 1e-6 * (ns + 1));
  profile_free(profile);
  return 0;
}
