/* Figures: scripts say what the database holds, files appear whole or not at all. */
#include "harness/plot.h"
#include "core/error.h"
#include "fixture.h"
#include "harness/gnuplot.h"
#include "harness/store_schema.h"
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

Test(plot, draws_every_kind_in_every_format)
{
  char *folder = fixture_folder();
  g_autofree char *database = fixture_database(folder, (struct fixture_options){0});
  g_autoptr(StoreReader) reader = store_open(database, NULL);
  static const char *const starts[][2] = {{"x.png", "\x89PNG"}, {"x.SVG", "<?xml"}, {"x.pdf", "%PDF"}};
  for (const struct plot_kind *kind = plot_kinds; kind->name; kind++)
    for (size_t i = 0; i < G_N_ELEMENTS(starts); i++) {
      g_autofree char *path = g_build_filename(folder, starts[i][0], NULL);
      g_autofree char *partial = g_strconcat(path, ".partial", NULL);
      g_autoptr(GError) error = NULL;
      cr_assert(plot_write(reader, kind->name, NULL, path, &error), "%s: %s", kind->name,
                error ? error->message : "");
      g_autofree char *bytes = fixture_read(path);
      cr_assert(g_str_has_prefix(bytes, starts[i][1]), "%s is no %s", kind->name, starts[i][0]);
      cr_assert(!g_file_test(partial, G_FILE_TEST_EXISTS));
      g_unlink(path);
    }
  fixture_remove(folder);
}

/* The x of a line's block where its y first reaches a share. */
static double x_at(const char *script, const char *block, double share)
{
  const char *line = strstr(script, block);
  cr_assert_not_null(line);
  for (line = strchr(line, '\n') + 1; !g_str_has_prefix(line, "END"); line = strchr(line, '\n') + 1) {
    char *end;
    double x = g_ascii_strtod(line, &end);
    if (g_ascii_strtod(end, NULL) >= share)
      return x;
  }
  cr_assert_fail("share %g is not reached", share);
  return 0;
}

static int compare(gconstpointer a, gconstpointer b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

Test(plot, latency_cdf_is_that_of_the_requests)
{
  char *folder = fixture_folder();
  g_autofree char *database = fixture_database(folder, (struct fixture_options){0});
  g_autoptr(StoreReader) reader = store_open(database, NULL);
  g_autofree char *script = plot_script(reader, "latency-cdf", NULL, "x.png", NULL);
  g_autoptr(GArray) exact = g_array_new(FALSE, FALSE, sizeof(double));
  for (uint64_t id = 0; id < FIXTURE_REQUESTS; id++) {
    struct request_row row = fixture_request(1, id);
    double ms = (double)(row.end_ns - row.arrival_ns) / NS_PER_MS;
    if (row.outcome == OUTCOME_COMPLETED)
      g_array_append_val(exact, ms);
  }
  g_array_sort(exact, compare);
  for (double share = 0.25; share <= 1; share += 0.25) {
    double ms = g_array_index(exact, double, (guint)(share * exact->len + 0.5) - 1);
    cr_assert_float_eq(x_at(script, "$run1 << END", share), ms, 0.02 * ms, "share %g", share);
  }
  fixture_remove(folder);
}

Test(plot, found_adds_up_to_all_requests)
{
  char *folder = fixture_folder();
  g_autofree char *database = fixture_database(folder, (struct fixture_options){0});
  g_autoptr(StoreReader) reader = store_open(database, NULL);
  g_autofree char *script = plot_script(reader, "found", NULL, "x.png", NULL);
  cr_assert(strstr(script, "\"distmind\" 50 9 10 0 30 0 1\n"), "%s", script);
  cr_assert(!strstr(script, "local SSD"), "a part that nobody has stands in the legend");
  cr_assert(strstr(script, "uses estimated profiles"));
  cr_assert(strstr(script, "'shifting_demand'"));
  fixture_remove(folder);
}

Test(plot, says_what_was_not_stored)
{
  char *folder = fixture_folder();
  g_autofree char *database =
      fixture_database(folder, (struct fixture_options){.no_requests = TRUE, .no_usage = TRUE});
  g_autoptr(StoreReader) reader = store_open(database, NULL);
  static const char *const wants[][2] = {{"latency-cdf", "--set output.requests=all"},
                                         {"throughput", "--set output.usage=all"},
                                         {"latency", "\"latency-cdf\""},
                                         {"found", NULL}};
  for (size_t i = 0; i < G_N_ELEMENTS(wants); i++) {
    g_autoptr(GError) error = NULL;
    g_autofree char *script = plot_script(reader, wants[i][0], NULL, "x.png", &error);
    cr_assert_eq(script == NULL, wants[i][1] != NULL);
    cr_assert(script ||
              (g_error_matches(error, DM_ERROR, DM_ERROR_INPUT) && strstr(error->message, wants[i][1])));
  }
  g_autoptr(GError) error = NULL;
  cr_assert(!plot_write(reader, "found", NULL, "x.jpg", &error));
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT) && strstr(error->message, ".png, .svg or .pdf"));
  fixture_remove(folder);
}

Test(plot, failures_leave_no_file_and_keep_the_old_one)
{
  char *folder = fixture_folder();
  g_autofree char *database = fixture_database(folder, (struct fixture_options){0});
  g_autofree char *path = g_build_filename(folder, "x.png", NULL);
  g_autofree char *partial = g_strconcat(path, ".partial", NULL);
  g_file_set_contents(path, "old", -1, NULL);
  g_autoptr(StoreReader) reader = store_open(database, NULL);
  g_setenv("PATH", folder, TRUE);
  g_autoptr(GError) missing = NULL;
  cr_assert(!plot_write(reader, "found", NULL, path, &missing));
  cr_assert(g_error_matches(missing, DM_ERROR, DM_ERROR_FAILED) &&
            strstr(missing->message, "apt-get install gnuplot-nox"));
  g_autofree char *gnuplot = g_build_filename(folder, "gnuplot", NULL);
  g_file_set_contents(gnuplot, "#!/bin/sh\necho no terminal >&2\nexit 1\n", -1, NULL);
  g_chmod(gnuplot, 0755);
  g_autoptr(GError) failed = NULL;
  cr_assert(!plot_write(reader, "found", NULL, path, &failed));
  cr_assert(g_error_matches(failed, DM_ERROR, DM_ERROR_FAILED) && strstr(failed->message, "no terminal"));
  cr_assert(!g_file_test(partial, G_FILE_TEST_EXISTS));
  g_autofree char *kept = fixture_read(path);
  cr_assert_str_eq(kept, "old");
  fixture_remove(folder);
}

Test(plot, names_are_quoted)
{
  g_autofree char *quoted = gnuplot_quote("it's\n`rm`");
  cr_assert_str_eq(quoted, "'it''s `rm`'");
}
