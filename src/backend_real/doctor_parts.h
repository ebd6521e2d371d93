/* Between the files of the doctor (doctor.h). */
#ifndef DM_DOCTOR_PARTS_H
#define DM_DOCTOR_PARTS_H

#include <string.h>

#include "backend_real/doctor.h"

void doctor_host_read(struct doctor_host *host, const char *root);
void doctor_host_clear(struct doctor_host *host);

void doctor_gpus_read(struct doctor_gpus *gpus, const struct doctor_sources *sources);
void doctor_gpus_clear(struct doctor_gpus *gpus);

/* The RDMA devices beside those that nics_list sees. */
void doctor_rdma_read(struct doctor_rdma *rdma, const struct doctor_sources *sources);
void doctor_rdma_clear(struct doctor_rdma *rdma);

/* Of the GPUs and NICs that are known already. */
GPtrArray *doctor_slow_links(const char *root,
                             const struct doctor *doctor); /* of struct doctor_slow_link * */

/* Reasons why GPUDirect cannot be had. */
extern const char doctor_no_export[], doctor_no_register[];

/* From all the other facts. */
void doctor_advise(struct doctor *doctor);

/* A PCI device's file that holds one hexadecimal number; 0: none. */
uint32_t doctor_pci_number(const char *root, const char *pci, const char *file);
/* The kernel driver that has taken a PCI device; NULL: none. */
char *doctor_pci_driver(const char *root, const char *pci);

#endif
