/* A recorded actor, fed again: it does the same; and whatever of the recording is changed, the first that
 * differs is named. */
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

#include "../harness/temporary.h"
#include "backend_sim/rerun.h"
#include "core/error.h"
#include "core/gpu_server.h"
#include "core/memory_server.h"
#include "hand_world.h"
#include "harness/experiment_parts.h"

static const char experiment[] = "[experiment]\nname = rerun\nsystems = distmind\n"
                                 "[cluster]\nhardware = loopback\nmemory_hardware = loopback\n"
                                 "gpu_servers = 2\ngpus_per_server = 2\nmemory_servers = 3\n"
                                 "gpu_model_gb = 0.03\nhost_cache_gb = 0.03\nheartbeat_ms = 20\n"
                                 "[models]\nsmall_net = 6\nwide_net = 3\n"
                                 "[pipeline]\nreplicas = 2\n"
                                 "[training]\nmodel = small_net\nbatch_ms = 3\n"
                                 "[workload]\nkind = poisson\nrate_rps = 100\nduration_s = 1\n"
                                 "[events]\nmore = at 0.5 add memory_server 1\n";

/* direct: remote loads land in GPU memory. */
static struct setup *new_setup(struct experiment **e, gboolean direct)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *text =
      g_strconcat(experiment, "[system distmind]\npath = ", direct ? "gpudirect\n" : "host\n", NULL);
  g_autoptr(Keyfile) keyfile = keyfile_parse("rerun.ini", text, strlen(text), &error);
  *e = experiment_parse(keyfile, "distmind", NULL, &error);
  cr_assert(*e, "%s", error ? error->message : "");
  struct setup *setup = setup_new(*e, WORLD_GPUDIRECT, TRUE, &error);
  cr_assert(setup, "%s", error ? error->message : "");
  return setup;
}

/* --- lives to record
 * ------------------------------------------------------------------------------------------------*/

/* Something that the controller might say to a GPU server. */
static void say(struct hand_world *w, uint64_t id)
{
  GRand *random = hand_world_random(w);
  uint32_t what = (uint32_t)g_rand_int_range(random, 0, 12), gpu = (uint32_t)g_rand_int_range(random, 0, 2);
  uint32_t server = (uint32_t)g_rand_int_range(random, 0, 3);
  struct message m = {
      .type = MESSAGE_DISPATCH,
      .dispatch = {
          .id = id, .tag = 1, .attempt = 1, .gpu = gpu, .model = (uint32_t)g_rand_int_range(random, 0, 9)}};
  if (what == 0)
    m = (struct message){.type = MESSAGE_MEMBER, .member = {.index = server, .alive = id & 1}};
  else if (what == 1)
    m = (struct message){.type = MESSAGE_TRAIN, .train = {.gpu = gpu, .steps = id & 1 ? 50 : 0}};
  else if (what == 2)
    m = (struct message){.type = MESSAGE_REVOKE, .revoke = {.id = id - 1, .attempt = 1, .gpu = gpu}};
  else if (what == 3)
    m = (struct message){.type = MESSAGE_PLAN,
                         .plan = {.version = (uint32_t)id + 2, .members = id & 1 ? 7 : 15}};
  hand_world_say(w, ACTOR(ACTOR_CONTROLLER, 0), &m);
}

/* Path of the recording of a GPU server's life. */
static char *gpu_server_life_on(const char *name, gboolean direct, guint32 seed, unsigned turns)
{
  struct experiment *e;
  struct setup *setup = new_setup(&e, direct);
  struct hand_world *w = hand_world_new(name, setup, ACTOR(ACTOR_GPU_SERVER, 1), seed);
  struct gpu_server *server = gpu_server_new(&setup->config, 1, hand_world_seam(w));
  hand_world_start(w, &gpu_server_actor, server);
  for (unsigned i = 0; i < turns; i++) {
    if (i % 4 == 0)
      say(w, i);
    if (i % 97 == 96)
      hand_world_lose(w, ACTOR(ACTOR_MEMORY_SERVER, i % 3));
    hand_world_turn(w);
  }
  gpu_server_free(server);
  setup_free(setup);
  experiment_free(e);
  return hand_world_close(w);
}

static char *gpu_server_life(const char *name, guint32 seed, unsigned turns)
{
  return gpu_server_life_on(name, FALSE, seed, turns);
}

static char *memory_server_life(const char *name, guint32 seed)
{
  struct experiment *e;
  struct setup *setup = new_setup(&e, FALSE);
  struct hand_world *w = hand_world_new(name, setup, ACTOR(ACTOR_MEMORY_SERVER, 2), seed);
  struct memory_server *server = memory_server_new(&setup->config, 2, hand_world_seam(w));
  hand_world_start(w, &memory_server_actor, server);
  for (unsigned version = 2; version < 6; version++) {
    struct message place = {.type = MESSAGE_PLACE,
                            .place = {version, version & 1 ? 7 : 15, 7, version & 1 ? 15 : 7}};
    struct message drop = {.type = MESSAGE_DROP, .drop = {version}};
    hand_world_say(w, ACTOR(ACTOR_CONTROLLER, 0), &place);
    for (unsigned i = 0; i < 60; i++)
      hand_world_turn(w);
    hand_world_say(w, ACTOR(ACTOR_CONTROLLER, 0), &drop);
  }
  memory_server_free(server);
  setup_free(setup);
  experiment_free(e);
  return hand_world_close(w);
}

