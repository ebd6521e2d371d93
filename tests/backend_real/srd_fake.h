/* A fake EFA for tests of the SRD queues: devices of one process on a fabric, a thread that ends work
 * requests in random order. It keeps to what is known of EFA: errors concern one work request; a datagram
 * that finds no buffer is retried for ever; a queue pair that is destroyed has nothing under way.
 *
 * It checks what a device would fault on: local keys and bounds of every piece, lengths, depths of queues. */
#ifndef DM_TEST_SRD_FAKE_H
#define DM_TEST_SRD_FAKE_H

#include "backend_real/srd_device.h"

/* One fabric at a time. Of a nic it takes srd_reads, srd_read_max, mtu (bytes of a datagram). */
extern const struct srd_device_ops srd_fake;

void srd_fake_begin(uint32_t seed);
/* Fails the test when something is left: devices, queue pairs, addresses, memory. */
void srd_fake_end(void);
/* The n-th thing that is made from now on cannot be (1: the next); 0: all can. */
void srd_fake_fail(uint32_t n);
/* All devices' queue depths, from now on. */
void srd_fake_depths(uint32_t sends, uint32_t receives, uint32_t completions);
/* Nothing moves, or again. */
void srd_fake_hold(gboolean held);
/* While nothing moves: what is under way ends all at once, just before a device is armed for the next time.
 */
void srd_fake_rush(void);
/* Nothing that the device with this GID sends moves any more. */
void srd_fake_mute(uint8_t gid);
/* It answers nobody any more, either. */
void srd_fake_kill(uint8_t gid);
/* An error of its only queue pair: by an event, or else by completions. */
void srd_fake_break(uint8_t gid, gboolean by_event);

/* Between begin and end: this machine's only RDMA device is a fake EFA, efa_0, for all that runs in this
 * process; a second one, efa_1. */
void srd_fake_machine(gboolean reads, uint32_t read_max, uint32_t datagram_max);
void srd_fake_second(void);
gboolean srd_fake_is_machine(void);

struct srd_fake_counts {
  uint64_t reads, datagrams; /* that went well */
  uint64_t overruns;         /* datagrams that found no buffer, once each */
  uint64_t stray;            /* datagrams to a queue pair that is not there */
  uint32_t addresses;        /* there are now */
  uint32_t segments;         /* datagrams of two pieces that are under way now */
  uint32_t sends_most;       /* work requests of one queue pair at once */
};
void srd_fake_counts(struct srd_fake_counts *counts);

#endif
