/* The control plane among peers that keep to the protocol: hello and welcome, order, places, how a loss is
 * told, and what is refused before it begins. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend_real/control_frame.h"
#include "control_lab.h"
#include "core/error.h"
#include "core/units.h"

#define SERVER(index) ACTOR(ACTOR_GPU_SERVER, index)

static void hello_and_welcome(gboolean encrypted)
{
  struct lab *lab = lab_new(encrypted);
  struct key_pair keys = lab_keys(lab, "gpu");
  lab_link(lab, 0, ACTOR_GPU_SERVER, 3, 17, encrypted ? &keys : NULL);
  lab_await(lab, lab->link[0].log, "welcome; ");
  cr_assert_str_eq(lab->log->str, "joined 2/3 17 127.0.0.1:4000; ");
  cr_assert_eq(lab_joined(lab, ACTOR_GPU_SERVER), 1);
  hub_send(lab->hub, SERVER(3), FRAME_GO, "abc", 3);
  link_send(lab->link[0].link, FRAME_READY, NULL, 0);
  lab_await(lab, lab->link[0].log, "frame GO 3; ");
  lab_await(lab, lab->log, "frame 2/3 READY 0; ");
  link_free(lab->link[0].link);
  lab->link[0].link = NULL;
  lab_await(lab, lab->log, "lost 2/3 it left; ");
  cr_assert_eq(lab_joined(lab, ACTOR_GPU_SERVER), 0);
  lab_free(lab);
}

Test(control, hello_and_welcome_encrypted)
{
  hello_and_welcome(TRUE);
}

Test(control, hello_and_welcome_plain)
{
  hello_and_welcome(FALSE);
}

/* --- order
 * --------------------------------------------------------------------------------------------------------*/

enum { MANY = 100000 };

struct pump {
  struct lab *lab;
  uint64_t requests, dispatches; /* sent */
};

/* Some messages a round, now and then a frame of another kind between them, until all are sent. */
static void pump(void *context)
{
  struct pump *p = context;
  for (int i = 0; i < 700 && p->requests < MANY; i++) {
    struct message m = {.type = MESSAGE_REQUEST, .request = {.id = p->requests++, .model = 5}};
    link_message(p->lab->link[1].link, LAB_RUN, &m);
  }
  for (int i = 0; i < 500 && p->dispatches < MANY; i++) {
    struct message m = {.type = MESSAGE_DISPATCH, .dispatch = {.id = p->dispatches++, .model = 5}};
    hub_message(p->lab->hub, SERVER(0), LAB_RUN, &m);
    if (p->dispatches % 10000 == 1)
      hub_send(p->lab->hub, SERVER(0), FRAME_METER, &p->dispatches, sizeof p->dispatches);
  }
}

static void pump_due(void *context, uint64_t tag)
{
  struct pump *p = context;
  pump(p);
  if (p->requests < MANY || p->dispatches < MANY)
    loop_timer(p->lab->loop, loop_now(p->lab->loop), pump_due, p, tag);
}

static gboolean all_came(struct lab *lab)
{
  return lab->messages == MANY && lab->link[0].messages == MANY;
}

/* That ids come one after the other is checked as they come. */
Test(control, order_of_100000_messages_each_way)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_keys(lab, "all");
  lab_link(lab, 0, ACTOR_GPU_SERVER, 0, 1, &keys);
  lab_link(lab, 1, ACTOR_CLIENT, 0, 1, &keys);
  lab_await(lab, lab->link[0].log, "welcome; ");
  lab_await(lab, lab->link[1].log, "welcome; ");
  struct pump p = {.lab = lab};
  pump_due(&p, 0);
  lab_await_that(lab, all_came);
  int meters = 0;
  for (const char *at = lab->link[0].log->str; (at = strstr(at, "frame METER 8; ")) != NULL; at++)
    meters++;
  cr_assert_eq(meters, MANY / 10000);
  lab_check_not(lab->log, "lost");
  lab_free(lab);
}

/* A message of a run before is dropped, one of a run to come is a breach. */
Test(control, runs)
{
  struct lab *lab = lab_new(FALSE);
  lab_link(lab, 0, ACTOR_GPU_SERVER, 0, 1, NULL);
  lab_await(lab, lab->link[0].log, "welcome; ");
  struct message join = {.type = MESSAGE_JOIN}, done = {.type = MESSAGE_DONE};
  link_message(lab->link[0].link, LAB_RUN - 1, &done);
  link_message(lab->link[0].link, LAB_RUN, &join);
  lab_await(lab, lab->log, "message 2/0 join; ");
  lab_check_not(lab->log, "done");
  link_message(lab->link[0].link, LAB_RUN + 1, &done);
  lab_await(lab, lab->log, "lost 2/0 messages of a run that is not known; ");
  lab_await(lab, lab->link[0].log, "lost the controller refused: messages of a run that is not known; ");
  lab_free(lab);
}

