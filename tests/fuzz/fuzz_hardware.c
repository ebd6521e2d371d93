/* Hardware files: whatever the text, finite rates and costs or one error line. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "harness/hardware_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct hardware hardware;
  g_autoptr(GError) error = NULL;
  gboolean ok = hardware_parse("fuzz.ini", (const char *)data, size, &hardware, &error);
  g_assert(ok == (error == NULL));
  if (!ok) {
    g_assert(!strchr(error->message, '\n'));
    return 0;
  }
  const double values[] = {hardware.nic_bytes_s,  hardware.memory_nic_bytes_s, hardware.pcie_bytes_s,
                           hardware.ssd_bytes_s,  hardware.control_ns,         hardware.launch_ns,
                           hardware.ray_proxy_ns, hardware.compute_scale};
  for (gsize i = 0; i < G_N_ELEMENTS(values); i++)
    g_assert(isfinite(values[i]) && values[i] >= 0);
  for (uint32_t n = 1; n <= 100; n++)
    g_assert(hardware_speedup(&hardware, n) > 0);
  return 0;
}
