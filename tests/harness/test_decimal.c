/* Decimal numbers and timestamps against integers and GLib's calendar. */
#include "harness/decimal.h"

#include <criterion/criterion.h>
#include <string.h>

#include "core/units.h"
#include "harness/random.h"

static gboolean scaled(const char *text, int64_t unit, int64_t *value)
{
  return decimal_scaled(text, strlen(text), unit, value);
}

Test(decimal, every_nanosecond_survives)
{
  gsl_rng *rng = random_stream(1, "decimal");
  for (int i = 0; i < 200000; i++) {
    int64_t ns = (int64_t)(gsl_rng_get(rng) >> (1 + gsl_rng_uniform_int(rng, 62))), parsed;
    g_autofree char *text = g_strdup_printf("%s%lld.%09lld", i & 1 ? "-" : "", ns / NS_PER_S, ns % NS_PER_S);
    cr_assert(scaled(text, NS_PER_S, &parsed), "%s", text);
    cr_assert_eq(parsed, i & 1 ? -ns : ns, "%s", text);
  }
  gsl_rng_free(rng);
}

Test(decimal, known_values)
{
  static const struct {
    const char *text;
    int64_t unit, value;
  } cases[] = {
      {"0", 1, 0},
      {"007", 1, 7},
      {"+1.5", 1000, 1500},
      {".5", 10, 5},
      {"5.", 10, 50},
      {"1e3", 1, 1000},
      {"12.5e-1", NS_PER_S, 1250000000},
      {"1e-05", NS_PER_S, 10000},
      {"0.07949090003967285", NS_PER_S, 79490900},
      {"0.0000000005", NS_PER_S, 1},
      {"0.00000000049999999999999999999999999", NS_PER_S, 0},
      {"1234567890.1234567890123456789", NS_PER_S, 1234567890123456789},
      {"1234567890.12345678951", NS_PER_S, 1234567890123456790},
      {"0e999999999999", 1, 0},
      {"1e-999999999999", NS_PER_S, 0},
      {"9223372036854775807", 1, INT64_MAX},
  };
  static const char *const wrong[] = {"",      "-",
                                      ".",     "e5",
                                      "1e",    "1e+",
                                      "1.2.3", "1 ",
                                      " 1",    "0x1",
                                      "nan",   "inf",
                                      "1,5",   "--1",
                                      "1e5x",  "9223372036854775808",
                                      "1e19",  "99999999999999999999"};
  int64_t value;
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    cr_assert(scaled(cases[i].text, cases[i].unit, &value), "%s", cases[i].text);
    cr_assert_eq(value, cases[i].value, "%s: %lld", cases[i].text, (long long)value);
  }
  for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++)
    cr_assert(!scaled(wrong[i], 1, &value), "%s", wrong[i]);
}

Test(decimal, timestamps_agree_with_the_calendar)
{
  gsl_rng *rng = random_stream(2, "timestamps");
  for (int i = 0; i < 20000; i++) {
    int64_t seconds = (int64_t)gsl_rng_uniform_int(rng, 9000000000),
            fraction = (int64_t)gsl_rng_uniform_int(rng, 10000000), ns;
    int offset = (int)gsl_rng_uniform_int(rng, 24 * 60) - 12 * 60;
    g_autoptr(GDateTime) utc = g_date_time_new_from_unix_utc(seconds + offset * 60);
    g_autofree char *clock = g_date_time_format(utc, i & 1 ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%dT%H:%M:%S");
    g_autofree char *text = g_strdup_printf("%s.%07" G_GINT64_FORMAT "%c%02d:%02d", clock, fraction,
                                            offset < 0 ? '-' : '+', abs(offset) / 60, abs(offset) % 60);
    if (seconds + offset * 60 < 0)
      continue;
    gboolean zone;
    cr_assert(timestamp_ns(text, strlen(text), &ns, &zone), "%s", text);
    cr_assert_eq(ns, seconds * NS_PER_S + fraction * 100, "%s", text);
    cr_assert(zone);
  }
  gsl_rng_free(rng);
}

Test(decimal, odd_timestamps)
{
  static const char *const good[] = {"2024-02-29 00:00:00",        "2024-05-10 00:00:01+00:00",
                                     "2024-05-10T00:00:01Z",       "2024-05-10 00:00:01.123456789123",
                                     "2024-05-10 00:00:01.5-0730", "2024-05-10 00:00:01+02"};
  static const char *const wrong[] = {"",
                                      "2023-02-29 00:00:00",
                                      "2024-13-01 00:00:00",
                                      "2024-00-01 00:00:00",
                                      "2024-01-32 00:00:00",
                                      "2024-01-01 24:00:00",
                                      "2024-01-01 00:60:00",
                                      "2024-01-01 00:00:60",
                                      "2024-01-01 00:00:00.",
                                      "2024-01-01 00:00:00 ",
                                      "2024-01-01 00:00:00+",
                                      "2024-01-01 00:00:00+1",
                                      "2024-01-01",
                                      "1969-12-31 23:59:59",
                                      "2262-01-01 00:00:00",
                                      "2024-1-1 0:0:0",
                                      "None"};
  int64_t ns;
  for (size_t i = 0; i < G_N_ELEMENTS(good); i++)
    cr_assert(timestamp_ns(good[i], strlen(good[i]), &ns, NULL), "%s", good[i]);
  for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++)
    cr_assert(!timestamp_ns(wrong[i], strlen(wrong[i]), &ns, NULL), "%s", wrong[i]);
}
