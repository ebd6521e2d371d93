/* Exact decimal numbers and timestamps; see decimal.h. */
#include "harness/decimal.h"

#include "core/units.h"

#define MANTISSA_DIGITS 19 /* 10^19 - 1 fits uint64_t */
#define EXPONENT_MAX    1000

static const uint64_t power_of_ten[20] = {
    1ULL,
    10ULL,
    100ULL,
    1000ULL,
    10000ULL,
    100000ULL,
    1000000ULL,
    10000000ULL,
    100000000ULL,
    1000000000ULL,
    10000000000ULL,
    100000000000ULL,
    1000000000000ULL,
    10000000000000ULL,
    100000000000000ULL,
    1000000000000000ULL,
    10000000000000000ULL,
    100000000000000000ULL,
    1000000000000000000ULL,
    10000000000000000000ULL,
};

struct mantissa {
  uint64_t value; /* first MANTISSA_DIGITS significant digits */
  int digits;     /* significant digits in value */
  int exponent;   /* power of ten that value is to be multiplied with */
  int dropped;    /* first digit that did not fit, -1 if all did */
};

static inline gboolean is_digit(char c)
{
  return c >= '0' && c <= '9';
}

static inline void add_digit(struct mantissa *m, int digit, gboolean fraction)
{
  if (m->digits < MANTISSA_DIGITS) {
    m->value = m->value * 10 + (uint64_t)digit;
    m->digits += m->value != 0;
    m->exponent -= fraction;
    return;
  }
  if (m->dropped < 0)
    m->dropped = digit;
  m->exponent += !fraction;
}

/* Digits with at most one point in them: the text after them, or NULL. */
static const char *parse_digits(const char *at, const char *end, struct mantissa *m)
{
  gboolean any = FALSE;
  for (; at < end && is_digit(*at); at++, any = TRUE)
    add_digit(m, *at - '0', FALSE);
  if (at < end && *at == '.')
    for (at++; at < end && is_digit(*at); at++, any = TRUE)
      add_digit(m, *at - '0', TRUE);
  return any ? at : NULL;
}

static gboolean parse_exponent(const char *at, const char *end, struct mantissa *m)
{
  int exponent = 0, sign = 1;
  if (at < end && (*at == '+' || *at == '-'))
    sign = *at++ == '-' ? -1 : 1;
  if (at == end)
    return FALSE;
  for (; at < end && is_digit(*at); at++)
    exponent = MIN(exponent * 10 + (*at - '0'), EXPONENT_MAX);
  m->exponent += sign * exponent;
  return at == end;
}

/* value x 10^exponent rounded half up into *magnitude; FALSE if it does not fit 63 bits. */
static gboolean scale(const struct mantissa *m, int exponent, uint64_t *magnitude)
{
  if (m->value == 0) {
    *magnitude = 0;
    return TRUE;
  }
  if (exponent < -MANTISSA_DIGITS) {
    *magnitude = 0;
    return TRUE;
  }
  if (exponent < 0) {
    uint64_t divisor = power_of_ten[-exponent], rest = m->value % divisor;
    *magnitude = m->value / divisor + (rest >= divisor - rest);
  } else if (exponent >= MANTISSA_DIGITS ||
             __builtin_mul_overflow(m->value, power_of_ten[exponent], magnitude)) {
    return FALSE;
  } else if (exponent == 0 && m->dropped >= 5) {
    ++*magnitude;
  }
  return *magnitude <= INT64_MAX;
}

gboolean decimal_scaled(const char *text, size_t length, int64_t unit, int64_t *value)
{
  const char *at = text, *end = text + length;
  struct mantissa m = {.dropped = -1};
  uint64_t magnitude;
  gboolean negative = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+'))
    at++;
  at = parse_digits(at, end, &m);
  if (!at)
    return FALSE;
  if (at < end && ((*at != 'e' && *at != 'E') || !parse_exponent(at + 1, end, &m)))
    return FALSE;
  int exponent = m.exponent;
  for (; unit > 1; unit /= 10)
    exponent++;
  if (!scale(&m, exponent, &magnitude))
    return FALSE;
  *value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
  return TRUE;
}

