/* PCIe links that carry less than both their ends could: a card in the wrong slot, or not quite in it; see
 * doctor.h. */
#include "backend_real/doctor_parts.h"
#include "backend_real/sysfs.h"

/* "16.0 GT/s PCIe", "8"; 0: unknown. */
static double number_of(const char *root, const char *pci, const char *file)
{
  g_autofree char *text = sysfs_text(root, "/sys/bus/pci/devices/%s/%s", pci, file);
  double number = text ? g_ascii_strtod(text, NULL) : 0;
  return number > 0 && number <= 1024 ? number : 0;
}

static void slow_link_free(gpointer data)
{
  struct doctor_slow_link *link = data;
  g_free(link->name);
  g_free(link->why);
  g_free(link);
}

/* A GPU that has nothing to do lowers its link's speed, but not its width: speeds are looked at of NICs
 * alone. */
static void look_at(GPtrArray *links, const char *root, const char *pci, const char *name, gboolean speed_too)
{
  double width = number_of(root, pci, "current_link_width"),
         width_max = number_of(root, pci, "max_link_width");
  double speed = number_of(root, pci, "current_link_speed"),
         speed_max = number_of(root, pci, "max_link_speed");
  gboolean narrow = width > 0 && width < width_max, slow = speed_too && speed > 0 && speed < speed_max;
  if (!narrow && !slow)
    return;
  struct doctor_slow_link *link = g_new0(struct doctor_slow_link, 1);
  link->name = g_strdup(name);
  g_strlcpy(link->pci, pci, sizeof link->pci);
  link->why = narrow ? g_strdup_printf("has %g PCIe lanes, of %g", width, width_max)
                     : g_strdup_printf("has a PCIe link of %g GT/s a lane, of %g", speed, speed_max);
  g_ptr_array_add(links, link);
}

GPtrArray *doctor_slow_links(const char *root, const struct doctor *doctor)
{
  GPtrArray *links = g_ptr_array_new_with_free_func(slow_link_free);
  const char *before = "";
  for (guint i = 0; i < doctor->gpus.list->len; i++) {
    const struct gpu_facts *gpu = doctor->gpus.list->pdata[i];
    g_autofree char *name = g_strdup_printf("the GPU at %s", gpu->pci);
    if (*gpu->pci)
      look_at(links, root, gpu->pci, name, FALSE);
  }
  for (guint i = 0; i < doctor->nics->len; i++) {
    const struct nic *nic = doctor->nics->pdata[i];
    if (*nic->pci && strcmp(nic->pci, before) != 0)
      look_at(links, root, nic->pci, nic->device, TRUE);
    before = nic->pci;
  }
  return links;
}
