/* `distmind-real doctor` on a machine with two RDMA devices. */
#include "rxe_lab.h"

#include <criterion/criterion.h>
#include <string.h>

Test(verbs_doctor, shows_both_devices)
{
  g_autoptr(ClusterLab) lab = lab_new();
  struct process *doctor = lab_start(lab, "doctor");
  cr_assert(process_await(doctor, 60), "doctor does not end");
  g_autofree char *out = process_out(doctor), *log = process_log(doctor);
  cr_assert_eq(doctor->status, 0, "status %d: %s", doctor->status, log);
  for (int d = 0; d < RXE_DEVICES; d++) {
    cr_assert(strstr(out, rxe_device(d)), "no %s in: %s", rxe_device(d), out);
    cr_assert(strstr(out, rxe_address(d)), "no GID of %s in: %s", rxe_address(d), out);
  }
}
