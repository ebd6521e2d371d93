/* Stories of requests. */
#include "harness/explain.h"
#include "core/error.h"
#include "fixture.h"
#include "harness/store_schema.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static char *story_of(const char *database, const char *system, uint64_t request, GError **error)
{
  g_autoptr(StoreReader) reader = store_open(database, error);
  cr_assert_not_null(reader);
  char *text = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&text, &length);
  gboolean told = explain_request(out, reader, system, request, error);
  fclose(out);
  cr_assert(told || length == 0, "half a story: %s", text);
  char *copy = told ? g_strdup(text) : NULL;
  free(text);
  return copy;
}

static void expect(const char *story, const char *const *lines)
{
  const char *at = story;
  for (; *lines; lines++) {
    const char *found = strstr(at, *lines);
    cr_assert_not_null(found, "expected, in this order, \"%s\" in:\n%s", *lines, story);
    at = found;
  }
}

Test(explain, tells_a_load)
{
  char *folder = fixture_folder();
  g_autofree char *database = fixture_database(folder, (struct fixture_options){0});
  g_autofree char *story = story_of(database, "distmind", FIXTURE_LOADER, NULL);
  expect(story, (const char *const[]){
                    "request 500 of distmind: resnet152-3, completed in 60.000 ms, SLO missed",
                    "the model was in the memory pool",
                    "+0.000 ms  arrived, 5.000000 s after the start",
                    "+0.100 ms  sent to GPU 1 of server 0: loading from the memory pool there finishes",
                    "weighed: finish in 58.000 ms, of it queue 8.000 and load 41.000; no other GPU",
                    "+0.200 ms  evicted bert-1 from GPU 1, 437.9 MB, last used 1.500 s before",
                    "room for another model",
                    "load of resnet152-3 to GPU 1 from the memory pool begins, 241.4 MB in 16",
                    "+8.000 ms  GPU 1 turned to it",
                    "+42.000 ms  load of resnet152-3 to GPU 1 ends, 241.4 MB in 41.000 ms",
                    "+60.000 ms  answer at the client",
                    "7.900 ms, GPU 1 was with",
                    "499 resnet152-1, from -8.000 ms to its answer at +5.000 ms",
                    "network",
                    "groups 0 to 1",
                    "30.2 MB",
                    "1.000 to 5.000",
                    "3.000 to 7.000",
                    "5.000 to 9.000",
                    "groups 14 to 15",
                    NULL});
  g_auto(GStrv) lines = g_strsplit(story, "\n", -1);
  cr_assert_leq(g_strv_length(lines), 40, "more than a screen:\n%s", story);
  fixture_remove(folder);
}

Test(explain, finds_the_load_that_was_joined)
{
  char *folder = fixture_folder();
  g_autofree char *database = fixture_database(folder, (struct fixture_options){0});
  g_autofree char *story = story_of(database, "distmind", FIXTURE_JOINER, NULL);
  expect(story, (const char *const[]){"being loaded already", "best other GPU 70.000 ms",
                                      "it joined the load that request 500 had caused", "whole model",
                                      "-  45.000 to 54.000", "groups 0 to 1", "-9.000 to -5.000",
                                      "-7.000 to -3.000", NULL});
  fixture_remove(folder);
}

Test(explain, finds_whose_bytes_a_load_used)
{
  char *folder = fixture_folder();
  g_autofree char *database = fixture_database(folder, (struct fixture_options){0});
  g_autofree char *story = story_of(database, "distmind", FIXTURE_SHARER, NULL);
  /* Group 15 came at 33 ms of request 500's time, 3 ms of this one's, and was uploaded to GPU 0 then. */
  expect(story, (const char *const[]){"the groups came to the server for request 500", "group", "15",
                                      "1.000 to 3.000", "4.000 to 5.000", NULL});
  fixture_remove(folder);
}

Test(explain, tells_what_never_ran)
{
  char *folder = fixture_folder();
  g_autofree char *database = fixture_database(folder, (struct fixture_options){0});
  g_autofree char *story = story_of(database, "distmind", FIXTURE_REJECTED, NULL);
  expect(story, (const char *const[]){"request 502 of distmind: bert-0, rejected after 30.520 ms",
                                      "rejected after", "answer at the client", NULL});
  cr_assert_null(strstr(story, "GPU"), "%s", story);
  fixture_remove(folder);
}

Test(explain, says_what_is_missing)
{
  char *folder = fixture_folder(), *bare = fixture_folder();
  g_autofree char *full = fixture_database(folder, (struct fixture_options){.sample = 10});
  g_autofree char *empty =
      fixture_database(bare, (struct fixture_options){.no_requests = TRUE, .no_decisions = TRUE});
  const struct {
    const char *database, *system;
    uint64_t request;
    const char *message;
  } cases[] = {
      {full, "distmin", 0, "nearest is \"distmind\""},
      {full, "mps", 0, "--set output.decisions=all"},
      {full, NULL, 0, "no decisions of ideal"},
      {full, "distmind", 5000, "has no request 5000; the last one stored is 990"},
      {full, "distmind", 501, "was not stored (100 were): run again with --set output.requests=all"},
      {empty, "distmind", 0, "holds no requests of distmind: run again with --set output.requests=all"},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autoptr(GError) error = NULL;
    cr_assert_null(story_of(cases[i].database, cases[i].system, cases[i].request, &error));
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
    cr_assert(strstr(error->message, cases[i].message), "%s", error->message);
  }
  fixture_remove(folder);
  fixture_remove(bare);
}
