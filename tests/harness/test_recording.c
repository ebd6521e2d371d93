/* The file of a recording: what was written is read back, a tail that is missing is seen, a bit that changed
 * is found wherever it is, and the files of several processes become one. */
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

#include "core/error.h"
#include "harness/recording.h"
#include "temporary.h"

static const struct recording_head head = {.version = (char *)"v",
                                           .run = 3,
                                           .actor = ACTOR(ACTOR_GPU_SERVER, 4),
                                           .path = (char *)"/x.ini",
                                           .text = (char *)"[models]\n",
                                           .system = (char *)"distmind",
                                           .overrides = (char *)"a.b=c\nd.e=f",
                                           .digest = 0x123456789abcdef0,
                                           .capabilities = 5,
                                           .heartbeats = TRUE,
                                           .records = TRUE,
                                           .gpus = 8};

/* An input at that time since the one before. */
static void put_input(struct recording *r, uint64_t since, uint64_t tag)
{
  struct octets form = {0};
  octets_number(&form, since);
  seam_write(&form, SEAM_TIMER_DUE, &(struct seam_tag){tag});
  recording_entry(r, SEAM_TIMER_DUE, form.data, form.size);
  g_free(form.data);
}

static void put_end(struct recording *r, uint64_t inputs, uint64_t outputs)
{
  struct octets form = {0};
  octets_number(&form, inputs);
  octets_number(&form, outputs);
  recording_entry(r, RECORDING_END, form.data, form.size);
  g_free(form.data);
}

/* A part of `inputs` inputs; on input i, outputs of i x step bytes, i of them. Not ended. */
static void put_part(struct recording *r, uint32_t inputs, size_t step, uint64_t *outputs)
{
  *outputs = 0;
  recording_begin(r, &head);
  for (uint32_t i = 0; i < inputs; i++) {
    g_autofree uint8_t *data = g_malloc0(i * step + 1);
    memset(data, (int)i, i * step + 1);
    put_input(r, i == 0 ? 1000 : i, i);
    for (uint32_t o = 0; o < i; o++, (*outputs)++)
      recording_entry(r, SEAM_SEND, data, i * step + 1);
  }
}

/* What put_part wrote; returns how many steps were there. */
static uint32_t check_part(struct recording_reader *reader, size_t step, int *last, GError **error)
{
  struct recorded_step s;
  uint32_t i = 0;
  int64_t now = 1000;
  for (; (*last = recording_next_step(reader, &s, error)) > 0; i++) {
    now += i;
    cr_assert_eq(s.now, now);
    cr_assert_eq(s.outputs, i);
    cr_assert(s.input.kind == SEAM_TIMER_DUE && s.input.data[0] == i % 128);
    for (uint32_t o = 0; o < s.outputs; o++)
      cr_assert(s.output[o].kind == SEAM_SEND && s.output[o].size == i * step + 1 &&
                s.output[o].data[i * step] == (uint8_t)i);
  }
  return i;
}

static void check_head(const struct recording_head *h)
{
  cr_assert(h->run == head.run && h->actor == head.actor && h->digest == head.digest && h->gpus == head.gpus);
  cr_assert(h->capabilities == 5 && h->heartbeats == TRUE && h->records == TRUE);
  cr_assert_str_eq(h->version, "v");
  cr_assert_str_eq(h->path, "/x.ini");
  cr_assert_str_eq(h->text, "[models]\n");
  cr_assert_str_eq(h->system, "distmind");
  cr_assert_str_eq(h->overrides, "a.b=c\nd.e=f");
}

