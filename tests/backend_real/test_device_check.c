/* The program that checks a device (tests/device), on the host device: whole, and with arguments that are
 * wrong.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "spawned.h"

Test(device_check, host_device_passes)
{
  g_autoptr(Spawned) run = spawn("device_check", "--device host --gpus 2 --mb 16 --quick");
  cr_assert_eq(run->status, 0, "%s%s", run->out, run->err);
  cr_assert(strstr(run->out, "GPU 1: host: "));
  cr_assert(strstr(run->out, "GPU 1: wrong checksums: 10 of 10 refused"));
  cr_assert(strstr(run->out, "GB/s together"));
  cr_assert(g_str_has_suffix(run->out, "\nall checks passed\n"), "%s", run->out);
  cr_assert_str_eq(run->err, "");
}

Test(device_check, bad_usage)
{
  static const char *const words[] = {"--device gpu", "--gpus 0", "--gpus x", "--mb 15", "--what", "more"};
  for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
    g_autoptr(Spawned) run = spawn("device_check", words[i]);
    expect_refusal(run, "device_check: ");
  }
}
