/* Made-up machines; see doctor_patient.h. */
#include "doctor_patient.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

Patient *patient_new(void)
{
  Patient *p = g_new0(Patient, 1);
  p->root = fake_root_new();
  p->lab = nic_lab_new();
  p->gpus = g_ptr_array_new_with_free_func(gpu_facts_free);
  p->cuda_missing = "no CUDA driver";
  return p;
}

void patient_free(Patient *p)
{
  fake_root_free(p->root);
  nic_lab_free(p->lab);
  g_ptr_array_unref(p->gpus);
  g_free(p);
}
void patient_add_gpu(Patient *p, const char *pci, enum gpu_export dmabuf, const char *why)
{
  struct gpu_facts *gpu = g_new0(struct gpu_facts, 1);
  *gpu = (struct gpu_facts){.ordinal = (int)p->gpus->len,
                            .name = g_strdup("NVIDIA A100-SXM4-40GB"),
                            .bytes = 42000000000,
                            .numa = -1,
                            .dmabuf = dmabuf,
                            .dmabuf_why = g_strdup(why)};
  g_strlcpy(gpu->pci, pci, sizeof gpu->pci);
  g_ptr_array_add(p->gpus, gpu);
  p->cuda_missing = NULL;
}

Doctor *patient_examine(Patient *p)
{
  g_autoptr(PciMap) map = pci_map_new(p->root->path);
  const struct doctor_sources sources = {
      .root = p->root->path,
      .nics = p->lab->nics,
      .addresses = p->lab->ground.addresses,
      .gpus = p->gpus,
      .cuda_missing = p->cuda_missing,
      .cuda_version = p->cuda_missing ? NULL : "13.0",
      .map = map,
  };
  return doctor_new(&sources);
}

char *doctor_said(const Doctor *doctor)
{
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  doctor_print(doctor, out);
  fclose(out);
  char *copy = g_strdup(text);
  free(text);
  return copy;
}

char *doctor_wrote(const Doctor *doctor)
{
  g_autoptr(JsonWriter) json = json_writer_new();
  doctor_json(doctor, json);
  return json_writer_text(json);
}
