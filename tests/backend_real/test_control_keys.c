/* Who may connect: without a key, with a wrong one or one that is not listed a peer gets nothing and is
 * logged, and the others go on. */
#include <glib/gstdio.h>
#include <string.h>

#include "control_lab.h"
#include "core/units.h"

/* Nothing of the hub reaches it. */
static void gets_nothing(void *socket)
{
  char byte;
  cr_assert_eq(zmq_recv(socket, &byte, 1, ZMQ_DONTWAIT), -1);
}

Test(control_keys, no_key_wrong_key_unlisted_key)
{
  struct lab *lab = lab_new(TRUE);
  void *context = zmq_ctx_new();
  struct key_pair listed = lab_good_peer(lab), unlisted = lab_keys(lab, NULL), wrong = lab_keys(lab, NULL);
  const struct {
    const struct key_pair *keys;
    const char *server_key, *logged;
  } stranger[] = {
      {NULL, NULL, "refused a connection: "}, /* either end may see first that the other is of another kind */
      {&unlisted, lab->hub_keys.public_key,
       "refused a connection from 127.0.0.1: its key is not authorized; "},
      {&listed, wrong.public_key, "refused a connection: a key does not fit; "},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(stranger); i++) {
    void *socket = lab_stranger(lab, context, stranger[i].keys, stranger[i].server_key);
    lab_clear_logged(lab);
    lab_say_hello(socket, 5);
    lab_await(lab, lab->logged, stranger[i].logged);
    lab_still_good(lab);
    gets_nothing(socket);
    zmq_close(socket);
  }
  lab_check_not(lab->log, "joined 2/5");
  zmq_ctx_term(context);
  lab_free(lab);
}

/* The link's side of it: it is told, if not why, what to look at. */
Test(control_keys, link_with_a_wrong_key)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_keys(lab, "gpu"), other = lab_keys(lab, NULL);
  memcpy(lab->hub_keys.public_key, other.public_key, KEY_TEXT); /* what links believe the hub's to be */
  lab->patience_ns = 500 * NS_PER_MS;
  lab_link(lab, 0, ACTOR_GPU_SERVER, 0, 1, &keys);
  lab_await(lab, lab->link[0].log,
            "lost the controller gave no welcome in time (it broke off before the keys were proven: do they "
            "fit?); ");
  lab_link(lab, 1, ACTOR_GPU_SERVER, 0, 1, NULL);
  lab_await(lab, lab->link[1].log, "lost the controller gave no welcome in time (");
  lab_free(lab);
}

/* The folder is read at each connection: who is taken out of it cannot come again, who is put in can. */
Test(control_keys, keys_come_and_go)
{
  struct lab *lab = lab_new(TRUE);
  struct key_pair keys = lab_good_peer(lab), late = lab_keys(lab, NULL);
  lab_link(lab, 1, ACTOR_GPU_SERVER, 1, 1, &late);
  lab_await(lab, lab->link[1].log, "lost the controller refused: this key is not authorized; ");
  g_autofree char *name = g_build_filename(lab->authorized, "late", NULL);
  cr_assert(key_pair_write(&late, name, NULL));
  lab_link(lab, 2, ACTOR_GPU_SERVER, 1, 1, &late);
  lab_await(lab, lab->link[2].log, "welcome; ");
  g_autofree char *old = g_build_filename(lab->authorized, "good.pub", NULL);
  cr_assert_eq(g_unlink(old), 0);
  lab_link(lab, 3, ACTOR_GPU_SERVER, 2, 1, &keys);
  lab_await(lab, lab->link[3].log, "lost the controller refused: this key is not authorized; ");
  lab_still_good(lab); /* connections that are there stay */
  link_free(lab->link[1].link);
  lab->link[1].link = NULL;
  lab_free(lab);
}

/* A link that has keys does not talk to a hub that has other ones, or none. */
Test(control_keys, link_knows_its_hub)
{
  struct lab *lab = lab_new(TRUE), *plain = lab_new(FALSE);
  struct key_pair keys = lab_keys(lab, "gpu");
  lab_link_to(lab, 0, hub_endpoint(plain->hub), ACTOR_GPU_SERVER, 0, 1, &keys);
  lab_run_ns(lab, 200 * NS_PER_MS);
  lab_run_ns(plain, 200 * NS_PER_MS);
  lab_check_not(plain->log, "joined");
  lab_check_not(lab->link[0].log, "welcome");
  lab_free(lab);
  lab_free(plain);
}