Test(rerun, the_same_lives_again)
{
  char *folder = temporary_folder();
  struct rerun_totals totals = {0};
  for (guint32 seed = 1; seed <= 20; seed++) {
    g_autoptr(GError) error = NULL;
    g_autofree char *name = g_strdup_printf("%s/%u", folder, seed);
    g_autofree char *gpu = gpu_server_life_on(name, seed & 1, seed, 900),
                    *memory = memory_server_life(name, seed);
    cr_assert(rerun_file(gpu, &totals, NULL, &error), "%s", error ? error->message : "");
    cr_assert(rerun_file(memory, &totals, NULL, &error), "%s", error ? error->message : "");
  }
  cr_assert(totals.actors == 40 && totals.cut == 0);
  cr_assert(totals.inputs > 9000 && totals.outputs > 9000, "%lu inputs, %lu outputs", (gulong)totals.inputs,
            (gulong)totals.outputs);
  temporary_folder_remove(folder);
}

/* --- recordings that were changed
 * -----------------------------------------------------------------------------------*/

enum change {
  CHANGE_NONE,
  CHANGE_INPUT,
  CHANGE_DROP_INPUT,
  CHANGE_OUTPUT,
  CHANGE_DROP_OUTPUT,
  CHANGE_ADD_OUTPUT
};

struct changed {
  enum change change;
  uint64_t at;         /* step */
  enum seam_kind kind; /* of output: the first of this kind from that step on */
  gboolean done;
  struct recording *to;
  uint64_t inputs, outputs;
};

static void put_output(struct changed *c, const struct recorded *output, uint64_t step)
{
  gboolean here = !c->done && step >= c->at && output->kind == c->kind;
  uint8_t *data = g_memdup2(output->data, output->size);
  if (here && c->change == CHANGE_OUTPUT)
    data[seam_has_id(c->kind) ? 1 : 0] ^= 1; /* of its first field; the id before it, if any, is below 128 */
  c->done |= here;
  if (!here || c->change != CHANGE_DROP_OUTPUT) {
    recording_entry(c->to, output->kind, data, output->size);
    c->outputs++;
  }
  if (here && c->change == CHANGE_ADD_OUTPUT) {
    recording_entry(c->to, output->kind, data, output->size);
    c->outputs++;
  }
  g_free(data);
}

static void put_step(struct changed *c, const struct recorded_step *step, uint64_t number, int64_t since)
{
  struct octets form = {0};
  octets_number(&form, (uint64_t)since);
  octets_bytes(&form, step->input.data, step->input.size);
  gboolean here = number == c->at;
  if (here && c->change == CHANGE_INPUT)
    form.data[form.size - 1] ^= 1;
  if (here && (c->change == CHANGE_INPUT || c->change == CHANGE_DROP_INPUT))
    c->done = TRUE;
  if (!here || c->change != CHANGE_DROP_INPUT) {
    recording_entry(c->to, step->input.kind, form.data, form.size);
    c->inputs++;
  }
  g_free(form.data);
}

/* Writes the one part of a recording again, with a change. Its path. */
static char *rewrite(const char *from, const char *name, struct changed c)
{
  g_autoptr(RecordingReader) reader = recording_open(from, NULL);
  const struct recording_head *head;
  struct recorded_step step;
  struct octets end = {0};
  int64_t last = 0;
  cr_assert_eq(recording_next_part(reader, &head, NULL), 1);
  c.to = recording_create(name, head->actor, NULL);
  recording_begin(c.to, head);
  for (uint64_t i = 0; recording_next_step(reader, &step, NULL) > 0; i++, last = step.now) {
    put_step(&c, &step, i, step.now - last);
    for (uint32_t o = 0; o < step.outputs; o++)
      put_output(&c, &step.output[o], i);
  }
  octets_number(&end, c.inputs);
  octets_number(&end, c.outputs);
  recording_entry(c.to, RECORDING_END, end.data, end.size);
  g_free(end.data);
  char *path = g_strdup(recording_path(c.to));
  cr_assert(recording_close(c.to, NULL));
  cr_assert(c.done || c.change == CHANGE_NONE);
  return path;
}

/* says: parts of the message, in order, separated by '|'. */
static void expect_difference(const char *path, enum dm_error code, const char *says)
{
  struct rerun_totals totals = {0};
  g_autoptr(GError) error = NULL;
  cr_assert_not(rerun_file(path, &totals, NULL, &error), "expected %s", says);
  g_auto(GStrv) parts = g_strsplit(says, "|", -1);
  const char *at = error->message;
  for (char **part = parts; *part && at; part++)
    at = strstr(at, *part);
  cr_assert(at && g_error_matches(error, DM_ERROR, (gint)code), "expected %s, found %s", says,
            error->message);
  cr_assert_null(strchr(error->message, '\n'));
}

