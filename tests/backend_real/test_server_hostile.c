/* A GPU server that is no good, beside good processes of a cluster: the controller expels it for what no
 * message of this run may say, ends the run that cannot be without it, and is there for the next. */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "backend_real/control.h"
#include "backend_real/run_spec.h"
#include "core/units.h"
#include "metrics_lab.h"

#define LIMIT_NS (30 * NS_PER_S)

/* GPU server 1 of real-quickstart.ini: 24 models, a GPU a server. */
struct impostor {
  struct loop *loop;
  struct link *link;
  struct message says; /* once it may */
  char *lost;          /* why */
};

static void on_welcome(void *context)
{
  (void)context;
}

static void send_ready(struct impostor *impostor, const uint8_t *data, size_t size)
{
  struct run_spec spec;
  struct experiment *experiment = NULL;
  struct setup *setup = NULL;
  g_autoptr(GError) error = NULL;
  cr_assert(run_spec_unpack(data, size, &spec));
  cr_assert(run_spec_load(&spec, &experiment, &setup, &error), "%s", error ? error->message : "");
  struct run_ready ready = {
      .run = spec.run, .digest = setup_digest(setup), .address = (char *)"", .text = (char *)"nobody"};
  g_autoptr(GBytes) bytes = run_ready_pack(&ready);
  link_send(impostor->link, FRAME_READY, g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes));
  setup_free(setup);
  experiment_free(experiment);
  run_spec_clear(&spec);
}

static void on_frame(void *context, enum frame_kind kind, const uint8_t *data, size_t size)
{
  struct impostor *impostor = context;
  uint32_t run;
  if (kind == FRAME_PREPARE)
    send_ready(impostor, data, size);
  if (kind != FRAME_GO)
    return;
  g_autoptr(GArray) peers = run_peers_unpack(data, size, &run);
  cr_assert(peers && peers->len == 1, "it may read one memory server");
  link_message(impostor->link, run, &impostor->says);
}

static void on_message(void *context, uint32_t run, const struct message *message)
{
  (void)context;
  (void)run;
  (void)message;
}

static void on_lost(void *context, const char *why)
{
  struct impostor *impostor = context;
  impostor->lost = g_strdup(why);
  loop_quit(impostor->loop);
}

static const struct link_ops ops = {
    .welcome = on_welcome, .frame = on_frame, .message = on_message, .lost = on_lost};

static void too_late(void *context, uint64_t tag)
{
  (void)tag;
  loop_quit(context);
}

/* Nobody is in its place any more. */
static void end_the_good_one(struct metrics_lab *lab)
{
  siginfo_t info;
  kill(lab->role[GPU_1].pid, SIGTERM);
  cr_assert_eq(waitid(P_PID, (id_t)lab->role[GPU_1].pid, &info, WEXITED | WNOWAIT), 0);
  g_free(metrics_lab_await(&lab->role[CONTROLLER], "gpu-server 1 left", "\""));
}

static void expect_client_fails(struct metrics_lab *lab, const char *says)
{
  int status;
  cr_assert_eq(waitpid(lab->role[CLIENT].pid, &status, 0), lab->role[CLIENT].pid);
  g_autofree char *text = metrics_lab_read(lab->role[CLIENT].log);
  cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1 && strstr(text, says), "status %x: %s", status,
            text);
}

static void expect_expelled(struct metrics_lab *lab, const char *endpoint, const struct message *message,
                            const char *why)
{
  struct impostor impostor = {.loop = loop_new(), .says = *message};
  g_autoptr(GError) error = NULL;
  g_autofree char *refused = g_strconcat("the controller refused: ", why, NULL);
  g_autofree char *failed = g_strconcat("gpu-server 1 broke off before the run began: ", why, NULL);
  struct link_config config = {.endpoint = endpoint, .connect_timeout_ns = LIMIT_NS};
  struct hello hello = {.role = ACTOR_GPU_SERVER,
                        .index = 1,
                        .epoch = (uint64_t)g_get_real_time(),
                        .version = "0",
                        .can = "tcp"};
  impostor.link = link_new(impostor.loop, &config, &hello, &ops, &impostor, &error);
  cr_assert(impostor.link, "%s", error ? error->message : "");
  metrics_lab_client(lab, "distmind", "1", "");
  uint64_t limit = loop_timer(impostor.loop, loop_now(impostor.loop) + LIMIT_NS, too_late, impostor.loop, 0);
  loop_run(impostor.loop);
  loop_timer_cancel(impostor.loop, limit);
  cr_assert(impostor.lost && strcmp(impostor.lost, refused) == 0, "expected \"%s\", found \"%s\"", refused,
            impostor.lost ? impostor.lost : "nothing");
  expect_client_fails(lab, failed);
  link_free(impostor.link);
  loop_free(impostor.loop);
  g_free(impostor.lost);
}

Test(server_hostile, what_no_message_of_this_run_may_say)
{
  static const char bounds[] = "a message with a value out of its bounds";
  const struct message bad[] = {
      {.type = MESSAGE_MODEL_STATE, .model_state = {.model = 24}},
      {.type = MESSAGE_MODEL_STATE, .model_state = {.gpu = 1}},
      {.type = MESSAGE_REQUEST, .request = {.model = 1}},
      {.type = MESSAGE_PLACED, .placed = {.version = 1}},
      {.type = MESSAGE_LEAVE},
  };
  static const char not_its_own[] = "a message that is not its sender's to send";
  const char *const why[G_N_ELEMENTS(bad)] = {bounds, bounds, not_its_own, not_its_own, not_its_own};
  struct metrics_lab *lab = metrics_lab_new();
  g_autofree char *file = metrics_lab_read(lab->file);
  g_autofree char *endpoint =
      g_strconcat("tcp://", g_strchomp(strstr(file, "controller = ") + strlen("controller = ")), NULL);
  end_the_good_one(lab);
  for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
    expect_expelled(lab, endpoint, &bad[i], why[i]);
  g_usleep(150000); /* what was rendered before is shown no longer */
  metrics_lab_scrape_one(&lab->role[CONTROLLER]);
  cr_expect_eq(metrics_lab_value(lab, CONTROLLER, "distmind_peers_expelled_total"), G_N_ELEMENTS(bad));
  cr_expect_eq(metrics_lab_value(lab, CONTROLLER, "distmind_peers{role=\"gpu-server\"}"), 1);
  cr_expect_eq(metrics_lab_value(lab, CONTROLLER, "distmind_peers{role=\"memory-server\"}"), 1);
  metrics_lab_free(lab);
}
