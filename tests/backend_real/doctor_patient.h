/* Made-up machines for the doctor. */
#ifndef DOCTOR_PATIENT_H
#define DOCTOR_PATIENT_H

#include "backend_real/doctor.h"
#include "fake_root.h"
#include "nic_lab.h"

/* Its root, its NICs, the GPUs that CUDA would see. */
typedef struct patient Patient; /* for g_autoptr */
struct patient {
  FakeRoot *root;
  NicLab *lab;
  GPtrArray *gpus;
  const char *cuda_missing; /* "no CUDA driver" until a GPU is added */
};

Patient *patient_new(void);
void patient_free(Patient *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Patient, patient_free)

void patient_add_gpu(Patient *p, const char *pci, enum gpu_export dmabuf, const char *why);
/* What the doctor finds there. */
Doctor *patient_examine(Patient *p);

/* What it says, and writes; free with g_free. */
char *doctor_said(const Doctor *doctor);
char *doctor_wrote(const Doctor *doctor);

#endif
