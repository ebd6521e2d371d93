/* What a machine has of what runs need, and what to do about what is missing: the facts behind `doctor`.
 *
 * doctor_new looks once and decides nothing later; doctor_print and doctor_json say the same facts. What is
 * unknown is left out or said to be unknown: odd files never make an error. */
#ifndef DM_DOCTOR_H
#define DM_DOCTOR_H

#include <stdio.h>

#include "backend_real/gpu_facts.h"
#include "backend_real/nic.h"
#include "backend_real/pci_map.h"
#include "harness/json_writer.h"

#define DOCTOR_UNLIMITED G_MAXUINT64

struct doctor_node {
  uint32_t id;
  char *processors; /* "0-15,32-47" */
  uint64_t bytes, free_bytes;
};

struct doctor_pool { /* of explicit huge pages */
  uint64_t page_bytes, pages, free_pages;
};

struct doctor_limit {
  gboolean known;
  uint64_t soft, hard; /* DOCTOR_UNLIMITED */
};

struct doctor_host {
  char *kernel;              /* release; NULL unknown, as below */
  char *processor;           /* model */
  char *online, *allowed;    /* processors: those of the machine, those of this process */
  uint64_t bytes, available; /* memory; 0 unknown */
  uint64_t bytes_max;        /* that this container may have, DOCTOR_UNLIMITED */
  GArray *nodes;             /* of struct doctor_node */
  GArray *pools;             /* of struct doctor_pool */
  char *transparent;         /* mode of transparent huge pages: "always", "madvise", "never" */
  struct doctor_limit memlock, files;
  gboolean ipc_lock; /* this process has CAP_IPC_LOCK: memlock does not bind it */
  char *iommu;       /* "translated", "passthrough"; NULL: none */
};

/* An RDMA device that cannot be used as it stands. */
struct doctor_unusable {
  char *name; /* the kernel's, or a PCI address */
  char *why, *todo;
};

struct doctor_rdma {
  gboolean verbs_module; /* ib_uverbs is loaded */
  gboolean rxe_module;   /* the kernel has Soft-RoCE, loaded or not */
  char *some_netdev;     /* an Ethernet device that Soft-RoCE could stand on; NULL none */
  GPtrArray *unusable;   /* of struct doctor_unusable * */
};

struct doctor_gpus {
  const char *cuda_missing; /* NULL: CUDA can be used; static */
  char *cuda, *driver;      /* versions: CUDA's "13.0", the kernel driver's; NULL unknown */
  gboolean peer_memory;     /* nvidia_peermem is loaded */
  GPtrArray *list;          /* of struct gpu_facts *: CUDA's, then others on PCI */
};

/* A PCIe link below what both ends could. */
struct doctor_slow_link {
  char *name; /* of the device on it */
  char pci[16];
  char *why;
};

/* The NICs that `auto` takes for peers reached from one of this machine's addresses. */
struct doctor_route {
  char *local;    /* "" = loopback */
  GArray *chosen; /* of struct nic_choice */
};

struct doctor_kind { /* of transport, of device */
  const char *name, *missing;
};

struct doctor_advice {
  const char *about;
  char *finding, *todo;
};

struct doctor {
  struct doctor_host host;
  struct doctor_gpus gpus;
  struct doctor_rdma rdma;
  GPtrArray *nics;               /* as given */
  enum pci_distance *distance;   /* [gpu x nics + nic] */
  GPtrArray *slow_links;         /* of struct doctor_slow_link * */
  const char *gpudirect_missing; /* NULL: GPU memory can be registered with RDMA devices; static */
  GPtrArray *routes;             /* of struct doctor_route * */
  GArray *transports, *devices;  /* of struct doctor_kind, best first */
  GPtrArray *advice;             /* of struct doctor_advice * */
};

/* What is not read from /sys and /proc. */
struct doctor_sources {
  const char *root;          /* where these stand; "" = this machine's (see sysfs.h) */
  GPtrArray *nics;           /* nics_list(); kept by reference */
  GArray *addresses;         /* nic_addresses(); sorted here */
  GPtrArray *gpus;           /* cuda_facts(); kept by reference */
  const char *cuda_missing;  /* device_cuda's */
  const char *cuda_version;  /* may be NULL */
  const struct pci_map *map; /* may be NULL */
};

struct doctor *doctor_new(const struct doctor_sources *sources);
/* Of this machine. */
struct doctor *doctor_new_here(void);
void doctor_free(struct doctor *doctor);
typedef struct doctor Doctor; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Doctor, doctor_free)

void doctor_print(const struct doctor *doctor, FILE *out);
void doctor_json(const struct doctor *doctor, struct json_writer *json);

#endif