/* Entries within a block, over its end, and of several blocks. */
Test(recording, comes_back_as_it_was)
{
  static const size_t steps[] = {1, 700, 9000};
  char *folder = temporary_folder();
  g_autofree char *name = g_build_filename(folder, "x", NULL);
  struct recording *r = recording_create(name, head.actor, NULL);
  g_autofree char *path = g_strdup(recording_path(r));
  for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
    uint64_t outputs;
    put_part(r, 40, steps[i], &outputs);
    put_end(r, 40, outputs);
  }
  cr_assert(recording_close(r, NULL));
  g_autoptr(RecordingReader) reader = recording_open(path, NULL);
  g_autoptr(GError) error = NULL;
  const struct recording_head *h;
  int last;
  for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
    cr_assert_eq(recording_next_part(reader, &h, &error), 1, "%s", error ? error->message : "");
    check_head(h);
    cr_assert_eq(check_part(reader, steps[i], &last, &error), 40, "%s", error ? error->message : "");
    cr_assert(last == 0 && !recording_was_cut(reader));
  }
  cr_assert_eq(recording_next_part(reader, &h, &error), 0);
  temporary_folder_remove(folder);
}

/* Reads all parts; TRUE: to the end and without an error. *steps: of all parts, *cut: of them. */
static gboolean read_all(const char *path, uint32_t *steps, uint32_t *cut, GError **error)
{
  g_autoptr(RecordingReader) reader = recording_open(path, error);
  const struct recording_head *h;
  int more = reader ? 1 : -1, last = 0;
  *steps = *cut = 0;
  while (more > 0 && (more = recording_next_part(reader, &h, error)) > 0) {
    *steps += check_part(reader, 3, &last, error);
    *cut += recording_was_cut(reader);
    more = last < 0 ? -1 : 1;
  }
  return more == 0;
}

/* Three processes: one ended, one killed (its tail is missing), one that had no run. */
static GPtrArray *three_files(const char *name, gsize *ended_size)
{
  uint64_t outputs;
  struct recording *ended = recording_create(name, ACTOR(ACTOR_CONTROLLER, 0), NULL);
  struct recording *killed = recording_create(name, ACTOR(ACTOR_GPU_SERVER, 12), NULL);
  struct recording *idle = recording_create(name, ACTOR(ACTOR_GPU_SERVER, 12), NULL);
  put_part(ended, 12, 3, &outputs);
  put_end(ended, 12, outputs);
  put_part(killed, 9, 3, &outputs);
  g_autofree char *path = g_strdup(recording_path(killed)), *data = NULL;
  cr_assert(g_str_has_suffix(path, ".gpu-server-12"));
  cr_assert(g_str_has_suffix(recording_path(idle), ".gpu-server-12.2"));
  cr_assert(recording_close(ended, NULL) && recording_close(killed, NULL) && recording_close(idle, NULL));
  g_autofree char *whole = g_strconcat(name, ".controller", NULL);
  cr_assert(g_file_get_contents(whole, &data, ended_size, NULL));
  g_clear_pointer(&data, g_free);
  gsize size;
  cr_assert(g_file_get_contents(path, &data, &size, NULL));
  cr_assert(g_file_set_contents(path, data, (gssize)size - 16 - 5,
                                NULL)); /* the last block, and of the one before */
  return recording_files(name);
}

Test(recording, files_of_processes_become_one)
{
  char *folder = temporary_folder();
  g_autofree char *name = g_build_filename(folder, "x.rec", NULL),
                  *other = g_strconcat(name, ".controller2x", NULL);
  gsize ended_size;
  uint32_t steps, cut;
  g_autoptr(GError) error = NULL;
  cr_assert(g_file_set_contents(other, "", 0, NULL));
  g_autoptr(GPtrArray) files = three_files(name, &ended_size);
  cr_assert_eq(files->len, 3, "found %u", files->len);
  cr_assert(recording_join(name, files, &error), "%s", error ? error->message : "");
  cr_assert(read_all(name, &steps, &cut, &error), "%s", error ? error->message : "");
  cr_assert_eq(steps, 12, "of the killed one no more than its head was whole");
  cr_assert_eq(cut, 1);
  g_autoptr(GPtrArray) left = recording_files(name);
  cr_assert_eq(left->len, 0);
  temporary_folder_remove(folder);
}

/* A killed process: whole blocks count, and of what they hold all but the last input, of which nobody knows
 * whether all is there. */
