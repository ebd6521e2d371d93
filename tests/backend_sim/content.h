/* What the bytes of one memory are: which byte of which image lies at each address, in a test's view. */
#ifndef DM_CONTENT_H
#define DM_CONTENT_H

#include <glib.h>
#include <stdint.h>

struct content;

struct content *content_new(void);
void content_free(struct content *content);
/* From now on [at, at + length) has the image's bytes from `image` on. */
void content_set(struct content *content, uint64_t at, uint64_t length, uint32_t model, uint64_t image);
/* … has nothing that one may read. */
void content_clear(struct content *content, uint64_t at, uint64_t length);
gboolean content_is(const struct content *content, uint64_t at, uint64_t length, uint32_t model,
                    uint64_t image);
/* Bytes that it knows. */
uint64_t content_bytes(const struct content *content);

#endif
