/* The control plane: hello and welcome, order, and that no peer can hurt another. */
#include <string.h>

#include "backend_real/control_frame.h"
#include "control_lab.h"
#include "core/units.h"

/* Both ways, encrypted or not. */
static void hello_and_welcome(gboolean encrypted)
{
  struct lab *lab = lab_new(encrypted);
  struct key_pair keys = lab_keys(lab, "gpu");
  lab_link(lab, 0, ACTOR_GPU_SERVER, 3, 17, encrypted ? &keys : NULL);
  lab_await(lab, lab->link[0].log, "welcome; ");
  cr_assert_str_eq(lab->log->str, "joined 2/3 17 127.0.0.1:4000; ");
  cr_assert(hub_has(lab->hub, ACTOR(ACTOR_GPU_SERVER, 3)));
  cr_assert_not(hub_has(lab->hub, ACTOR(ACTOR_GPU_SERVER, 2)));
  hub_send(lab->hub, ACTOR(ACTOR_GPU_SERVER, 3), FRAME_GO, "abc", 3);
  link_send(lab->link[0].link, FRAME_READY, NULL, 0);
  lab_await(lab, lab->link[0].log, "frame GO 3; ");
  lab_await(lab, lab->log, "frame 2/3 READY 0; ");
  link_free(lab->link[0].link);
  lab->link[0].link = NULL;
  lab_await(lab, lab->log, "lost 2/3 it left; ");
  cr_assert_not(hub_has(lab->hub, ACTOR(ACTOR_GPU_SERVER, 3)));
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