/* Exactly `digits` digits at *at, advanced past them; -1 if they are not there. */
static int fixed_number(const char **at, const char *end, int digits)
{
  int number = 0;
  if (end - *at < digits)
    return -1;
  for (int i = 0; i < digits; i++, ++*at) {
    if (!is_digit(**at))
      return -1;
    number = number * 10 + (**at - '0');
  }
  return number;
}

static gboolean literal(const char **at, const char *end, char c)
{
  if (*at == end || **at != c)
    return FALSE;
  ++*at;
  return TRUE;
}

/* Days from 1970-01-01 of a Gregorian date: whole years, their leap days, then the months (Hinnant's civil
 * calendar, which counts years from March so that the leap day comes last). */
static int64_t days_from_civil(int year, int month, int day)
{
  int64_t y = year - (month <= 2);
  int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return y * 365 + y / 4 - y / 100 + y / 400 + day_of_year - 719468;
}

static int days_in_month(int year, int month)
{
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  gboolean leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return days[month - 1] + (month == 2 && leap);
}

static gboolean parse_date(const char **at, const char *end, int64_t *days)
{
  int year = fixed_number(at, end, 4);
  if (year < 1970 || year > 2261 || !literal(at, end, '-'))
    return FALSE;
  int month = fixed_number(at, end, 2);
  if (month < 1 || month > 12 || !literal(at, end, '-'))
    return FALSE;
  int day = fixed_number(at, end, 2);
  if (day < 1 || day > days_in_month(year, month))
    return FALSE;
  *days = days_from_civil(year, month, day);
  return TRUE;
}

static gboolean parse_clock(const char **at, const char *end, int64_t *seconds)
{
  int hour = fixed_number(at, end, 2);
  if (hour < 0 || hour > 23 || !literal(at, end, ':'))
    return FALSE;
  int minute = fixed_number(at, end, 2);
  if (minute < 0 || minute > 59 || !literal(at, end, ':'))
    return FALSE;
  int second = fixed_number(at, end, 2);
  if (second < 0 || second > 59)
    return FALSE;
  *seconds = hour * 3600 + minute * 60 + second;
  return TRUE;
}

static gboolean parse_fraction(const char **at, const char *end, int64_t *ns)
{
  int64_t weight = NS_PER_S / 10;
  *ns = 0;
  if (!literal(at, end, '.'))
    return TRUE;
  if (*at == end || !is_digit(**at))
    return FALSE;
  for (; *at < end && is_digit(**at); ++*at, weight /= 10)
    *ns += (**at - '0') * weight;
  return TRUE;
}

static gboolean parse_zone(const char **at, const char *end, int64_t *offset_s, gboolean *has_zone)
{
  *offset_s = 0;
  *has_zone = *at < end;
  if (!*has_zone || literal(at, end, 'Z'))
    return TRUE;
  int sign = **at == '-' ? -1 : **at == '+' ? 1 : 0;
  ++*at;
  int hours = sign ? fixed_number(at, end, 2) : -1, minutes = 0;
  if (hours < 0 || hours > 18)
    return FALSE;
  if (*at < end) {
    literal(at, end, ':');
    minutes = fixed_number(at, end, 2);
  }
  *offset_s = sign * (hours * 3600 + minutes * 60);
  return minutes >= 0 && minutes <= 59;
}

gboolean timestamp_ns(const char *text, size_t length, int64_t *ns, gboolean *has_zone)
{
  const char *at = text, *end = text + length;
  int64_t days, seconds, fraction, offset;
  gboolean zone = FALSE;
  if (!parse_date(&at, end, &days) || at == end || (*at != ' ' && *at != 'T'))
    return FALSE;
  at++;
  if (!parse_clock(&at, end, &seconds) || !parse_fraction(&at, end, &fraction) ||
      !parse_zone(&at, end, &offset, &zone) || at != end)
    return FALSE;
  *ns = (days * 86400 + seconds - offset) * NS_PER_S + fraction;
  if (has_zone)
    *has_zone = zone;
  return TRUE;
}
