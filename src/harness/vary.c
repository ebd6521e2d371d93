/* Axes of settings; see vary.h. */
#include "harness/vary.h"

#include <string.h>

#include "core/error.h"
#include "harness/decimal.h"
#include "harness/experiment_layers.h"

#define DECIMALS_MAX 9

/* --- ranges
 * ---------------------------------------------------------------------------------------------------------*/

/* A range in units of 10^-decimals. */
struct range {
  int64_t from, to, step;
  gboolean multiply; /* by step, which then is no multiple of the unit */
  int decimals;
};

static int decimals_of(const char *text)
{
  const char *point = strchr(text, '.');
  return point ? (int)strlen(point + 1) : 0;
}

static gboolean is_number(const char *text)
{
  const char *digits = text + (*text == '-');
  return *digits && strspn(digits, "0123456789.") == strlen(digits) && g_ascii_isdigit(*digits) &&
         g_ascii_isdigit(digits[strlen(digits) - 1]) && decimals_of(text) <= DECIMALS_MAX;
}

static int64_t power_of_10(int decimals)
{
  int64_t unit = 1;
  for (int i = 0; i < decimals; i++)
    unit *= 10;
  return unit;
}

static gboolean scaled(const char *text, int decimals, int64_t *value)
{
  return decimal_scaled(text, strlen(text), power_of_10(decimals), value);
}

/* FALSE: the text is no range. */
static gboolean range_parse(const char *text, struct range *range)
{
  const char *dots = strstr(text, "..");
  if (!dots)
    return FALSE;
  g_autofree char *from = g_strndup(text, (gsize)(dots - text)), *to = g_strdup(dots + 2);
  char *mark = strpbrk(to, "/*");
  range->multiply = mark && *mark == '*';
  const char *step = mark ? mark + 1 : "1";
  if (mark)
    *mark = '\0';
  if (!is_number(from) || !is_number(to) || !is_number(step))
    return FALSE;
  range->decimals = MAX(decimals_of(from), decimals_of(to));
  if (!range->multiply)
    range->decimals = MAX(range->decimals, decimals_of(step));
  return scaled(from, range->decimals, &range->from) && scaled(to, range->decimals, &range->to) &&
         scaled(step, range->multiply ? 0 : range->decimals, &range->step);
}

static char *range_value(int64_t value, int decimals)
{
  uint64_t unit = (uint64_t)power_of_10(decimals);
  uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
  GString *text = g_string_new(value < 0 ? "-" : "");
  g_string_append_printf(text, "%" G_GUINT64_FORMAT, size / unit);
  if (size % unit) {
    g_string_append_printf(text, ".%0*" G_GUINT64_FORMAT, decimals, size % unit);
    while (text->str[text->len - 1] == '0')
      g_string_truncate(text, text->len - 1);
  }
  return g_string_free(text, FALSE);
}

static gboolean range_check(const struct range *range, const char *file, const char *text, GError **error)
{
  if (range->from > range->to)
    return input_error(error, file, 0, "expected the lower end of a range first, found \"%s\"", text);
  if (range->multiply && (range->step < 2 || range->from < 1))
    return input_error(error, file, 0,
                       "expected a range from above 0 and a whole factor of at least 2, found \"%s\"", text);
  if (range->step <= 0)
    return input_error(error, file, 0, "expected a step above 0, found \"%s\"", text);
  return TRUE;
}

static gboolean range_add(GPtrArray *values, const char *text, const char *file, gboolean *is_range,
                          GError **error)
{
  struct range range;
  *is_range = range_parse(text, &range);
  if (!*is_range)
    return TRUE;
  if (!range_check(&range, file, text, error))
    return FALSE;
  for (int64_t value = range.from; value <= range.to;) {
    if (values->len >= VARY_VALUES_MAX)
      return input_error(error, file, 0, "expected at most %d values", VARY_VALUES_MAX);
    g_ptr_array_add(values, range_value(value, range.decimals));
    if (range.multiply ? __builtin_mul_overflow(value, range.step, &value)
                       : __builtin_add_overflow(value, range.step, &value))
      break;
  }
  return TRUE;
}

/* --- an axis
 * ---------------------------------------------------------------------------------------------------------*/

/* Cuts the next value, up to a comma outside braces, off *rest; *rest becomes NULL after the last. */
static char *next_value(const char **rest)
{
  const char *start = *rest, *at = start;
  int depth = 0;
  for (; *at && (*at != ',' || depth > 0); at++)
    depth += *at == '{' ? 1 : *at == '}' && depth > 0 ? -1 : 0;
  *rest = *at ? at + 1 : NULL;
  return g_strstrip(g_strndup(start, (gsize)(at - start)));
}

