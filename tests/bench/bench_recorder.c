/* What a recording costs: a controller that is asked, dispatches, hears that it is done and answers, in a
 * world that does nothing, alone and with a recorder before it; then the rerun of what was recorded. Of each,
 * the best of ROUNDS. The file goes to the folder for temporary files. */
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend_sim/rerun.h"
#include "core/controller.h"
#include "harness/experiment_parts.h"
#include "harness/recorder.h"

enum { ROUNDS = 3, REQUESTS = 300000, OUTSTANDING = 64 };

static const char experiment_text[] =
    "[experiment]\nname = bench\nsystems = ideal\n[cluster]\nhardware = h200\ngpu_servers = 4\n"
    "gpus_per_server = 16\nmemory_servers = 1\n[models]\nresnet152 = 128\n[workload]\nkind = poisson\n"
    "rate_rps = 1\nduration_s = 1\n";

struct blank {
  struct world world; /* first */
  int64_t now;
  uint64_t ids;
  struct message_dispatch sent[2 * OUTSTANDING]; /* a ring: dispatched and not done */
  actor_id to[2 * OUTSTANDING];
  uint32_t first, last;
};

static int64_t blank_now(struct world *world)
{
  return ((struct blank *)world)->now;
}

static timer_id blank_timer(struct world *world, int64_t delay_ns, uint64_t tag)
{
  (void)delay_ns, (void)tag;
  return ++((struct blank *)world)->ids;
}

static void blank_send(struct world *world, actor_id to, const struct message *message)
{
  struct blank *b = (struct blank *)world;
  if (message->type != MESSAGE_DISPATCH)
    return;
  b->to[b->last % G_N_ELEMENTS(b->to)] = to;
  b->sent[b->last++ % G_N_ELEMENTS(b->sent)] = message->dispatch;
}

static const struct world_ops blank_ops = {
    .now = blank_now, .timer = blank_timer, .send = blank_send, .capabilities = UINT32_MAX};

static double seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void done_one(struct blank *b, const struct actor_ops *ops, void *ear)
{
  const struct message_dispatch *d = &b->sent[b->first % G_N_ELEMENTS(b->sent)];
  struct message m = {.type = MESSAGE_DONE,
                      .done = {.id = d->id, .tag = d->tag, .attempt = d->attempt, .executed_ns = 1000}};
  ops->message(ear, b->to[b->first % G_N_ELEMENTS(b->to)], &m);
  b->first++;
}

static void serve(struct blank *b, const struct actor_ops *ops, void *ear)
{
  ops->start(ear);
  for (uint32_t server = 0; server < 4; server++) {
    struct message join = {.type = MESSAGE_JOIN, .join = {.epoch = 1}};
    ops->message(ear, ACTOR(ACTOR_GPU_SERVER, server), &join);
  }
  for (uint64_t id = 0; id < REQUESTS; id++) {
    struct message m = {.type = MESSAGE_REQUEST,
                        .request = {.id = id, .model = (uint32_t)(id * 7919 % 128), .slot = NO_INDEX}};
    b->now += 20000;
    ops->message(ear, ACTOR(ACTOR_CLIENT, 0), &m);
    if (b->last - b->first >= OUTSTANDING)
      done_one(b, ops, ear);
  }
  if (b->last < REQUESTS - OUTSTANDING)
    g_error("bench: only %u of %d requests were dispatched", b->last, REQUESTS);
}

/* CPU seconds; recording NULL: without one. */
static double run(const struct setup *setup, struct recording *recording)
{
  struct blank *b = g_new0(struct blank, 1);
  b->world.ops = &blank_ops;
  b->now = 1;
  struct recorder *recorder = recording ? recorder_new(recording, &b->world) : NULL;
  struct controller *controller =
      controller_new(&setup->config, recorder ? recorder_seam(recorder) : &b->world);
  if (recorder) {
    recorder_begin(recorder, setup, 1, ACTOR(ACTOR_CONTROLLER, 0));
    recorder_set_actor(recorder, &controller_actor, controller);
  }
  double began = seconds();
  if (recorder)
    serve(b, &recorder_actor, recorder);
  else
    serve(b, &controller_actor, controller);
  double took = seconds() - began;
  controller_free(controller);
  recorder_free(recorder);
  g_free(b);
  return took;
}

static struct setup *make_setup(struct experiment **e)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(Keyfile) keyfile = keyfile_parse("bench.ini", experiment_text, strlen(experiment_text), &error);
  *e = experiment_parse(keyfile, "ideal", NULL, &error);
  struct setup *setup = *e ? setup_new(*e, UINT32_MAX, FALSE, &error) : NULL;
  if (!setup)
    g_error("bench: %s", error->message);
  return setup;
}

int main(void)
{
  struct experiment *e;
  struct setup *setup = make_setup(&e);
  double alone = 1e9, recorded = 1e9, again = 1e9;
  gint64 size = 0;
  for (unsigned round = 0; round < ROUNDS; round++) {
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("distmind-bench-XXXXXX", &error);
    g_autofree char *name = g_build_filename(folder, "x", NULL);
    struct recording *recording = recording_create(name, ACTOR(ACTOR_CONTROLLER, 0), &error);
    g_autofree char *path = g_strdup(recording_path(recording));
    struct rerun_totals totals = {0};
    GStatBuf status;
    alone = MIN(alone, run(setup, NULL));
    recorded = MIN(recorded, run(setup, recording));
    if (!recording_close(recording, &error))
      g_error("bench: %s", error->message);
    g_stat(path, &status);
    size = status.st_size;
    double began = seconds();
    if (!rerun_file(path, &totals, NULL, &error))
      g_error("bench: %s", error->message);
    again = MIN(again, seconds() - began);
    g_unlink(path);
    g_rmdir(folder);
  }
  printf("a controller, %d requests, CPU time a request: %.0f ns alone, %.0f ns recorded: %.0f ns more, %.0f "
         "bytes\n",
         REQUESTS, alone / REQUESTS * 1e9, recorded / REQUESTS * 1e9, (recorded - alone) / REQUESTS * 1e9,
         (double)size / REQUESTS);
  printf("at 50,000 requests a second: %.2f%% of a core, %.1f MB/s\n",
         (recorded - alone) / REQUESTS * 50000 * 100, (double)size / REQUESTS * 50000 / 1e6);
  printf("rerun: %.0f requests a second\n", REQUESTS / again);
  setup_free(setup);
  experiment_free(e);
  return 0;
}
