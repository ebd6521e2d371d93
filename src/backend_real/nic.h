/* NICs that speak verbs: what each port of each RDMA device is and can, as the kernel and its driver tell,
 * and which of them to use.
 *
 * A shelf's NIC is the one that has the address on which it listens; a reader's, the one on the route to the
 * shelf. Loopback has no RDMA device: there it is the first active one. Where a machine has several NICs that
 * reach the same network, those nearest to the memory they serve come first (NUMA node and PCIe distance, by
 * hwloc), and reads are striped over them. */
#ifndef DM_NIC_H
#define DM_NIC_H

#include <glib.h>
#include <stdint.h>

enum nic_kind {
  NIC_RC, /* InfiniBand, RoCE: reliable connected queue pairs */
  NIC_SRD /* EFA: scalable reliable datagrams, no RC */
};

/* A GID of a port. */
struct nic_gid {
  uint32_t index;
  uint8_t raw[16];
  const char *type; /* "IB", "RoCE v1", "RoCE v2"; static */
};

/* An IPv4 address where it holds one, else in the form of an IPv6 address. */
void nic_gid_text(const struct nic_gid *gid, char text[46]);

struct nic {
  char device[64]; /* "mlx5_0", "rxe0", "efa_0" */
  uint8_t port;    /* from 1 */
  enum nic_kind kind;
  gboolean active;
  gboolean ethernet;     /* link layer; else InfiniBand (EFA: neither, FALSE) */
  char state[32];        /* "PORT_ACTIVE" */
  char netdev[16];       /* network device of the port; "" = none known */
  char pci[16];          /* "0000:17:00.0"; "" = not on PCI */
  int numa;              /* node, -1 unknown */
  double gbit_s;         /* active width x speed; 0 unknown */
  uint32_t mtu;          /* bytes of payload a packet, active */
  uint16_t lid;          /* InfiniBand */
  uint32_t reads_asked;  /* reads that a queue pair of it may have under way (max_qp_init_rd_atom) */
  uint32_t reads_served; /* reads that it answers at once, a queue pair (max_qp_rd_atom) */
  uint64_t region_max;   /* bytes of one registration (max_mr_size) */
  uint32_t regions_max;  /* registrations (max_mr) */
  gboolean dmabuf;       /* the kernel and libibverbs can register dma-bufs with this driver; known only by
                            trying: see gpudirect in `doctor` */
  gboolean srd_reads;    /* SRD: has RDMA READ */
  uint32_t srd_read_max; /* bytes of one RDMA READ over SRD (max_rdma_size) */
  GArray *gids;          /* of struct nic_gid; those in use */
};

/* All ports of all RDMA devices, in the order of their names. Empty: none, or no RDMA in this kernel. */
GPtrArray *nics_list(void); /* of struct nic *; unref frees them */

struct nic_wish {
  const char *devices; /* names, comma-separated, "NAME:PORT" for another port than 1; NULL: choose */
  gboolean gid_given;
  uint32_t gid_index;
  const char
      *local;      /* own address on the way to the peer, as text; NULL or loopback: any active NIC will do */
  const char *pci; /* of the GPU that the bytes are for; NULL: none */
};

/* One NIC to use, and its GID. */
struct nic_choice {
  const struct nic *nic; /* of the list */
  struct nic_gid gid;
};

/* The NICs to use, best first; at least one, and all of one kind.
 *
 * By name: those named, in that order. Else those that `local` and its subnet are reached through:
 * RoCE ports with a GID in that subnet; InfiniBand ports under it by IP over InfiniBand, or of the same named
 * subnet prefix (the default prefix fe80::/64 tells nothing); if there is neither, all EFA devices. Of these,
 * with `pci`, only the nearest. Loopback: the first active one, so that both ends take the same. NULL: the
 * active one that is nearest to `pci`, or the first.
 *
 * The GID: the one given; else one that holds `local`, else of its subnet, else of its family (RoCE v2 before
 * v1); InfiniBand and EFA: the first. DM_ERROR_INPUT: no such device, not active, no such GID; or no NIC has
 * that address (names those there are). */
GArray *nics_choose(GPtrArray *nics, const struct nic_wish *wish, GError **error); /* of struct nic_choice */

/* Own address from which packets to `address` (HOST or HOST:PORT, IPv4 or [IPv6]) leave. FALSE: no route. */
gboolean route_local_address(const char *address, char local[46], GError **error);

#endif
