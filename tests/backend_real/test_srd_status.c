/* What EFA's codes mean: whom an error costs what. */
#include <criterion/criterion.h>

#include "backend_real/srd_status.h"

Test(srd_status, an_error_costs_whom_it_concerns)
{
  static const struct {
    uint32_t code;
    gboolean flushed;
    enum srd_status status;
  } cases[] = {
      {1, TRUE, SRD_BROKEN},  /* flushed */
      {2, FALSE, SRD_BROKEN}, /* queue pair */
      {4, FALSE, SRD_LOST},   /* own address handle of the peer */
      {7, FALSE, SRD_DENIED}, /* remote key or address */
      {9, FALSE, SRD_LOST},   /* remote queue pair number */
      {10, FALSE, SRD_LOST},  /* receiver not ready */
      {13, FALSE, SRD_LOST},  /* unresponsive */
      {15, FALSE, SRD_LOST},  /* unreachable */
      {16, FALSE, SRD_LOST},  /* of a later driver */
      {0, FALSE, SRD_LOST},   /* none */
      {0, TRUE, SRD_BROKEN},  /* none, but the driver says that it was flushed */
      {UINT32_MAX, FALSE, SRD_LOST},
  };
  for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
    const char *why = NULL;
    cr_expect_eq(srd_status_of(cases[i].code, cases[i].flushed, &why), cases[i].status, "code %u",
                 cases[i].code);
    cr_expect(why && *why);
  }
}

Test(srd_status, every_code_is_an_error_with_a_reason)
{
  for (uint32_t code = 0; code < 300; code++) {
    const char *why = NULL;
    cr_assert_neq(srd_status_of(code, FALSE, &why), SRD_OK);
    cr_assert(why && *why, "code %u", code);
  }
}