Test(recording, a_tail_may_be_missing)
{
  char *folder = temporary_folder();
  g_autofree char *name = g_build_filename(folder, "x", NULL), *data = NULL;
  struct recording *r = recording_create(name, head.actor, NULL);
  g_autofree char *path = g_strdup(recording_path(r));
  uint64_t outputs;
  put_part(r, 60, 3, &outputs); /* about 220 KB */
  cr_assert(recording_close(r, NULL));
  gsize size;
  uint32_t steps, cut, before = 0, longest = 0;
  cr_assert(g_file_get_contents(path, &data, &size, NULL));
  for (gsize keep = 16; keep <= size; keep += keep < 400 ? 1 : 997) {
    g_autoptr(GError) error = NULL;
    cr_assert(g_file_set_contents(path, data, (gssize)keep, NULL));
    cr_assert(read_all(path, &steps, &cut, &error), "%zu bytes: %s", keep, error ? error->message : "");
    cr_assert(steps >= before && steps <= 59);
    before = steps;
    longest = MAX(longest, steps);
  }
  cr_assert_gt(longest, 40);
  temporary_folder_remove(folder);
}

/* Each bit, and each length, of a joined file. */
Test(recording, what_changed_is_found)
{
  char *folder = temporary_folder();
  g_autofree char *name = g_build_filename(folder, "x.rec", NULL), *data = NULL;
  gsize ended_size, size;
  uint32_t steps, cut;
  g_autoptr(GPtrArray) files = three_files(name, &ended_size);
  cr_assert(recording_join(name, files, NULL));
  cr_assert(g_file_get_contents(name, &data, &size, NULL));
  for (gsize bit = 0; bit < 8 * size; bit++) {
    g_autoptr(GError) error = NULL;
    data[bit / 8] ^= (char)(1 << bit % 8);
    cr_assert(g_file_set_contents_full(name, data, (gssize)size, G_FILE_SET_CONTENTS_NONE, 0600, NULL));
    cr_assert_not(read_all(name, &steps, &cut, &error), "bit %zu of %zu", bit, 8 * size);
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT) && strstr(error->message, "x.rec"));
    data[bit / 8] ^= (char)(1 << bit % 8);
  }
  for (gsize keep = 0; keep < size; keep++) {
    g_autoptr(GError) error = NULL;
    cr_assert(g_file_set_contents_full(name, data, (gssize)keep, G_FILE_SET_CONTENTS_NONE, 0600, NULL));
    cr_assert_not(read_all(name, &steps, &cut, &error), "%zu of %zu bytes", keep, size);
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
  }
  temporary_folder_remove(folder);
}

/* Right checksums around what no recorder writes. */
Test(recording, entries_out_of_place_are_refused)
{
  char *folder = temporary_folder();
  for (unsigned wrong = 0; wrong < 6; wrong++) {
    g_autofree char *name = g_strdup_printf("%s/%u", folder, wrong);
    struct recording *r = recording_create(name, head.actor, NULL);
    g_autofree char *path = g_strdup(recording_path(r));
    uint64_t outputs = 0;
    uint32_t steps, cut;
    g_autoptr(GError) error = NULL;
    if (wrong == 0)
      put_input(r, 1, 1); /* no part has begun */
    else
      put_part(r, wrong == 1 ? 0 : 3, 3, &outputs);
    if (wrong == 1)
      recording_entry(r, SEAM_SEND, "", 0); /* no input before */
    if (wrong == 2)
      recording_entry(r, SEAM_KINDS, "", 0);
    if (wrong == 3)
      put_input(r, UINT64_MAX / 2, 1); /* centuries later */
    put_end(r, wrong == 1 ? 0 : wrong == 3 ? 4 : 3, wrong == 4 ? outputs + 1 : outputs + (wrong == 1));
    if (wrong == 5)
      put_input(r, 1, 1); /* after the end */
    cr_assert(recording_close(r, NULL));
    cr_assert_not(read_all(path, &steps, &cut, &error), "case %u", wrong);
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
  }
  temporary_folder_remove(folder);
}
