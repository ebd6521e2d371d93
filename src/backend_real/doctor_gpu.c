/* GPUs: what CUDA tells and what stands on PCI, put together; see doctor.h. */
#include <string.h>

#include "backend_real/doctor_parts.h"
#include "backend_real/sysfs.h"

#define NVIDIA        0x10de
#define CLASS_DISPLAY 0x03

void gpu_facts_free(gpointer data)
{
  struct gpu_facts *gpu = data;
  g_free(gpu->name);
  g_free(gpu->driver);
  g_free(gpu->dmabuf_why);
  g_free(gpu);
}

uint32_t doctor_pci_number(const char *root, const char *pci, const char *file)
{
  g_autofree char *text = sysfs_text(root, "/sys/bus/pci/devices/%s/%s", pci, file);
  uint64_t number = text ? g_ascii_strtoull(text, NULL, 16) : 0;
  return number <= G_MAXUINT32 ? (uint32_t)number : 0;
}

char *doctor_pci_driver(const char *root, const char *pci)
{
  g_autofree char *path = *pci ? sysfs_real_path(root, "/sys/bus/pci/devices/%s/driver", pci) : NULL;
  return path ? g_path_get_basename(path) : NULL;
}

static struct gpu_facts *find_gpu(GPtrArray *gpus, const char *pci)
{
  for (guint i = 0; i < gpus->len; i++) {
    struct gpu_facts *gpu = gpus->pdata[i];
    if (strcmp(gpu->pci, pci) == 0)
      return gpu;
  }
  return NULL;
}

/* The kernel driver knows the name of a GPU that CUDA does not see (of MIG, of another container). */
static char *name_by_driver(const char *root, const char *pci)
{
  g_autofree char *text = sysfs_text(root, "/proc/driver/nvidia/gpus/%s/information", pci);
  const char *name = text ? strstr(text, "Model:") : NULL;
  if (!name)
    return NULL;
  name += strlen("Model:");
  return g_strstrip(g_strndup(name, strcspn(name, "\n")));
}

/* A GPU's second function is its sound device, of another class. */
static void add_others(GPtrArray *gpus, const char *root)
{
  g_auto(GStrv) names = sysfs_names(root, "/sys/bus/pci/devices");
  for (guint i = 0; names[i]; i++) {
    if (!sysfs_is_pci(names[i]) || doctor_pci_number(root, names[i], "vendor") != NVIDIA ||
        doctor_pci_number(root, names[i], "class") >> 16 != CLASS_DISPLAY || find_gpu(gpus, names[i]))
      continue;
    struct gpu_facts *gpu = g_new0(struct gpu_facts, 1);
    gpu->ordinal = -1;
    gpu->name = name_by_driver(root, names[i]);
    g_strlcpy(gpu->pci, names[i], sizeof gpu->pci);
    g_ptr_array_add(gpus, gpu);
  }
}

/* "… Kernel Module  580.65.06  …", "… Open Kernel Module for x86_64  580.65.06  …" */
static char *driver_version(const char *root)
{
  g_autofree char *module = sysfs_text(root, "/sys/module/nvidia/version");
  g_autofree char *text = sysfs_text(root, "/proc/driver/nvidia/version");
  const char *open = text && strstr(text, "Open Kernel Module") ? " (open kernel modules)" : "";
  g_auto(GStrv) words = g_strsplit_set(text ? text : "", " \t\n", -1);
  if (module)
    return g_strconcat(module, open, NULL);
  for (guint i = 0; words[i]; i++)
    if (g_ascii_isdigit(*words[i]) && strchr(words[i], '.') && !strpbrk(words[i], ":"))
      return g_strconcat(words[i], open, NULL);
  return NULL;
}

void doctor_gpus_read(struct doctor_gpus *gpus, const struct doctor_sources *sources)
{
  gpus->cuda_missing = sources->cuda_missing;
  gpus->cuda = g_strdup(sources->cuda_version);
  gpus->driver = driver_version(sources->root);
  gpus->peer_memory = sysfs_exists(sources->root, "/sys/module/nvidia_peermem") ||
                      sysfs_exists(sources->root, "/sys/module/nv_peer_mem");
  gpus->list = g_ptr_array_ref(sources->gpus);
  add_others(gpus->list, sources->root);
  for (guint i = 0; i < gpus->list->len; i++) {
    struct gpu_facts *gpu = gpus->list->pdata[i];
    gpu->numa = sysfs_pci_numa(sources->root, gpu->pci);
    gpu->driver = doctor_pci_driver(sources->root, gpu->pci);
  }
}

void doctor_gpus_clear(struct doctor_gpus *gpus)
{
  g_free(gpus->cuda);
  g_free(gpus->driver);
  g_ptr_array_unref(gpus->list);
}
