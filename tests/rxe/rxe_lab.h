/* The two RDMA devices of the virtual machine that vm.sh boots, for tests of whole clusters in it.
 *
 * Their counters tell whether bytes went over them: the programs' own word is not taken for it. */
#ifndef RXE_LAB_H
#define RXE_LAB_H

#include "../real/cluster.h"
#include "../real/outcome_check.h"

enum { RXE_DEVICES = 2, RXE_PAYLOAD = 4096 /* of a packet, at most */ };

/* The device's name, and its address on the pair, as vm.sh gives them; fails the test where they are not. */
const char *rxe_device(int which);
const char *rxe_address(int which);

/* Packets that a device has taken in, or both. Bytes that went from one network device of the pair to the
 * other, whatever the protocol. */
guint64 rxe_packets_of(int which);
guint64 rxe_packets(void);
guint64 rxe_pair_bytes(void);

/* The experiment of that name in the source tree; owned by the caller. */
char *rxe_experiment(const char *name);

/* Runs experiment.ini or another with --local on host devices, to its end. `more`: further words. */
struct process *rxe_run(ClusterLab *lab, const char *experiment, const char *transport, const char *database,
                        const char *more);
/* Of a run: how many of its servers say that they use the transport. */
gint64 rxe_servers_using(ClusterLab *lab, const char *database, const char *transport);

#endif