Test(rerun, a_changed_output_is_named)
{
  static const struct {
    enum change change;
    enum seam_kind kind;
    const char *says;
  } cases[] = {
      {CHANGE_OUTPUT, SEAM_SEND, "gpu-server 1 in run 1|at 0.|on input |: peer: expected |, in send"},
      {CHANGE_OUTPUT, SEAM_FETCH, "on input |model: expected |, found |, in fetch model "},
      {CHANGE_OUTPUT, SEAM_COPY, "gpu: expected |, found |, in copy gpu "},
      {CHANGE_OUTPUT, SEAM_COMPUTE, "gpu: expected |, found |, in compute gpu "},
      {CHANGE_OUTPUT, SEAM_RECORD, "kind: expected |, found |, in record kind "},
      {CHANGE_DROP_OUTPUT, SEAM_COPY, "expected |, found "},
      {CHANGE_ADD_OUTPUT, SEAM_COMPUTE, "expected "},
      {CHANGE_DROP_OUTPUT, SEAM_SEND, "found send peer controller, message "},
  };
  char *folder = temporary_folder();
  g_autofree char *name = g_build_filename(folder, "life", NULL);
  g_autofree char *life = gpu_server_life(name, 7, 300);
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autofree char *to = g_strdup_printf("%s/%zu", folder, i);
    g_autofree char *path =
        rewrite(life, to, (struct changed){.change = cases[i].change, .at = 0, .kind = cases[i].kind});
    expect_difference(path, DM_ERROR_FAILED, cases[i].says);
  }
  g_autofree char *to = g_strdup_printf("%s/same", folder);
  g_autofree char *same = rewrite(life, to, (struct changed){.change = CHANGE_NONE, .kind = SEAM_KINDS});
  struct rerun_totals totals = {0};
  cr_assert(rerun_file(same, &totals, NULL, NULL), "the rewriting itself changes nothing");
  temporary_folder_remove(folder);
}

/* Every input in turn: left out, or with another last byte. What follows from it differs, or it is seen to be
 * none that can come; where nothing follows from it (a byte of an operation's end that nobody reads) it is
 * the same. */
static void check_changed_inputs(gboolean direct)
{
  char *folder = temporary_folder();
  g_autofree char *name = g_build_filename(folder, "life", NULL);
  g_autofree char *life = gpu_server_life_on(name, direct, 11, 120);
  unsigned found = 0, same = 0, breaches = 0;
  for (uint64_t at = 0; at < 100; at++)
    for (enum change change = CHANGE_INPUT; change <= CHANGE_DROP_INPUT; change++) {
      g_autofree char *to = g_strdup_printf("%s/%u-%d", folder, (unsigned)at, (int)change);
      if (at == 0 && change == CHANGE_INPUT)
        continue; /* a start has no byte but its time's */
      g_autofree char *path =
          rewrite(life, to, (struct changed){.change = change, .at = at, .kind = SEAM_KINDS});
      struct rerun_totals totals = {0};
      g_autoptr(GError) error = NULL;
      gboolean good = rerun_file(path, &totals, NULL, &error);
      same += good;
      found += !good && error->code == DM_ERROR_FAILED;
      breaches += !good && error->code == DM_ERROR_INPUT;
      cr_assert(good || strstr(error->message, "gpu-server 1 in run 1"), "%s", error->message);
      g_unlink(path);
    }
  cr_assert(found > 60 && breaches > 20 && same < found, "%u found, %u cannot come, %u the same", found,
            breaches, same);
  temporary_folder_remove(folder);
}

Test(rerun, changed_inputs_are_found)
{
  check_changed_inputs(FALSE);
}

Test(rerun, changed_inputs_are_found_where_loads_land_in_gpu_memory)
{
  check_changed_inputs(TRUE);
}

Test(rerun, another_configuration_is_refused)
{
  char *folder = temporary_folder();
  g_autofree char *name = g_build_filename(folder, "life", NULL),
                  *other = g_build_filename(folder, "other", NULL);
  g_autofree char *life = gpu_server_life(name, 3, 10);
  g_autoptr(RecordingReader) reader = recording_open(life, NULL);
  const struct recording_head *head;
  cr_assert_eq(recording_next_part(reader, &head, NULL), 1);
  struct recording_head changed = *head;
  changed.digest ^= 1;
  struct recording *to = recording_create(other, head->actor, NULL);
  g_autofree char *path = g_strdup(recording_path(to));
  recording_begin(to, &changed);
  cr_assert(recording_close(to, NULL));
  expect_difference(path, DM_ERROR_FAILED, "profiles or hardware files of|are not those of the run");
  temporary_folder_remove(folder);
}