/* Every brace has its partner, so that a value in braces ends where it should. */
static gboolean is_balanced(const char *text)
{
  int depth = 0;
  for (; *text && depth >= 0; text++)
    depth += *text == '{' ? 1 : *text == '}' ? -1 : 0;
  return depth == 0;
}

static gboolean value_add(GPtrArray *values, char *value, const char *file, GError **error)
{
  gboolean is_range = FALSE, braces = g_str_has_prefix(value, "{") && g_str_has_suffix(value, "}");
  if (!braces && !range_add(values, value, file, &is_range, error))
    return FALSE;
  if (is_range)
    return TRUE;
  g_autofree char *plain = braces ? g_strndup(value + 1, strlen(value) - 2) : g_strdup(value);
  if (!*g_strstrip(plain))
    return input_error(error, file, 0, "expected KEY=A,B,…, found an empty value");
  if (!is_balanced(plain))
    return input_error(error, file, 0, "expected a \"}\" for each \"{\", found \"%s\"", value);
  if (values->len >= VARY_VALUES_MAX)
    return input_error(error, file, 0, "expected at most %d values", VARY_VALUES_MAX);
  g_ptr_array_add(values, g_steal_pointer(&plain));
  return TRUE;
}

static gboolean all_different(const GPtrArray *values, const char *file, GError **error)
{
  g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
  for (guint i = 0; i < values->len; i++)
    if (!g_hash_table_add(seen, values->pdata[i]))
      return input_error(error, file, 0, "value \"%s\" is there twice", (const char *)values->pdata[i]);
  return TRUE;
}

struct axis *axis_new(const char *key, char **values)
{
  struct axis *axis = g_new0(struct axis, 1);
  axis->key = g_strdup(key);
  axis->values = values;
  axis->count = g_strv_length(values);
  return axis;
}

struct axis *axis_parse(const char *text, GError **error)
{
  if (!layers_is_plain(text)) {
    input_error(error, "--vary", 0, "expected KEY=A,B,… of UTF-8 text without \"#\" or control characters");
    return NULL;
  }
  g_autofree char *file = g_strdup_printf("--vary %s", text);
  const char *equals = strchr(text, '=');
  if (!equals) {
    input_error(error, file, 0, "expected KEY=A,B,…, found no \"=\"");
    return NULL;
  }
  g_autofree char *name = g_strstrip(g_strndup(text, (gsize)(equals - text)));
  g_autofree char *key = layers_key(file, name, error);
  if (!key)
    return NULL;
  g_autoptr(GPtrArray) values = g_ptr_array_new_with_free_func(g_free);
  for (const char *rest = equals + 1; rest;) {
    g_autofree char *value = next_value(&rest);
    if (!value_add(values, value, file, error))
      return NULL;
  }
  if (!all_different(values, file, error))
    return NULL;
  g_ptr_array_add(values, NULL);
  return axis_new(key, (char **)g_ptr_array_free(g_steal_pointer(&values), FALSE));
}

void axis_free(struct axis *axis)
{
  if (!axis)
    return;
  g_free(axis->key);
  g_strfreev(axis->values);
  g_free(axis);
}

GPtrArray *axes_copy(const GPtrArray *axes)
{
  GPtrArray *copy = g_ptr_array_new_with_free_func((GDestroyNotify)axis_free);
  for (guint i = 0; i < axes->len; i++) {
    const struct axis *axis = axes->pdata[i];
    g_ptr_array_add(copy, axis_new(axis->key, g_strdupv(axis->values)));
  }
  return copy;
}

char *axis_text(const struct axis *axis)
{
  GString *text = g_string_new(NULL);
  for (char **value = axis->values; *value; value++) {
    gboolean plain = !strpbrk(*value, ",{}") && !strstr(*value, "..");
    g_string_append_printf(text, plain ? "%s%s" : "%s{%s}", value == axis->values ? "" : ",", *value);
  }
  return g_string_free(text, FALSE);
}

/* --- products
 * -------------------------------------------------------------------------------------------------------*/

uint64_t axes_points(const GPtrArray *axes)
{
  uint64_t points = 1;
  for (guint i = 0; i < axes->len; i++) {
    points *= ((const struct axis *)axes->pdata[i])->count; /* both are at most VARY_VALUES_MAX */
    if (points > VARY_VALUES_MAX)
      return 0;
  }
  return points;
}

guint axes_index(const GPtrArray *axes, uint64_t point, guint axis)
{
  for (guint i = axes->len - 1; i > axis; i--)
    point /= ((const struct axis *)axes->pdata[i])->count;
  return (guint)(point % ((const struct axis *)axes->pdata[axis])->count);
}
