/* A setting: one row of a table that says which key fills which field of a plain struct, in which unit and
 * bounds.
 *
 * The same row drives parsing, checking, --print-config and the printed help, so that they cannot disagree.
 * Values stay text until setting_apply writes them in base units (ns, bytes, bytes per second) at row->offset
 * of the struct. */
#ifndef DM_SETTING_H
#define DM_SETTING_H

#include <glib.h>
#include <stddef.h>

enum setting_kind {
  SETTING_TEXT,   /* char *: any text; "none" = NULL */
  SETTING_LABEL,  /* char[64]: a short name without "/" */
  SETTING_CHOICE, /* an enum or gboolean: the index of the word in choices */
  SETTING_UINT32, /* whole number */
  SETTING_UINT64, /* whole number */
  SETTING_REAL,   /* double, times scale */
  SETTING_TIME,   /* int64_t ns, times scale, rounded to the nearest */
  SETTING_BYTES,  /* uint64_t bytes, times scale, rounded to the nearest */
  SETTING_CUSTOM, /* custom writes the field itself */
};

struct setting {
  const char *section; /* NULL in a hardware file */
  const char *key;
  enum setting_kind kind;
  size_t offset;
  double scale;               /* base units in one of the file's; 0 = 1 */
  double min, max;            /* of numbers, in the file's unit */
  const char *const *choices; /* NULL-terminated */
  gboolean (*custom)(const struct setting *setting, void *base, const char *text, GError **error);
  unsigned flags;       /* the table's own */
  const char *unit;     /* "" if none */
  const char *fallback; /* value when the key is left out, in the file's notation */
  const char *help;
};

/* Writes text into base. FALSE + DM_ERROR_INPUT "expected ..., found ..." without file and line. */
gboolean setting_apply(const struct setting *setting, void *base, const char *text, GError **error);
/* The row of a NULL-key-terminated table, NULL if there is none. section NULL: any section. */
const struct setting *setting_find(const struct setting *table, const char *section, const char *key);

/* A decimal number without blanks: digits, sign, point, exponent; finite and in [min, max]. FALSE + "expected
 * ...". */
gboolean number_parse(const char *text, double min, double max, double *value, GError **error);
gboolean integer_parse(const char *text, guint64 min, guint64 max, guint64 *value, GError **error);

#endif
