/* A real run that is recorded, servers killed in it, and fed to the core again by the simulator's program. */
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

#include "spawned.h"

static const char experiment[] = "[experiment]\n"
                                 "name = record\n"
                                 "seed = 5\n"
                                 "systems = distmind;pipeswitch\n"
                                 "[cluster]\n"
                                 "hardware = loopback\n"
                                 "memory_hardware = loopback\n"
                                 "gpu_servers = 2\n"
                                 "memory_servers = 3\n"
                                 "gpu_model_gb = 0.02\n"
                                 "host_cache_gb = 0.02\n"
                                 "heartbeat_ms = 200\n"
                                 "heartbeat_misses = 10\n"
                                 "[models]\n"
                                 "small_net = 6\n"
                                 "wide_net = 3\n"
                                 "[workload]\n"
                                 "kind = poisson\n"
                                 "rate_rps = 40\n"
                                 "duration_s = 1.5\n"
                                 "[pipeline]\n"
                                 "replicas = 2\n"
                                 "[training]\n"
                                 "model = small_net\n"
                                 "batch_ms = 20\n"
                                 "[output]\n"
                                 "decisions = all\n";

/* For distmind alone: the other system holds no model in the pool. */
static const char failures[] = "[events]\n"
                               "memory = at 0.5 fail memory_server 1\n"
                               "gpu = at 0.8 fail gpu_server 1\n";

struct place {
  char *folder, *experiment, *recording, *database;
};

static struct place place_new(const char *more)
{
  struct place p = {.folder = g_dir_make_tmp("distmind-record-XXXXXX", NULL)};
  cr_assert(p.folder);
  g_autofree char *text = g_strconcat(experiment, more, NULL);
  p.experiment = g_build_filename(p.folder, "record.ini", NULL);
  p.recording = g_build_filename(p.folder, "record.rec", NULL);
  p.database = g_build_filename(p.folder, "record.db", NULL);
  cr_assert(g_file_set_contents(p.experiment, text, -1, NULL));
  return p;
}

static void place_clear(struct place *p)
{
  g_autoptr(GDir) dir = g_dir_open(p->folder, 0, NULL);
  const char *name;
  while ((name = g_dir_read_name(dir)) != NULL) {
    g_autofree char *path = g_build_filename(p->folder, name, NULL);
    g_unlink(path);
  }
  g_rmdir(p->folder);
  g_free(p->folder);
  g_free(p->experiment);
  g_free(p->recording);
  g_free(p->database);
}

static Spawned *run(const struct place *p, const char *more)
{
  g_autofree char *words = g_strdup_printf("run %s --local --device host --quiet --out %s --record %s%s",
                                           p->experiment, p->database, p->recording, more);
  return spawn("distmind-real", words);
}

static Spawned *rerun(const char *path)
{
  g_autofree char *words = g_strconcat("rerun ", path, NULL);
  return spawn("distmind-sim", words);
}

static unsigned files(const struct place *p)
{
  g_autoptr(GDir) dir = g_dir_open(p->folder, 0, NULL);
  unsigned count = 0;
  while (g_dir_read_name(dir) != NULL)
    count++;
  return count;
}

/* Bits at many places of the file: each is found, whatever it stands for. */
static void flip_bits(const struct place *p)
{
  g_autofree char *data = NULL, *changed = g_build_filename(p->folder, "changed.rec", NULL);
  gsize size;
  cr_assert(g_file_get_contents(p->recording, &data, &size, NULL));
  for (unsigned i = 0; i < 12; i++) {
    gsize at = 16 + (size - 17) * i / 11;
    data[at] ^= (char)(1 << i % 8);
    cr_assert(g_file_set_contents(changed, data, (gssize)size, NULL));
    data[at] ^= (char)(1 << i % 8);
    g_autoptr(Spawned) again = rerun(changed);
    cr_assert_eq(again->status, 2, "byte %zu: %s%s", at, again->out, again->err);
    cr_assert(strstr(again->err, "changed.rec: ") && strchr(again->err, '\n')[1] == '\0', "%s", again->err);
  }
  g_unlink(changed);
}