/* --- places
 * -------------------------------------------------------------------------------------------------------*/

/* One that is killed is followed within the same second. */
#define EPOCH G_GUINT64_CONSTANT(1764515000000001)

Test(control, older_start_gives_way)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_keys(lab, "gpu");
  lab_link(lab, 0, ACTOR_GPU_SERVER, 1, EPOCH, &keys);
  lab_await(lab, lab->link[0].log, "welcome; ");
  lab_link(lab, 1, ACTOR_GPU_SERVER, 1, EPOCH + 1, &keys);
  lab_await(lab, lab->link[1].log, "welcome; ");
  cr_assert_str_eq(lab->log->str, "joined 2/1 1764515000000001 127.0.0.1:4000; "
                                  "lost 2/1 its place was taken by one that started later; "
                                  "joined 2/1 1764515000000002 127.0.0.1:4000; ");
  lab_await(lab, lab->link[0].log,
            "lost the controller refused: its place was taken by one that started later; ");
  lab_link(lab, 2, ACTOR_GPU_SERVER, 1, EPOCH + 1, &keys);
  lab_await(lab, lab->link[2].log, "lost the controller refused: its place is taken; ");
  lab_link(lab, 3, ACTOR_GPU_SERVER, 1, 2, &keys);
  lab_await(lab, lab->link[3].log,
            "lost the controller refused: its place is taken by one that started later; ");
  cr_assert_eq(lab_joined(lab, ACTOR_GPU_SERVER), 1);
  hub_send(lab->hub, SERVER(1), FRAME_GO, "", 0);
  lab_await(lab, lab->link[1].log, "frame GO 0; ");
  lab_free(lab);
}

Test(control, place_is_bound_to_the_key)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_keys(lab, "gpu"), other = lab_keys(lab, "other");
  lab_link(lab, 0, ACTOR_GPU_SERVER, 1, 5, &keys);
  lab_await(lab, lab->link[0].log, "welcome; ");
  lab_link(lab, 1, ACTOR_GPU_SERVER, 1, 6, &other);
  lab_await(lab, lab->link[1].log, "lost the controller refused: its place is held by another key; ");
  cr_assert_eq(lab_joined(lab, ACTOR_GPU_SERVER), 1);
  lab_check_not(lab->log, "lost");
  lab_free(lab);
}

Test(control, owner_refuses)
{
  struct lab *lab = lab_new(FALSE);
  lab->refuse = "no such server in this cluster";
  lab_link(lab, 0, ACTOR_GPU_SERVER, 1, 5, NULL);
  lab_await(lab, lab->link[0].log, "lost the controller refused: no such server in this cluster; ");
  lab_check_not(lab->link[0].log, "welcome");
  lab_check_not(lab->log, "lost");
  cr_assert_eq(lab_joined(lab, ACTOR_GPU_SERVER), 0);
  lab_free(lab);
}

Test(control, owner_expels)
{
  struct lab *lab = lab_new(FALSE);
  lab_link(lab, 0, ACTOR_GPU_SERVER, 1, 5, NULL);
  lab_link(lab, 1, ACTOR_GPU_SERVER, 2, 5, NULL);
  lab_await(lab, lab->link[0].log, "welcome; ");
  lab_await(lab, lab->link[1].log, "welcome; ");
  hub_expel(lab->hub, SERVER(1), "a wrong checksum");
  cr_assert_eq(lab_joined(lab, ACTOR_GPU_SERVER), 1);
  lab_check_not(lab->log, "lost"); /* not from inside the call */
  hub_send(lab->hub, SERVER(1), FRAME_GO, "", 0);
  lab_await(lab, lab->log, "lost 2/1 a wrong checksum; ");
  lab_await(lab, lab->link[0].log, "lost the controller refused: a wrong checksum; ");
  lab_check_not(lab->link[0].log, "GO");
  lab_check_not(lab->link[1].log, "lost");
  lab_free(lab);
}

/* --- losses
 * -------------------------------------------------------------------------------------------------------*/

Test(control, hub_ends)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_keys(lab, "gpu");
  lab_link(lab, 0, ACTOR_GPU_SERVER, 1, 5, &keys);
  lab_await(lab, lab->link[0].log, "welcome; ");
  hub_send(lab->hub, SERVER(1), FRAME_END, "", 0); /* last words arrive */
  hub_free(g_steal_pointer(&lab->hub));
  lab_await(lab, lab->link[0].log, "frame END 0; lost the controller has ended; ");
  lab_free(lab);
}

/* --- what is refused before it begins
 * --------------------------------------------------------------------------------*/

static const struct hub_ops no_hub_ops;
static const struct link_ops no_link_ops;

