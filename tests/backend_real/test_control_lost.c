/* How a peer or a hub that falls silent is noticed: killed, stopped, or merely busy; each a process of its
 * own. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness/temporary.h"
#include "control_lab.h"
#include "core/units.h"

#define SERVER(index) ACTOR(ACTOR_GPU_SERVER, index)

/* A process with a link, that is killed or stopped. It reports on a pipe that it is welcome. */
static pid_t child_with_link(struct lab *lab, const struct key_pair *keys)
{
  int ends[2];
  char byte;
  cr_assert_eq(pipe(ends), 0);
  pid_t child = fork();
  cr_assert_geq(child, 0);
  if (child == 0) {
    /* The hub's sockets are the parent's: the child only knows where it listens. */
    lab->loop = loop_new();
    lab_link(lab, 0, ACTOR_GPU_SERVER, 1, 5, keys);
    lab_await(lab, lab->link[0].log, "welcome; ");
    if (write(ends[1], "w", 1) != 1)
      _exit(1);
    loop_run(lab->loop);
    _exit(0);
  }
  close(ends[1]);
  lab_await(lab, lab->log, "joined 2/1 5 ");
  lab_run_ns(lab, 20 * NS_PER_MS); /* its welcome goes out */
  cr_assert_eq(read(ends[0], &byte, 1), 1);
  close(ends[0]);
  return child;
}

static double seconds_until_lost(struct lab *lab)
{
  int64_t began = loop_now(lab->loop);
  lab_await(lab, lab->log, "lost 2/1 the connection broke off; ");
  return (double)(loop_now(lab->loop) - began) / (double)NS_PER_S;
}

Test(control_lost, killed_peer_is_lost_at_once)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_keys(lab, "gpu");
  pid_t child = child_with_link(lab, &keys);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  cr_assert_lt(seconds_until_lost(lab), 1);
  lab_free(lab);
}

Test(control_lost, stopped_peer_is_lost)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_keys(lab, "gpu");
  pid_t child = child_with_link(lab, &keys);
  kill(child, SIGSTOP);
  double seconds = seconds_until_lost(lab);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  cr_assert(seconds > 1 && seconds < 4, "%.2f s", seconds);
  lab_free(lab);
}

/* A process with a hub; where it listens. */
static pid_t child_with_hub(char endpoint[256])
{
  int ends[2];
  cr_assert_eq(pipe(ends), 0);
  pid_t child = fork();
  cr_assert_geq(child, 0);
  if (child == 0) {
    struct lab *hub = lab_new(FALSE);
    const char *text = hub_endpoint(hub->hub);
    tree_remove(hub->folder); /* nobody has keys, and a process that is killed removes nothing */
    if (write(ends[1], text, strlen(text) + 1) < 0)
      _exit(1);
    loop_run(hub->loop);
    _exit(0);
  }
  memset(endpoint, 0, 256);
  cr_assert_gt(read(ends[0], endpoint, 255), 0);
  close(ends[0]);
  close(ends[1]);
  return child;
}

static double seconds_until_hub_is_lost(int signal_number)
{
  char endpoint[256];
  pid_t child = child_with_hub(endpoint);
  struct lab *lab = lab_new(FALSE);
  lab_link_to(lab, 0, endpoint, ACTOR_CLIENT, 0, 1, NULL);
  lab_await(lab, lab->link[0].log, "welcome; ");
  kill(child, signal_number);
  int64_t began = loop_now(lab->loop);
  lab_await(lab, lab->link[0].log, "lost the connection to the controller broke off; ");
  double seconds = (double)(loop_now(lab->loop) - began) / (double)NS_PER_S;
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  lab_free(lab);
  return seconds;
}

Test(control_lost, killed_hub_is_noticed_at_once)
{
  cr_assert_lt(seconds_until_hub_is_lost(SIGKILL), 1);
}

Test(control_lost, stopped_hub_is_noticed_in_two_seconds)
{
  double seconds = seconds_until_hub_is_lost(SIGSTOP);
  cr_assert(seconds > 1 && seconds < 4, "%.2f s", seconds);
}

/* A process that is busy for long, with nobody on its loop, is not lost: ZeroMQ's own thread answers. */
Test(control_lost, busy_peer_is_not_lost)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_keys(lab, "gpu");
  pid_t child = fork();
  if (child == 0) {
    lab->loop = loop_new();
    lab_link(lab, 0, ACTOR_GPU_SERVER, 1, 5, &keys);
    lab_await(lab, lab->link[0].log, "welcome; ");
    g_usleep(3500000);
    link_send(lab->link[0].link, FRAME_READY, NULL, 0);
    loop_run(lab->loop);
    _exit(0);
  }
  lab_await(lab, lab->log, "joined 2/1 5 ");
  for (int i = 0; i < 200; i++) /* more than its window */
    hub_send(lab->hub, SERVER(1), FRAME_GO, "", 0);
  lab_await(lab, lab->log, "frame 2/1 READY 0; ");
  lab_check_not(lab->log, "lost");
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  lab_free(lab);
}
