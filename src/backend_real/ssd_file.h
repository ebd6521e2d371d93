/* One model's image as a file (.dmi, image_format.h) on a local SSD: written once, read many times, around
 * the page cache, so that what is measured is the SSD.
 *
 * Reads are O_DIRECT. A block (SSD_BLOCK) at either end of a read of which only a part is wanted comes
 * through a bounce buffer, all between goes straight to its place, in one request; where place and file are
 * not aligned alike, all of it bounces. A file system without O_DIRECT is read through the page cache, out of
 * which the file is dropped again and again; ssd_file_direct tells. */
#ifndef DM_SSD_FILE_H
#define DM_SSD_FILE_H

#include "backend_real/image.h"

#define SSD_BLOCK        4096u
#define SSD_READ_MAX     (1u << 20) /* bytes of one read */
#define SSD_BOUNCE_BYTES (SSD_READ_MAX + 2 * SSD_BLOCK)

struct ssd_file;

/* DM_ERROR_INPUT: no image, truncated, or not this one (layers, or the checksums of its header). */
struct ssd_file *ssd_file_open(const char *path, const struct image *image, GError **error);
void ssd_file_free(struct ssd_file *file);
gboolean ssd_file_direct(const struct ssd_file *file);

/* The image's bytes [offset, offset + bytes), bytes at most SSD_READ_MAX, to `to`. bounce: SSD_BOUNCE_BYTES,
 * aligned to SSD_BLOCK. Any thread. DM_ERROR_FAILED: the disk gives an error, or the file became shorter. */
gboolean ssd_file_read(const struct ssd_file *file, uint64_t offset, uint32_t bytes, uint8_t *to,
                       uint8_t *bounce, GError **error);

/* Whether it lies on a tmpfs or ramfs, which may be where nobody looks for one (/tmp). */
gboolean ssd_folder_in_memory(const char *folder);

/* Bytes of the file that ssd_file_write makes. */
uint64_t ssd_file_bytes(const struct image *image);
/* Whole, on the disk (fsync) and out of the page cache, or not at all: under PATH.partial until then. The
 * file names no tensors. DM_ERROR_FAILED; DM_ERROR_INTERRUPTED: a signal waits. */
gboolean ssd_file_write(const char *path, const struct image *image, GError **error);

#endif