static void hub_is_refused(struct loop *loop, const struct hub_config *config, const char *text)
{
  g_autoptr(GError) error = NULL;
  cr_assert_null(hub_new(loop, config, &no_hub_ops, NULL, &error));
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
  cr_assert(strstr(error->message, text), "expected \"%s\" in \"%s\"", text, error->message);
}

Test(control, bad_hubs)
{
  struct loop *loop = loop_new();
  struct key_pair keys;
  cr_assert(key_pair_generate(&keys, NULL));
  const char *open_endpoints[] = {"tcp://0.0.0.0:0", "tcp://*:0", "tcp://[::]:0", "tcp://10.0.0.1:7000",
                                  "tcp://localhost.example:1"};
  for (size_t i = 0; i < G_N_ELEMENTS(open_endpoints); i++)
    hub_is_refused(loop, &(struct hub_config){.endpoint = open_endpoints[i]}, "needs keys");
  hub_is_refused(loop, &(struct hub_config){.endpoint = "127.0.0.1:7000"}, "expected tcp://HOST:PORT");
  hub_is_refused(loop, &(struct hub_config){.endpoint = "tcp://127.0.0.1"}, "expected tcp://HOST:PORT");
  hub_is_refused(loop, &(struct hub_config){.endpoint = "tcp://127.0.0.1:99999"}, "expected tcp://HOST:PORT");
  hub_is_refused(loop, &(struct hub_config){.endpoint = "tcp://0.0.0.0:0", .keys = &keys},
                 "expected a folder of the public keys");
  hub_is_refused(
      loop,
      &(struct hub_config){.endpoint = "tcp://127.0.0.1:0", .keys = &keys, .authorized = "/does/not/exist"},
      "/does/not/exist: expected a folder of public keys");
  loop_free(loop);
}

Test(control, bad_links)
{
  struct loop *loop = loop_new();
  struct hello hello = {.role = ACTOR_CLIENT};
  g_autoptr(GError) error = NULL;
  cr_assert_null(link_new(loop, &(struct link_config){.endpoint = "tcp://10.0.0.1:7000"}, &hello,
                          &no_link_ops, NULL, &error));
  cr_assert(strstr(error->message, "needs keys"));
  g_clear_error(&error);
  memset(hello.address, 'a', sizeof hello.address);
  cr_assert_null(link_new(loop, &(struct link_config){.endpoint = "tcp://127.0.0.1:7000"}, &hello,
                          &no_link_ops, NULL, &error));
  cr_assert(strstr(error->message, "expected an address of less than 108 characters"));
  loop_free(loop);
}

/* Over IPv6, where there is any. */
Test(control, version_6)
{
  struct loop *loop = loop_new();
  g_autoptr(GError) error = NULL;
  struct hub *hub =
      hub_new(loop, &(struct hub_config){.endpoint = "tcp://[::1]:*"}, &no_hub_ops, NULL, &error);
  if (hub)
    cr_assert(g_str_has_prefix(hub_endpoint(hub), "tcp://[::1]:"));
  else
    cr_assert(strstr(error->message, "cannot listen on"), "%s", error->message);
  hub_free(hub);
  loop_free(loop);
}

static char *lost_why;

static void note_loss(void *context, const char *why)
{
  lost_why = g_strdup(why);
  loop_quit(context);
}

Test(control, nobody_answers)
{
  struct loop *loop = loop_new();
  const struct link_ops ops = {.lost = note_loss};
  const struct hello hello = {.role = ACTOR_CLIENT};
  g_autoptr(GError) error = NULL;
  /* Port 1 of loopback: nobody listens there. */
  struct link *link = link_new(
      loop, &(struct link_config){.endpoint = "tcp://127.0.0.1:1", .connect_timeout_ns = 200 * NS_PER_MS},
      &hello, &ops, loop, &error);
  cr_assert(link);
  loop_run(loop);
  cr_assert_str_eq(lost_why, "the controller gave no welcome in time (nobody answers there)");
  g_free(lost_why);
  link_free(link);
  loop_free(loop);
}

/* The owner frees the link from inside the call that tells the loss. */
struct self_freeing {
  struct loop *loop;
  struct link *link;
};

static void free_link(void *context, const char *why)
{
  struct self_freeing *self = context;
  (void)why;
  link_free(self->link);
  self->link = NULL;
  loop_quit(self->loop);
}

Test(control, link_freed_as_it_is_lost)
{
  struct self_freeing self = {.loop = loop_new()};
  const struct link_ops ops = {.lost = free_link};
  const struct hello hello = {.role = ACTOR_CLIENT};
  g_autoptr(GError) error = NULL;
  self.link =
      link_new(self.loop, &(struct link_config){.endpoint = "tcp://127.0.0.1:1", .connect_timeout_ns = 1},
               &hello, &ops, &self, &error);
  loop_run(self.loop);
  cr_assert_null(self.link);
  loop_free(self.loop);
}
