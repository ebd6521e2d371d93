/* Numbers and times of trace files, parsed with integers only, so that no digit is lost on the way to
 * nanoseconds. */
#ifndef DM_DECIMAL_H
#define DM_DECIMAL_H

#include <glib.h>
#include <stdint.h>

/* [+-]digits[.digits][e[+-]digits] times unit (a power of ten up to 10^9), rounded half away from zero to a
 * whole number. FALSE: not such a number (no blanks, no NaN), or beyond int64_t. */
gboolean decimal_scaled(const char *text, size_t length, int64_t unit, int64_t *value);

/* YYYY-MM-DD, blank or T, HH:MM:SS, optional fraction (digits past the ninth are dropped), optional Z or
 * offset
 * (+HH:MM, +HHMM, +HH), as ns since 1970-01-01 in that offset's UTC; without one the clock is taken as UTC.
 * Years 1970 to 2261. FALSE if malformed. has_zone may be NULL. */
gboolean timestamp_ns(const char *text, size_t length, int64_t *ns, gboolean *has_zone);

#endif
