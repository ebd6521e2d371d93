/* What tests of the verbs transport share; they need RDMA devices, and are skipped where there are none. */
#ifndef DM_TEST_VERBS_LAB_H
#define DM_TEST_VERBS_LAB_H

#include <criterion/criterion.h>

#include "backend_real/transport_verbs.h"
#include "transport_lab.h"

/* A test that needs RDMA devices, at least so many. */
#define VERBS_TEST(SUITE, NAME, DEVICES)                                                                     \
  static void NAME(G_GNUC_UNUSED const struct transport_ops *ops);                                           \
  Test(SUITE, NAME)                                                                                          \
  {                                                                                                          \
    if (transport_verbs.missing())                                                                           \
      cr_skip_test("%s", transport_verbs.missing());                                                         \
    g_autoptr(GPtrArray) nics = nics_list();                                                                 \
    if (nics->len < (DEVICES))                                                                               \
      cr_skip_test("there are %u RDMA ports, and it takes %u", nics->len, (unsigned)(DEVICES));              \
    NAME(&transport_verbs);                                                                                  \
  }                                                                                                          \
  static void NAME(G_GNUC_UNUSED const struct transport_ops *ops)

/* A lab over verbs whose model 1 has 100000 bytes. */
struct lab *verbs_lab_new(void);
/* Serves a model in one range, at the end of what the lab uses. */
void verbs_lab_serve(struct lab *lab, uint32_t model, uint64_t bytes);
/* The lab's reader, which is honest, reads model 1 well. */
void verbs_lab_honest(struct lab *lab, uint64_t tag);

#endif