Test(record, two_systems_decide_the_same_again)
{
  struct place p = place_new("");
  g_autoptr(Spawned) first = run(&p, "");
  cr_assert_eq(first->status, 0, "%s%s", first->out, first->err);
  cr_assert_eq(files(&p), 3, "experiment, database and recording alone are left");
  g_autoptr(Spawned) again = rerun(p.recording);
  cr_assert_eq(again->status, 0, "%s%s", again->out, again->err);
  const char *last = strstr(again->out, "same decisions: ");
  unsigned long inputs = 0, outputs = 0;
  cr_assert(
      last && sscanf(last, "same decisions: %lu inputs, %lu outputs of 14 actors\n", &inputs, &outputs) == 2,
      "%s", again->out);
  cr_assert(inputs > 500 && outputs > 500);
  cr_assert(strstr(again->out, "run 1, distmind, client: ") &&
            strstr(again->out, "run 2, pipeswitch, controller: ") &&
            strstr(again->out, "run 1, distmind, gpu-server 1: ") &&
            strstr(again->out, "run 2, pipeswitch, memory-server 2: "));
  cr_assert_null(strstr(again->out, "cut off"));
  flip_bits(&p);
  g_autoptr(Spawned) refused = run(&p, " --force --system nobody");
  cr_assert_eq(refused->status, 2);
  cr_assert(g_unlink(p.database) == 0);
  g_autoptr(Spawned) there = run(&p, "");
  cr_assert_eq(there->status, 2, "%s", there->err);
  cr_assert(strstr(there->err, "record.rec: exists already") && strstr(there->err, "--force"), "%s",
            there->err);
  place_clear(&p);
}

Test(record, killed_servers_decide_the_same_as_far_as_they_came)
{
  struct place p = place_new(failures);
  g_autoptr(Spawned) first = run(&p, " --system distmind");
  cr_assert_eq(first->status, 0, "%s%s", first->out, first->err);
  g_autoptr(Spawned) again = rerun(p.recording);
  cr_assert_eq(again->status, 0, "%s%s", again->out, again->err);
  cr_assert(g_str_has_suffix(again->out, " of 7 actors; 2 of them cut off\n"), "%s", again->out);
  const char *killed = strstr(again->out, "run 1, distmind, gpu-server 1: ");
  cr_assert(killed);
  unsigned long inputs = 0, outputs = 0;
  cr_assert_eq(sscanf(killed, "run 1, distmind, gpu-server 1: %lu inputs, %lu outputs", &inputs, &outputs),
               2);
  cr_assert(inputs > 10 && outputs > 10, "%s", again->out);
  place_clear(&p);
}

Test(record, bad_usage)
{
  g_autoptr(Spawned) none = spawn("distmind-sim", "rerun");
  expect_refusal(none, "rerun: expected FILE");
  g_autoptr(Spawned) missing = spawn("distmind-sim", "rerun /nowhere.rec");
  expect_refusal(missing, "/nowhere.rec: cannot open");
  g_autoptr(Spawned) other = spawn("distmind-sim", "rerun " DM_SOURCE_DIR "/README.md");
  expect_refusal(other, "README.md: expected a recording");
}

/* Loads that land in GPU memory, some of them broken in the middle. */
Test(record, loads_into_gpu_memory_decide_the_same_again)
{
  struct place p = place_new(failures);
  g_autoptr(Spawned) first =
      run(&p, " --system distmind --set pipeline.path=gpudirect --set experiment.initial=cold --force");
  cr_assert_eq(first->status, 0, "%s%s", first->out, first->err);
  cr_assert(strstr(first->out, "into GPU memory"), "%s", first->out);
  g_autoptr(Spawned) again = rerun(p.recording);
  cr_assert_eq(again->status, 0, "%s%s", again->out, again->err);
  cr_assert(strstr(again->out, "same decisions: "), "%s", again->out);
  place_clear(&p);
}
