/* A bell: an eventfd by which one thread wakes another that sleeps in poll(2). Rung often, it is heard once.
 */
#ifndef DM_BELL_H
#define DM_BELL_H

/* -1: no descriptor is left (errno). close(2) ends it. */
int bell_new(void);
/* Readable from now on. Any thread. */
void bell_ring(int bell);
/* No longer, until it is rung again; whether it was or not. */
void bell_silence(int bell);

#endif
