/* Fuzz target: spec of a synthetic trace, and the first rows that it generates. */
#include <stdint.h>

#include "harness/generator.h"

#define ROWS_MAX     500u
#define VARIANTS_MAX 10000u /* more take long to prepare, and nothing else */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  g_autoptr(GError) error = NULL;
  struct generator_spec *spec = generator_spec_parse("spec.ini", (const char *)data, size, &error);
  struct trace_row row;
  int64_t last = 0;
  g_assert((spec == NULL) == (error != NULL));
  if (!spec)
    return 0;
  if (spec->variants > VARIANTS_MAX) {
    generator_spec_free(spec);
    return 0;
  }
  struct generator *generator = generator_new(spec);
  for (unsigned i = 0; i < ROWS_MAX && generator_next(generator, &row); i++) {
    g_assert(row.arrival_ns >= last && row.service_ns >= -1);
    g_assert(row.input_tokens != 0 && row.output_tokens != 0);
    last = row.arrival_ns;
  }
  generator_free(generator);
  return 0;
}
