/* Axes of sweeps, as --vary and result databases have them: whatever the text, different values that read
 * back from their own text, or one error. */
#include <stdint.h>
#include <string.h>

#include "harness/vary.h"

static void check_axis(const struct axis *axis)
{
  g_assert(axis->count > 0 && axis->count <= VARY_VALUES_MAX && axis->count == g_strv_length(axis->values));
  g_autofree char *text = axis_text(axis), *whole = g_strconcat(axis->key, "=", text, NULL);
  struct axis *again = axis_parse(whole, NULL);
  g_assert(again && g_str_equal(again->key, axis->key) && again->count == axis->count);
  for (guint i = 0; i < axis->count; i++)
    g_assert(*axis->values[i] && g_str_equal(again->values[i], axis->values[i]));
  axis_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  g_autofree char *text = g_strndup((const char *)data, size);
  g_autoptr(GError) error = NULL;
  struct axis *axis = axis_parse(text, &error);
  g_assert((axis == NULL) == (error != NULL));
  if (axis)
    check_axis(axis);
  axis_free(axis);
  return 0;
}
