/* CSV reader: random tables written in every dialect read back equal; each kind of damage is one clear error.
 */
#include <string.h>

#include "core/error.h"
#include "harness/csv.h"
#include "harness/random.h"
#include "temporary.h"

struct dialect {
  gboolean crlf, bom, final_newline, always_quote, empty_lines;
};

static void append_field(GString *out, const char *field, gboolean quote)
{
  if (!quote && !strpbrk(field, ",\"\r\n")) {
    g_string_append(out, field);
    return;
  }
  g_string_append_c(out, '"');
  for (; *field; field++) {
    if (*field == '"')
      g_string_append_c(out, '"');
    g_string_append_c(out, *field);
  }
  g_string_append_c(out, '"');
}

/* Most fields are short; a few are long enough that records cross the reader's buffer. */
static char *random_field(gsl_rng *rng)
{
  static const char alphabet[] = "abc,\"\n\r 0123456789\xc3\xa9";
  unsigned length = gsl_rng_uniform_int(rng, 12);
  if (gsl_rng_uniform_int(rng, 50) == 0)
    length = gsl_rng_uniform_int(rng, 30000);
  char *field = g_malloc(length + 1);
  for (unsigned i = 0; i < length; i++)
    field[i] = alphabet[gsl_rng_uniform_int(rng, sizeof alphabet - 1)];
  field[length] = 0;
  return field;
}

static char **random_table(gsl_rng *rng, unsigned rows, unsigned columns)
{
  char **table = g_new0(char *, rows *columns + 1);
  for (unsigned i = 0; i < rows * columns; i++)
    table[i] = random_field(rng);
  return table;
}

static char *write_table(gsl_rng *rng, char **table, unsigned rows, unsigned columns,
                         const struct dialect *dialect)
{
  g_autoptr(GString) out = g_string_new(dialect->bom ? "\xef\xbb\xbf" : "");
  const char *end = dialect->crlf ? "\r\n" : "\n";
  for (unsigned i = 0; i < columns; i++)
    g_string_append_printf(out, "%sc%u", i ? "," : "", i);
  for (unsigned row = 0; row < rows; row++) {
    g_string_append(out, end);
    if (dialect->empty_lines && gsl_rng_uniform_int(rng, 3) == 0)
      g_string_append(out, end);
    for (unsigned i = 0; i < columns; i++) {
      if (i)
        g_string_append_c(out, ',');
      /* A record of one empty field would be an empty line. */
      append_field(out, table[row * columns + i], dialect->always_quote || columns == 1);
    }
  }
  if (dialect->final_newline)
    g_string_append(out, end);
  return temporary_file("table.csv", out->str, out->len);
}

static void expect_table(struct csv *csv, char **table, unsigned rows, unsigned columns)
{
  for (unsigned row = 0; row < rows; row++) {
    g_autoptr(GError) error = NULL;
    cr_assert_eq(csv_next(csv, &error), 1, "row %u: %s", row, error ? error->message : "end");
    cr_assert_eq(csv_fields(csv), columns);
    for (unsigned i = 0; i < columns; i++) {
      cr_assert_str_eq(csv_text(csv, i), table[row * columns + i]);
      cr_assert_eq(csv_length(csv, i), strlen(table[row * columns + i]));
    }
  }
  cr_assert_eq(csv_next(csv, NULL), 0);
}

Test(csv, random_tables_read_back)
{
  gsl_rng *rng = random_stream(1, "csv");
  for (unsigned round = 0; round < 64; round++) {
    struct dialect dialect = {!!(round & 1), !!(round & 2), !!(round & 4), !!(round & 8), !!(round & 16)};
    unsigned rows = 1 + gsl_rng_uniform_int(rng, 200), columns = 1 + gsl_rng_uniform_int(rng, 8);
    g_auto(GStrv) table = random_table(rng, rows, columns);
    char *path = write_table(rng, table, rows, columns, &dialect);
    struct csv *csv = csv_open(path, NULL);
    cr_assert(csv && csv_read_header(csv, NULL));
    cr_assert_eq(csv_column(csv, "c0"), 0);
    cr_assert_eq(csv_column(csv, "absent"), -1);
    expect_table(csv, table, rows, columns);
    cr_assert(csv_rewind(csv, NULL));
    expect_table(csv, table, rows, columns);
    cr_assert_eq(!!(csv_quirks(csv) & CSV_QUIRK_BOM), dialect.bom);
    cr_assert_eq(!!(csv_quirks(csv) & CSV_QUIRK_CRLF), dialect.crlf);
    cr_assert_eq(!!(csv_quirks(csv) & CSV_QUIRK_NO_FINAL_NEWLINE), !dialect.final_newline);
    csv_close(csv);
    temporary_remove(path);
  }
  gsl_rng_free(rng);
}

static void expect_error(const char *data, gsize size, const char *expected)
{
  g_autoptr(GError) error = NULL;
  char *path = temporary_file("bad.csv", data, size);
  struct csv *csv = csv_open(path, &error);
  int got = csv && csv_read_header(csv, &error) ? 1 : -1;
  while (got > 0)
    got = csv_next(csv, &error);
  cr_assert_eq(got, -1, "expected an error: %s", expected);
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
  cr_assert(strstr(error->message, expected), "expected '%s', found '%s'", expected, error->message);
  csv_close(csv);
  temporary_remove(path);
}

Test(csv, damage_is_named_with_its_line)
{
  static const struct {
    const char *text, *expected;
  } cases[] = {
      {"", "bad.csv:1: expected a header line"},
      {"a,b\n1,2\n1\n", "bad.csv:3: expected 2 fields as in the header, found 1"},
      {"a,b\n\n1,2,3\n", "bad.csv:3: expected 2 fields as in the header, found 3"},
      {"a\n\"x\ny\"\n\"open\n", "bad.csv:4: column 1: expected a closing quote"},
      {"a,b\n1,\"x\"y\n", "bad.csv:2: column 2: expected a closing quote, then a comma"},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
    expect_error(cases[i].text, strlen(cases[i].text), cases[i].expected);
  expect_error("a\n1\0002\n", 6, "bad.csv:2: expected text, found a NUL byte");
}

Test(csv, sizes_are_bounded)
{
  g_autoptr(GString) text = g_string_new("a\n");
  for (unsigned i = 0; i < CSV_FIELD_MAX + 1; i++)
    g_string_append_c(text, 'x');
  expect_error(text->str, text->len, "bad.csv:2: column 1: expected at most 65536 bytes");
  g_string_assign(text, "a\n");
  for (unsigned i = 0; i < CSV_COLUMNS_MAX; i++)
    g_string_append_c(text, ',');
  expect_error(text->str, text->len, "bad.csv:2: expected at most 4096 columns");
  g_string_assign(text, "a\n\"");
  for (unsigned i = 0; i < 3 * CSV_RECORD_MAX; i++)
    g_string_append_c(text, i % 2 ? '\n' : 'x');
  expect_error(text->str, text->len, "bad.csv:2: expected a record of at most 262144 bytes");
  cr_assert_null(csv_open("/dev/zero", NULL), "only regular files");
}
