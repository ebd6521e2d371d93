/* What a sweep varies: axes of settings, "KEY=A,B,C", and their product.
 *
 * Values are separated by commas, so a list keeps its own ";". `a..b`, `a..b/step` and `a..b*factor` stand
 * for numbers in steps of 1 or step, or multiplied by factor, both ends included where they are met; a value
 * in braces is taken as it is: `{0..1}`, `{a,b}`. */
#ifndef DM_VARY_H
#define DM_VARY_H

#include <glib.h>
#include <stdint.h>

#define VARY_VALUES_MAX 100000 /* of an axis, and points of a product */

struct axis {
  char *key;     /* SECTION.KEY */
  char **values; /* NULL-terminated, all different, at least one */
  guint count;
};

/* NULL + DM_ERROR_INPUT that names --vary. */
struct axis *axis_parse(const char *text, GError **error);
/* Takes values (at least one). */
struct axis *axis_new(const char *key, char **values);
void axis_free(struct axis *axis);
/* Another list of the same axes; free with g_ptr_array_unref. */
GPtrArray *axes_copy(const GPtrArray *axes);
/* The values as one text that axis_parse reads back to them; free with g_free. */
char *axis_text(const struct axis *axis);

/* Points of the product of axes (GPtrArray of struct axis *), the last axis running fastest; 0: more than
 * VARY_VALUES_MAX. */
uint64_t axes_points(const GPtrArray *axes);
/* Index into the values of one axis at a point. */
guint axes_index(const GPtrArray *axes, uint64_t point, guint axis);

#endif
