/* `--images FOLDER`: what the run says of the images that are there, and which it refuses. */
#include "cluster.h"
#include "outcome_check.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

/* The lab's experiment and profile; see cluster.c. */
enum { MODELS = 12, LAYERS = 12 };
#define RUN "run experiment.ini --local --device host --quiet --images images --out x.db --force"

static guint layer_bytes(guint layer)
{
  return 20000 + 4 * layer;
}

static ClusterLab *lab_with_folder(const char *more)
{
  ClusterLab *lab = lab_new();
  g_autofree char *images = lab_path(lab, "images");
  cr_assert_eq(g_mkdir(images, 0700), 0);
  lab_experiment(lab, more);
  return lab;
}

/* in.safetensors: a tensor a layer. Layer `odd` has four bytes more than the profile says. */
static void write_safetensors(const ClusterLab *lab, guint layers, guint odd)
{
  g_autoptr(GString) json = g_string_new("{");
  guint at = 0;
  for (guint l = 0; l < layers; l++) {
    guint bytes = layer_bytes(l) + (l == odd ? 4 : 0);
    g_string_append_printf(json, "%s\"l%u.w\":{\"dtype\":\"U8\",\"shape\":[%u],\"data_offsets\":[%u,%u]}",
                           l ? "," : "", l, bytes, at, at + bytes);
    at += bytes;
  }
  g_string_append_c(json, '}');
  guint64 length = GUINT64_TO_LE(json->len);
  g_string_prepend_len(json, (const char *)&length, sizeof length);
  for (guint i = 0; i < at; i++)
    g_string_append_c(json, (char)(i * 31 + 7));
  g_autofree char *path = lab_path(lab, "in.safetensors");
  cr_assert(g_file_set_contents(path, json->str, (gssize)json->len, NULL));
}

static char *image_path(const ClusterLab *lab, guint model)
{
  g_autofree char *leaf = g_strdup_printf("images/tiny-%u.dmi", model);
  return lab_path(lab, leaf);
}

static void pack(ClusterLab *lab, guint model, guint layers, guint odd)
{
  write_safetensors(lab, layers, odd);
  struct process *packed =
      lab_start(lab, "model pack in.safetensors -o images/tiny-%u.dmi --force --quiet", model);
  cr_assert(process_await(packed, 30) && packed->status == 0, "no image of model %u", model);
}

/* `model` becomes as the first one's image is; its last byte another if `damaged`. */
static void copy_first(const ClusterLab *lab, guint model, gboolean damaged)
{
  g_autofree char *from = image_path(lab, 0), *to = image_path(lab, model), *bytes = NULL;
  gsize size;
  cr_assert(g_file_get_contents(from, &bytes, &size, NULL), "%s", from);
  bytes[size - 1] ^= damaged;
  cr_assert(g_file_set_contents(to, bytes, (gssize)size, NULL), "%s", to);
}

static void expect_note(ClusterLab *lab, const char *note)
{
  struct process *run = lab_start(lab, RUN);
  cr_assert(process_await(run, 60), "the run does not end");
  g_autofree char *shown = process_words(run), *log = process_log(run);
  cr_assert_eq(run->status, 0, "%s", log);
  const char *images = strstr(shown, "note: images: ");
  cr_assert(images && g_str_has_prefix(images, note), "expected \"%s\" in: %s", note, shown);
}

Test(images, a_note_says_how_many_are_packed)
{
  g_autoptr(ClusterLab) lab = lab_with_folder("workload.duration_s=0.3");
  pack(lab, 0, LAYERS, LAYERS);
  for (guint m = 1; m < 5; m++)
    copy_first(lab, m, FALSE);
  expect_note(lab, "note: images: 5 of 12 models packed in images; the bytes of others are generated ");
  for (guint m = 5; m < MODELS; m++)
    copy_first(lab, m, FALSE);
  expect_note(lab, "note: images: 12 of 12 models packed in images note: ");
}

static void expect_refused(ClusterLab *lab, const char *message)
{
  struct process *run = lab_start(lab, RUN);
  cr_assert(process_await(run, 30), "the run does not end");
  g_autofree char *log = process_log(run), *database = lab_path(lab, "x.db");
  const char *newline = strchr(log, '\n');
  cr_assert(run->status == 2 && strstr(log, message) && newline && newline[1] == '\0',
            "expected \"%s\", status %d: %s", message, run->status, log);
  cr_assert_not(g_file_test(database, G_FILE_TEST_EXISTS));
}

/* By its name, and what was expected of it. */
Test(images, one_that_is_not_the_profiles_is_refused)
{
  g_autoptr(ClusterLab) lab = lab_with_folder("");
  g_autofree char *third = image_path(lab, 3), *bytes = NULL;
  gsize size;
  pack(lab, 0, LAYERS, LAYERS);
  pack(lab, 3, LAYERS - 1, LAYERS);
  expect_refused(lab, "images/tiny-3.dmi: expected the 12 layers of profile tiny, found 11");
  pack(lab, 3, LAYERS, 5);
  expect_refused(lab, "images/tiny-3.dmi: layer 5: expected 20020 bytes, as profile tiny says, found 20024");
  cr_assert(g_file_get_contents(third, &bytes, &size, NULL));
  cr_assert(g_file_set_contents(third, bytes, (gssize)size - 100, NULL));
  g_autofree char *cut = g_strdup_printf(
      "images/tiny-3.dmi: expected %" G_GSIZE_FORMAT " bytes, found %" G_GSIZE_FORMAT, size, size - 100);
  expect_refused(lab, cut);
  cr_assert(g_file_set_contents(third,
                                "no image, although the name says that it is one, and long enough too: "
                                "its header would have as many bytes",
                                -1, NULL));
  expect_refused(lab, "images/tiny-3.dmi: expected a model image (.dmi), found");
}

/* Nobody reads all of an image beforehand: its checksums tell once it is in GPU memory. `model verify` tells
 * at once. */
Test(images, a_damaged_one_fails_the_run_by_its_name)
{
  g_autoptr(ClusterLab) lab = lab_with_folder("experiment.initial=cold");
  pack(lab, 0, LAYERS, LAYERS);
  for (guint m = 1; m < MODELS; m++)
    copy_first(lab, m, TRUE);
  struct process *verify = lab_start(lab, "model verify images/tiny-7.dmi");
  cr_assert(process_await(verify, 30) && verify->status == 2, "a damaged image is verified");
  g_autofree char *said = process_log(verify);
  cr_assert(strstr(said, "images/tiny-7.dmi: layer 11: expected checksum "), "%s", said);
  copy_first(lab, 0, TRUE);
  struct process *run = lab_start(lab, RUN);
  cr_assert(process_await(run, 60), "the run does not end");
  outcome_failed(run, "the parameters in GPU memory are not the model's (", "damaged");
  g_autofree char *log = process_log(run);
  cr_assert(strstr(log, "images/tiny-") && strstr(log, ".dmi)"), "%s", log);
}
